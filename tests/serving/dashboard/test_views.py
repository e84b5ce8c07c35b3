"""Every view on both databases, with traffic and without."""

import asyncio
from contextlib import AsyncExitStack
from html import unescape

import pytest

from serving.dashboard.visit import VIEWS
from serving.store.database import engine_for
from serving.store.queries import show

KOREAN = {"accept-language": "ko"}
MOST_CONNECTIONS = 15
PATHS = ["/", *(f"/{view}" for view in VIEWS if view != "overview")]


@pytest.mark.parametrize("path", PATHS)
async def test_a_view_of_an_empty_log_says_what_to_do(visitor, path):
    status, body, _ = await visitor.get(path)
    assert status == 200
    if path in {"/", "/requests", "/judges"}:
        assert 'class="empty"' in body


async def test_every_view_shows_what_the_log_has(visiting, traffic, tmp_path):
    url, made = traffic
    visitor, _ = await visiting(url, tmp_path)
    for path in [*PATHS, "/?range=30d", "/?tenant=acme", "/experiments/auto"]:
        status, body, _ = await visitor.get(path)
        assert status == 200, path
        assert 'class="empty"' not in body or path == "/judges", path
    _, body, _ = await visitor.get("/?range=90d")
    assert f"<strong>{len(made.results)}</strong>" in body


async def test_requests_are_paged_without_a_gap_or_a_repetition(visiting, traffic, tmp_path):
    url, made = traffic
    visitor, _ = await visiting(url, tmp_path)
    path, seen = "/requests?tenant=acme", []
    while path:
        _, body, _ = await visitor.get(path)
        seen += [
            piece.partition('"')[0] for piece in body.split('<a href="/dashboard/requests/')[1:]
        ]
        query = body.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
        path = f"/requests{query}" if query else None
    those = [each for each in made.results if each.request.tenant == "acme"]
    assert seen == [each.request.id for each in reversed(those)]


async def test_requests_are_found_by_what_they_are(visiting, traffic, tmp_path):
    url, made = traffic
    visitor, _ = await visiting(url, tmp_path)
    one = made.results[7].request.id
    for query in (f"id={one[:10]}", f"id=chatcmpl-{one}"):
        _, body, _ = await visitor.get(f"/requests?{query}")
        assert body.count('<th role="rowheader"') == 1
        assert one in body
    session = next(each.request.session for each in made.results if "-2" in each.request.session)
    _, body, _ = await visitor.get(f"/requests?id={session}")
    those = [each for each in made.results if each.request.session == session]
    assert body.count('<th role="rowheader"') == len(those)
    _, body, _ = await visitor.get("/requests?id=nothing")
    assert "No request matches." in body
    _, body, _ = await visitor.get("/requests?status=error&tier=large")
    assert "No request matches." in body


async def test_a_request_shows_each_of_its_attempts_as_the_row_has_it(visiting, traffic, tmp_path):
    url, made = traffic
    visitor, _ = await visiting(url, tmp_path)
    one = next(each for each in made.results if each.answers > 1)
    _, body, _ = await visitor.get(f"/requests/{one.request.id}")
    body = unescape(body)
    engine = engine_for(url)
    row = show(engine, one.request.id)
    engine.dispose()
    assert body.count('<li class="kind-') == len(row.attempts)
    for attempt in row.attempts:
        assert f'data-started-ms="{attempt.started_ms}"' in body
        assert f'data-duration-ms="{attempt.duration_ms}"' in body
        assert attempt.reason in body


async def test_a_request_that_is_not_there_is_a_page_that_says_so(visitor):
    status, body, _ = await visitor.get("/requests/nothing")
    assert status == 404
    assert "no request in the audit log begins with" in body
    assert "may take a moment longer" in body
    assert 'aria-label="Views"' in body


