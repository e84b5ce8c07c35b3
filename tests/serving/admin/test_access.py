import time
from types import SimpleNamespace

import pytest
from fastapi import Request

from serving.admin.access import (
    COOKIE,
    KEY,
    AdminKeyError,
    AdminRefusedError,
    _proof,
    admin,
    opens,
    session_for,
    sign_in,
    sign_out,
)
from serving.admin.door import MOST_WRONG, Door, TooManyKeysError

HERE = "127.0.0.1"


class App:
    """As much of the application as is looked at."""

    def __init__(self):
        self.state = SimpleNamespace(door=Door())


def request(client=HERE, method="GET", host="localhost:8080", app=None, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(
        {
            "type": "http",
            "app": app or App(),
            "method": method,
            "path": "/admin/experiments",
            "query_string": b"",
            "client": (client, 5000) if client else None,
            "headers": [
                (name.encode(), value.encode("latin-1"))
                for name, value in {"host": host, **named}.items()
            ],
        }
    )


@pytest.mark.parametrize("client", [HERE, "127.0.0.9", "::1", "::ffff:127.0.0.1"])
def test_without_a_key_this_machine_may_ask(client):
    assert admin(request(client)) == "this machine"


@pytest.mark.parametrize("client", ["10.0.0.5", "::ffff:10.0.0.5", "testclient", None])
def test_without_a_key_no_other_machine_may_ask(client):
    with pytest.raises(AdminRefusedError, match=f"without {KEY}"):
        admin(request(client))


@pytest.mark.parametrize(
    "header",
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-port", "x_real_ip", "cf-connecting-ip"],
)
def test_without_a_key_what_a_proxy_passed_on_is_refused(header):
    with pytest.raises(AdminRefusedError, match="header"):
        admin(request(**{header: HERE}))


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "[::1]:8080", "localhost", "LOCALHOST:1"])
def test_without_a_key_it_may_be_asked_by_this_machines_own_names(host):
    assert admin(request(host=host))


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8080", "", "[::1"])
def test_without_a_key_a_foreign_name_that_leads_here_is_refused(host):
    with pytest.raises(AdminRefusedError, match="asked as localhost"):
        admin(request(host=host))


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:3000", "http://[", ""]
)
def test_another_sites_page_may_change_nothing(method, origin, monkeypatch):
    with pytest.raises(AdminRefusedError, match="own page"):
        admin(request(method=method, origin=origin))
    monkeypatch.setenv(KEY, "sesame")
    with pytest.raises(AdminRefusedError, match="own page"):
        admin(request(method=method, origin=origin, authorization="Bearer sesame"))


def test_our_own_page_and_a_program_may_change_something():
    assert admin(request(method="PUT", origin="http://localhost:8080"))
    assert admin(request(method="PUT"))


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv(KEY, "sésame öffne dich")
    return "sésame öffne dich"


def test_with_a_key_whoever_has_it_may_ask_from_anywhere(monkeypatch):
    monkeypatch.setenv(KEY, "sesame")
    far = {"client": "10.0.0.5", "host": "cascade.example"}
    assert admin(request(**far, authorization="Bearer sesame")) == "the admin key"
    assert admin(request(**far, authorization="bearer  sesame ", via="proxy")) == "the admin key"


@pytest.mark.parametrize("given", ["", "Bearer ", "Bearer sesam", "Basic sesame", "sesame"])
def test_with_a_key_nobody_else_may_not_even_from_this_machine(given, monkeypatch):
    monkeypatch.setenv(KEY, "sesame")
    with pytest.raises(AdminKeyError, match=r"admin key is (wrong|missing)") as refused:
        admin(request(authorization=given) if given else request())
    assert refused.value.status == 401
    assert "sesam" not in refused.value.message


def test_a_session_stands_for_the_key_until_it_ends(key):
    cookie = f"other=1; {COOKIE}={session_for(key)}"
    assert admin(request(client="10.0.0.5", cookie=cookie)) == "the admin key"
    over = session_for(key, time.time() - 2)
    with pytest.raises(AdminKeyError):
        admin(request(cookie=f"{COOKIE}={over}"))


