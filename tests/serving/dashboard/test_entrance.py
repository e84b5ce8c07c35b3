"""Who is let in, and whose forms are taken."""

import asyncio

import pytest

from serving.admin.access import COOKIE, KEY
from serving.admin.door import MOST_WRONG
from serving.dashboard.routes import HEADERS
from serving.overrides.store import history

SECRET = "open sesame"


@pytest.fixture
def keyed(monkeypatch, no_key):
    monkeypatch.setenv(KEY, SECRET)


async def test_without_a_key_this_machine_is_let_in_and_no_other(visitor):
    assert (await visitor.get())[0] == 200
    status, body, _ = await visitor.get(headers={"x-forwarded-for": "10.1.2.3"})
    assert status == 403
    assert KEY in body
    assert (await visitor.get(headers={"host": "somebody.example"}))[0] == 403


async def test_with_a_key_a_visitor_signs_in_and_comes_to_where_they_wanted(keyed, visitor):
    status, body, answer = await visitor.get("/requests?status=ok")
    assert status == 200
    assert 'name="key"' in body
    action = str(answer.url.relative()).removeprefix("/dashboard")
    status, body, _ = await visitor.post(action, key="wrong")
    assert status == 403
    assert "That is not the key." in body
    status, _, answer = await visitor.post(action, key=f"{SECRET}\n", who="Mara  Lind\n")
    assert (status, answer.headers["location"]) == (303, "/dashboard/requests?status=ok")
    cookie = answer.cookies[COOKIE]
    assert cookie["httponly"]
    assert cookie["samesite"].lower() == "strict"
    assert SECRET not in cookie.value
    assert (await visitor.get("/requests"))[0] == 200


@pytest.mark.parametrize(("headers", "secure"), [({"x-forwarded-proto": "https"}, "1"), ({}, "")])
async def test_behind_a_proxy_with_https_cookies_never_go_without_it(
    keyed, visitor, headers, secure
):
    _, _, answer = await visitor.post("/login", headers, key=SECRET)
    assert str(int(answer.cookies[COOKIE]["secure"] or 0)) == (secure or "0")


async def test_a_name_is_written_beside_the_changes_that_it_makes(
    keyed, visiting, database, tmp_path
):
    visitor, service = await visiting(database.url, tmp_path)
    await visitor.post("/login", key=SECRET, who="마라 Lind")
    csrf = await visitor.csrf("/fleet")
    status, _, _ = await visitor.post(
        "/fleet", csrf=csrf, action="pin", tier="large", why="an outage"
    )
    assert status == 303
    [made] = history(service.watcher.database)
    assert (made.who, made.why, made.value) == ("마라 Lind", "an outage", {"tier": "large"})


async def test_signing_out_ends_the_session_also_for_who_has_a_copy_of_its_cookie(keyed, visitor):
    _, _, answer = await visitor.post("/login", key=SECRET)
    copy = answer.cookies[COOKIE].value
    csrf = await visitor.csrf()
    assert (await visitor.post("/logout", csrf=csrf))[0] == 303
    _, body, _ = await visitor.get("/requests")
    assert 'name="key"' in body
    visitor.session.cookie_jar.clear()
    _, body, _ = await visitor.get("/requests", headers={"cookie": f"{COOKIE}={copy}"})
    assert 'name="key"' in body


async def test_many_wrong_keys_are_a_page_that_says_when_to_try_again(keyed, visitor):
    async with asyncio.TaskGroup() as group:
        for i in range(MOST_WRONG):
            group.create_task(visitor.post("/login", key=f"wrong {i}"))
    status, body, answer = await visitor.post("/login", key=SECRET)
    assert status == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert "Too many wrong keys" in body
    assert f"Try again in {answer.headers['retry-after']} seconds." in body
    url = visitor.page.removesuffix("/dashboard")
    bearer = {"authorization": f"Bearer {SECRET}"}
    async with visitor.session.get(f"{url}/admin/overrides", headers=bearer) as answer:
        assert answer.status == 429
        assert (await answer.json())["error"]["type"] == "rate_limit_error"


async def test_a_form_that_comes_after_the_session_is_over_changes_nothing_and_says_so(
    keyed, visiting, database, tmp_path
):
    visitor, service = await visiting(database.url, tmp_path)
    status, body, _ = await visitor.post("/fleet", action="pin", tier="large", why="late")
    assert status == 401
    assert "You are signed out" in body
    assert 'href="/dashboard/fleet"' in body
    assert history(service.watcher.database) == []


async def test_a_form_that_is_not_this_browsers_own_changes_nothing(visiting, database, tmp_path):
    visitor, service = await visiting(database.url, tmp_path)
    csrf = await visitor.csrf("/fleet")
    wanted = {"action": "pin", "tier": "large", "why": "mischief"}
    foreign = {"sec-fetch-site": "cross-site"}
    assert (await visitor.post("/fleet", **wanted))[0] == 403
    assert (await visitor.post("/fleet", csrf="0" * len(csrf), **wanted))[0] == 403
    assert (await visitor.post("/fleet", foreign, csrf=csrf, **wanted))[0] == 403
    origin = {"origin": "http://somebody.example"}
    assert (await visitor.post("/fleet", origin, csrf=csrf, **wanted))[0] == 403
    visitor.session.cookie_jar.clear()
    assert (await visitor.post("/fleet", csrf=csrf, **wanted))[0] == 403
    assert history(service.watcher.database) == []


async def test_a_form_of_any_size_is_not_read(visitor):
    csrf = await visitor.csrf("/fleet")
    assert (await visitor.post("/fleet", csrf=csrf, why="x" * 100_000))[0] == 413


@pytest.mark.parametrize("to", ["//somebody.example/", "https://x.example", "/v1/models", "/\\x"])
async def test_nobody_is_sent_elsewhere(visitor, to):
    async with visitor.session.get(
        f"{visitor.page}/prefer", params={"theme": "dark", "to": to}, allow_redirects=False
    ) as answer:
        assert answer.headers["location"] == "/dashboard/"


async def test_language_and_theme_are_kept(visitor):
    _, body, _ = await visitor.get(headers={"accept-language": "ko-KR,ko;q=0.9,en;q=0.8"})
    assert '<html lang="ko" data-theme="auto">' in body
    await visitor.get("/prefer?theme=dark&to=/dashboard/")
    _, body, _ = await visitor.get("/prefer?language=ko&to=/dashboard/fleet")
    assert '<html lang="ko" data-theme="dark">' in body
    assert "서버" in body


@pytest.mark.parametrize("path", ["/", "/nothing", "/requests/nothing", "/static/x/page.css"])
async def test_every_answer_says_what_a_browser_is_to_keep_it_from(visitor, path):
    _, _, answer = await visitor.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "unsafe" not in HEADERS["content-security-policy"]


async def test_a_page_is_not_kept_by_anybody_in_between(visitor):
    _, _, answer = await visitor.get("/requests")
    assert answer.headers["cache-control"] == "no-store"
