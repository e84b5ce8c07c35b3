from dataclasses import replace

import aiohttp
import pytest

from serving.admin.access import KEY
from tests.services import running, snapshot


class Client:
    def __init__(self, session, url):
        self._session = session
        self._url = url

    async def ask(self, method, path, body=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.request(
            method, self._url + path, json=body, headers=named
        ) as answer:
            return answer.status, await answer.json(), answer.headers

    async def get(self, path, **headers):
        return await self.ask("GET", path, **headers)

    async def put(self, path, **body):
        return await self.ask("PUT", path, {"why": "a look", **body})

    async def chat(self, model="auto", session="s"):
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        return await self.ask("POST", "/v1/chat/completions", body, x_cascade_session=session)


@pytest.fixture
async def client(worker):
    started = await worker()
    async with aiohttp.ClientSession() as session:
        yield Client(session, started.url)


async def test_it_lists_what_the_file_says_and_what_holds(client):
    status, body, _ = await client.get("/admin/experiments")
    assert status == 200
    listed = body["experiments"]
    assert [each["name"] for each in listed] == ["auto"]
    assert listed[0]["status"] == "running"
    assert listed[0]["override"] is None
    assert listed[0]["file"] == {
        "enabled": True,
        "ramp": 1.0,
        "weights": {"cascade": 1, "always-small": 1},
        "start": None,
        "end": None,
    }
    assert listed[0]["arms"][1] == {
        "name": "always-small",
        "policy": "always-small",
        "estimator": None,
        "weight": 1,
    }


async def test_a_toggle_changes_the_next_request_and_back(client):
    arms = {(await client.chat(session=f"s{i}"))[2].get("x-cascade-arm") for i in range(20)}
    assert arms == {"cascade", "always-small"}
    status, body, _ = await client.put("/admin/experiments/auto", weights={"cascade": 0})
    assert (status, body["weights"]) == (200, {"cascade": 0.0, "always-small": 1})
    arms = {(await client.chat(session=f"s{i}"))[2].get("x-cascade-arm") for i in range(20)}
    assert arms == {"always-small"}
    status, body, _ = await client.ask("DELETE", "/admin/experiments/auto", {"why": "enough"})
    assert (status, body["override"]) == (200, None)
    arms = {(await client.chat(session=f"s{i}"))[2].get("x-cascade-arm") for i in range(20)}
    assert arms == {"cascade", "always-small"}


async def test_the_kill_switch_leaves_nobody_in(client):
    await client.put("/admin/experiments/auto", enabled=False)
    status, _, headers = await client.chat()
    assert status == 200
    assert "x-cascade-arm" not in headers
    assert headers["x-cascade-policy"] == "ladder"
    assert (await client.get("/admin/experiments/auto"))[1]["status"] == "off"


async def test_a_request_is_recorded_with_the_override_in_force_beside_the_files_version(worker):
    started = await worker()
    async with aiohttp.ClientSession() as session:
        client = Client(session, started.url)
        await client.chat()
        version = (await client.put("/admin/experiments/auto", ramp=1.0))[1]["version"]
        await client.chat()
        pinned = (await client.put("/admin/pin", tier="large"))[1]["version"]
        await client.chat()
    results = started.log.results
    assert [result.experiment_version for result in results] == [None, version, pinned]
    assert {result.config_version for result in results} == {"v1"}
    assert [result.experiment for result in results] == ["auto", "auto", None]


async def test_what_is_not_named_stays_and_null_is_as_in_the_file(client):
    await client.put("/admin/experiments/auto", ramp=0.5, weights={"cascade": 3})
    _, body, _ = await client.put("/admin/experiments/auto", ramp=None)
    assert (body["ramp"], body["weights"]) == (1.0, {"cascade": 3, "always-small": 1})


async def test_the_history_says_who_when_and_why(client):
    await client.ask(
        "PUT", "/admin/experiments/auto", {"why": "slow start", "ramp": 0.1}, x_cascade_who="ann"
    )
    await client.put("/admin/pin", tier="large")
    _, body, _ = await client.get("/admin/overrides")
    newest, oldest = body["history"]
    assert (newest["subject"], newest["who"]) == ("pin", "this machine")
    assert (oldest["who"], oldest["why"], oldest["value"]) == ("ann", "slow start", {"ramp": 0.1})
    assert oldest["created_at"].endswith("+00:00")
    _, body, _ = await client.get("/admin/overrides?subject=pin&limit=1")
    assert [each["subject"] for each in body["history"]] == ["pin"]
    _, body, _ = await client.get("/admin/experiments/auto")
    assert [each["why"] for each in body["history"]] == ["slow start"]


async def test_two_people_do_not_overwrite_each_other(client):
    _, seen, headers = await client.get("/admin/experiments/auto")
    assert (headers["etag"], seen["version"]) == ('"0"', 0)
    first = {"why": "mine", "ramp": 0.5}
    status, body, _ = await client.ask("PUT", "/admin/experiments/auto", first, if_match='"0"')
    assert status == 200
    status, refused, _ = await client.ask("PUT", "/admin/experiments/auto", first, if_match='"0"')
    assert (status, refused["error"]["code"]) == (412, "version_conflict")
    assert "this machine: mine" in refused["error"]["message"]
    status, refused, _ = await client.put("/admin/experiments/auto", ramp=0, expected_version=0)
    assert status == 412
    again = {"why": "ours", "ramp": 0.6, "expected_version": body["version"]}
    assert (await client.ask("PUT", "/admin/experiments/auto", again))[0] == 200


async def test_everything_goes_to_the_pinned_tier_until_it_ends(client):
    status, body, _ = await client.put("/admin/pin", tier="large", for_seconds=3600)
    assert (status, body["pin"]["value"]) == (200, {"tier": "large"})
    for model in ("auto", "always-small", "small"):
        assert (await client.chat(model))[2]["x-cascade-tier"] == "large"
    assert (await client.ask("DELETE", "/admin/pin?why=done"))[0] == 200
    assert (await client.chat("small"))[2]["x-cascade-tier"] == "small"


async def test_nobody_is_sent_to_a_drained_tier_and_the_answer_says_why(client):
    assert (await client.put("/admin/drain/large"))[1]["drains"].keys() == {"large"}
    status, body, _ = await client.chat("large")
    assert status == 503
    assert "large is drained: a look" in body["error"]["message"]
    assert (await client.chat("cascade"))[2]["x-cascade-tier"] == "small"
    assert (await client.ask("DELETE", "/admin/drain/large", {"why": "mended"}))[0] == 200
    assert (await client.chat("large"))[0] == 200


async def test_what_no_tier_could_serve_anyway_is_not_to_be_tried_again(worker):
    file = replace(snapshot(), ruled_out=lambda _: {"small": "is ruled out: no"})
    started = await worker(snapshot=file)
    async with aiohttp.ClientSession() as session:
        client = Client(session, started.url)
        assert (await client.put("/admin/drain/large"))[0] == 200
        status, body, _ = await client.chat("always-small")
        assert (status, body["error"]["code"]) == (400, "no_tier_fits")
        assert (await client.chat("cascade"))[0] == 503
        await client.ask("DELETE", "/admin/drain/large", {"why": "mended"})
        assert (await client.put("/admin/drain/small"))[0] == 200
        assert (await client.chat("always-small"))[0] == 400


async def test_readiness_shows_what_is_overridden(worker):
    started = await worker()
    assert started.watcher.report() == {
        "status": "ok",
        "pin": None,
        "drained": [],
        "experiments": [],
        "left_out": [],
    }


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/admin/experiments/auto", {"ramp": 1}, 400, "why"),
        ("/admin/experiments/auto", {"ramp": 1, "why": ""}, 400, "why"),
        ("/admin/experiments/auto", {"ramp": 1, "why": "  "}, 400, "why"),
        ("/admin/experiments/auto", {"why": "w"}, 400, "nothing to change"),
        ("/admin/experiments/auto", {"why": "w", "ramp": 2}, 400, "ramp"),
        ("/admin/experiments/auto", {"why": "w", "ramp": "half"}, 400, "ramp"),
        ("/admin/experiments/auto", {"why": "w", "ramps": 1}, 400, "ramps"),
        ("/admin/experiments/auto", {"why": "w", "weights": {"b": 1}}, 400, "no arm 'b'"),
        ("/admin/experiments/auto", {"why": "w", "weights": {"cascade": -1}}, 400, "weights"),
        ("/admin/experiments/auto", {"why": "w", "start": "2027-01-01T00:00:00"}, 400, "start"),
        ("/admin/experiments/auto", {"why": "w", "until": "2020-01-01T00:00:00Z", "ramp": 1}, 400,
         "over already"),
        ("/admin/experiments/auto",
         {"why": "w", "until": "2090-01-01T00:00:00Z", "for_seconds": 5, "ramp": 1}, 400, "both"),
        ("/admin/experiments/auto", {"why": "w", "until": "2090-01-01T00:00:00Z", "ramp": 1}, 400,
         "until: at most 30 days"),
        ("/admin/pin", {"why": "w", "tier": "large", "for_seconds": 31 * 86400}, 400,
         "for_seconds"),
        ("/admin/pin?why=w&tier=large&for_seconds=nan", None, 400, "for_seconds"),
        ("/admin/pin?why=w&tier=large&for_seconds=inf", None, 400, "for_seconds"),
        ("/admin/pin", {"why": "w", "tier": "large", "for_seconds": 0}, 400, "for_seconds"),
        ("/admin/experiments/gone", {"why": "w", "ramp": 1}, 404, "no experiment 'gone'"),
        ("/admin/pin", {"why": "w"}, 400, "tier"),
        ("/admin/pin", {"why": "w", "tier": "gone"}, 400, "no tier 'gone'"),
        ("/admin/drain/gone", {"why": "w"}, 400, "no tier 'gone'"),
    ],
)  # fmt: skip
async def test_what_cannot_be_is_refused_by_its_name(client, path, body, status, said):
    found, answer, _ = await client.ask("PUT", path, body)
    assert found == status, answer
    assert said in answer["error"]["message"]
    assert (await client.get("/admin/overrides"))[1]["version"] == 0