def test_a_session_cannot_be_made_longer_nor_outlast_its_key(key, monkeypatch):
    end, _, proof = session_for(key).partition(".")
    later = f"{int(end.partition('-')[0]) + 1}-{end.partition('-')[2]}"
    for forged in (
        f"{later}.{proof}",
        f"{end}x.{proof}",
        proof,
        f"{end}.",
        "",
        "nan." + proof,
        ".",
    ):
        with pytest.raises(AdminKeyError):
            admin(request(cookie=f"{COOKIE}={forged}"))
    monkeypatch.setenv(KEY, "another")
    with pytest.raises(AdminKeyError):
        admin(request(cookie=f"{COOKIE}={end}.{proof}"))


def test_a_session_without_a_name_of_its_own_is_good_until_it_ends(key):
    app = App()
    for end, good in ((time.time() + 60, True), (time.time() - 1, False)):
        named = f"{end:.0f}"
        cookie = f"{COOKIE}={named}.{_proof(key, named)}"
        if good:
            assert admin(request(app=app, cookie=cookie)) == "the admin key"
        else:
            with pytest.raises(AdminKeyError):
                admin(request(app=app, cookie=cookie))


def test_a_session_that_was_ended_is_of_no_use_and_others_go_on(key):
    app = App()
    one, other = (f"{COOKIE}={sign_in(request(app=app), key, key)}" for _ in range(2))
    sign_out(request(app=app, cookie=one))
    with pytest.raises(AdminKeyError):
        admin(request(app=app, cookie=one))
    assert admin(request(app=app, cookie=other))
    sign_out(request(app=app, cookie=f"{COOKIE}=forged"))
    sign_out(request(app=app))


def test_of_many_different_wrong_keys_the_right_one_is_not_looked_at_either(key):
    app = App()
    sent = key.encode().decode("latin-1")
    inside = f"{COOKIE}={sign_in(request(app=app), key, key)}"
    for i in range(MOST_WRONG):
        with pytest.raises(AdminKeyError):
            admin(request(app=app, authorization=f"Bearer wrong {i}"))
    with pytest.raises(TooManyKeysError) as refused:
        admin(request(app=app, authorization=f"Bearer {sent}"))
    assert 0 < refused.value.retry_after <= 60
    with pytest.raises(TooManyKeysError):
        sign_in(request(app=app), key, key)
    assert admin(request("10.0.0.5", app=app, authorization=f"Bearer {sent}"))
    assert admin(request(app=app, cookie=inside))


def test_another_sites_page_can_make_nobody_give_wrong_keys(key):
    app = App()
    for i in range(MOST_WRONG):
        with pytest.raises(AdminRefusedError, match="own page"):
            sign_in(request(method="POST", app=app, origin="http://evil.example"), key, f"{i}")
    assert sign_in(request(method="POST", app=app, origin="http://localhost:8080"), key, key)


def test_a_session_does_not_contain_the_key(monkeypatch):
    assert "sesame" not in session_for("sesame")
    assert opens("sesame", "sesame")
    assert not opens("sesame", "Sesame")


def test_a_key_is_read_as_utf8_and_without_the_line_end_of_its_file(monkeypatch):
    monkeypatch.setenv(KEY, "열려라 참깨\n")
    sent = "Bearer 열려라 참깨".encode().decode("latin-1")
    assert admin(request(authorization=sent)) == "the admin key"


def test_a_key_of_nothing_but_blanks_is_none(monkeypatch):
    monkeypatch.setenv(KEY, " \n")
    assert admin(request()) == "this machine"
    with pytest.raises(AdminRefusedError):
        admin(request("10.0.0.5", authorization="Bearer "))


def test_a_client_says_for_whom_it_asks():
    assert admin(request(x_cascade_who="안나".encode().decode("latin-1"))) == "안나"
    assert admin(request(x_cascade_who="\xc5nn")) == "\xc5nn"
    assert admin(request(x_cascade_who="ann@desk")) == "ann@desk"
    assert admin(request(x_cascade_who="\x1b[31m" + "a" * 500)) == ("[31m" + "a" * 500)[:100]
    assert admin(request(x_cascade_who="  ")) == "this machine"