@pytest.mark.parametrize(
    "path",
    [
        *("/requests?tenant=%00", "/requests?id=a%00&session=%00", "/?tenant=%00&experiment=%00"),
        *("/requests?before=nan,x", "/requests?before=inf,%00", "/requests?before=,"),
        *(
            "/?range=days&from=9999-12-31&to=9999-12-31",
            "/?range=days&from=0001-01-01&to=9999-12-31",
        ),
        *("/judges?range=days&from=2026-02-30&to=x", "/requests?tenant=%27%20OR%201%3D1%20--"),
        "/requests?session=%ff%fe",
    ],
)
async def test_whatever_an_address_asks_for_is_answered(visiting, traffic, tmp_path, path):
    url, made = traffic
    visitor, _ = await visiting(url, tmp_path)
    status, body, _ = await visitor.get(path)
    assert status == 200
    if "tenant" in path:
        assert made.results[-1].request.id[:12] not in body
    assert (await visitor.get("/requests/a%00"))[0] == 404


async def test_what_clients_wrote_is_shown_and_not_run(visiting, traffic, tmp_path):
    url, _ = traffic
    visitor, _ = await visiting(url, tmp_path)
    _, body, _ = await visitor.get("/requests?tenant=<script>alert(1)</script>")
    assert "<script>alert" not in body
    assert "&lt;script&gt;alert" in body


async def test_a_database_that_is_away_is_a_page_that_says_so(visiting, database, tmp_path):
    visitor, _ = await visiting(database.url, tmp_path)
    status, _, _ = await visitor.get("/requests")
    assert status == 200
    if database.url.startswith("sqlite"):
        return  # it still answers who only reads
    with database.outage():
        for path in {*PATHS, "/requests/x", "/experiments/auto"} - {"/playground"}:
            status, body, answer = await visitor.get(path)
            assert (status, answer.headers["retry-after"]) == (503, "5"), path
            assert 'role="alert"' in body
            assert f'<a href="/dashboard{path}">Try again</a>' in body
    assert (await visitor.get("/requests"))[0] == 200


async def test_where_all_connections_are_in_use_a_page_says_so_in_the_visitors_language(
    visiting, database, tmp_path
):
    visitor, service = await visiting(database.url, tmp_path)
    held = service.watcher.database
    async with AsyncExitStack() as stack:
        while held.pool.checkedout() < MOST_CONNECTIONS:
            connection = await asyncio.to_thread(held.connect)
            stack.push_async_callback(asyncio.to_thread, connection.close)
        async with asyncio.TaskGroup() as group:
            page = group.create_task(visitor.get("/requests?status=ok", headers=KOREAN))
            admin = group.create_task(visitor.session.get(f"{service.url}/admin/overrides"))
        status, body, answer = page.result()
        assert (status, answer.headers["retry-after"]) == (503, "5")
        assert "5초 뒤에 다시 시도하세요" in body
        assert "are in use" in body
        told = admin.result()
        assert (told.status, told.headers["retry-after"]) == (503, "5")
        assert (await told.json())["error"]["code"] == "audit_unavailable"
    assert (await visitor.get("/requests"))[0] == 200


async def test_sentences_of_the_log_are_told_in_the_visitors_language(visitor):
    path = "/told?said=large+failed&said=%3Cb%3E+is+odd"
    for language, told in (("ko", "large 실패"), ("en", "large failed")):
        _, _, answer = await visitor.get(path, headers={"accept-language": language})
        assert await answer.json() == [told, "<b> is odd"]
    many = "&".join(["said=x"] * 60)
    _, _, answer = await visitor.get(f"/told?{many}")
    assert len(await answer.json()) == 50


@pytest.mark.parametrize("name", ["page.css", "page.js", "charts.js", "plotly.js"])
async def test_files_are_kept_for_as_long_as_they_do_not_change(visitor, name):
    _, body, _ = await visitor.get("/")
    path = body.partition("/dashboard/static/")[2].partition("/")[0]
    status, text, answer = await visitor.get(f"/static/{path}/{name}")
    assert status == 200
    assert len(text) > 1000
    assert "immutable" in answer.headers["cache-control"]
    assert (await visitor.get("/static/x/nothing.js"))[0] == 404