async def test_a_precondition_that_is_none_is_refused(client):
    body = {"why": "w", "ramp": 1}
    for tag in ('"x"', "9" * 5000):
        status, answer, _ = await client.ask("PUT", "/admin/experiments/auto", body, if_match=tag)
        assert (status, answer["error"]["param"]) == (400, "if-match")
    for limit in ("0", "x", "9" * 5000):
        assert (await client.get(f"/admin/overrides?limit={limit}"))[0] == 400


@pytest.mark.parametrize("path", ["/admin/experiments", "/admin/overrides", "/admin/experiments/a"])
async def test_without_the_key_nothing_is_told(client, path, monkeypatch):
    monkeypatch.setenv(KEY, "sesame")
    assert (await client.get(path))[0] == 401
    assert (await client.get(path, authorization="Bearer sesame"))[0] in {200, 404}


async def test_nobody_changes_anything_without_the_key(client, monkeypatch):
    monkeypatch.setenv(KEY, "sesame")
    for method, path in (
        ("PUT", "/admin/experiments/auto"),
        ("DELETE", "/admin/experiments/auto"),
        ("PUT", "/admin/pin"),
        ("DELETE", "/admin/pin"),
        ("PUT", "/admin/drain/large"),
        ("DELETE", "/admin/drain/large"),
    ):
        assert (await client.ask(method, path, {"why": "w", "tier": "large"}))[0] == 401
    monkeypatch.delenv(KEY)
    assert (await client.get("/admin/overrides"))[1]["history"] == []


async def test_a_service_without_a_database_says_that_it_keeps_none():
    async with running(snapshot()) as service, aiohttp.ClientSession() as session:
        status, body, _ = await Client(session, service.url).get("/admin/overrides")
    assert (status, body["error"]["code"]) == (503, "no_overrides")
