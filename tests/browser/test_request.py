"""One request on the page against its rows in the audit log."""

import pytest
from playwright.async_api import expect

from serving.store.database import engine_for
from serving.store.queries import show, tail


@pytest.fixture
def rows(log):
    engine = engine_for(log)
    yield engine
    engine.dispose()


async def test_the_waterfall_is_what_the_audit_rows_say(browse, rows):
    row = next(each for each in tail(rows, 400) if each.answers > 1)
    async with browse() as visitor:
        page = await visitor.open(f"/requests/{row.id}")
        bars = page.locator(".fall > li")
        await expect(bars).to_have_count(len(row.attempts))
        lane = await page.locator(".fall .lane").first.bounding_box()
        assert lane is not None
        for i, attempt in enumerate(row.attempts):
            bar = bars.nth(i)
            assert await bar.get_attribute("data-kind") == attempt.kind
            assert await bar.get_attribute("data-tier") == attempt.tier
            assert float(await bar.get_attribute("data-started-ms")) == attempt.started_ms
            box = await bar.locator("rect.span").bounding_box()
            began = (box["x"] - lane["x"]) / lane["width"] * row.duration_ms
            assert began == pytest.approx(attempt.started_ms, abs=0.006 * row.duration_ms)
            took = box["width"] / lane["width"] * row.duration_ms
            assert took == pytest.approx(attempt.duration_ms, abs=0.006 * row.duration_ms)
            await expect(bar.get_by_text(attempt.reason, exact=True)).to_be_visible()


async def test_a_request_is_found_and_opened_by_keyboard(browse, rows):
    [row] = tail(rows, 1)
    async with browse() as visitor:
        page = await visitor.open("/requests")
        await page.get_by_label("Request id begins with, or session").fill(row.id[:14])
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/requests?id=*")
        link = page.get_by_role("link", name=row.id[:12])
        await link.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_contain_text(row.id[:12])


async def test_the_segment_that_missed_the_cache_is_named(browse, log, rows):
    # Every fifth session has the time in its system prompt; an id begins with session and turn. A
    # call that failed read nothing, so the turn and the one before it have to have been answered.
    answered = {each.id[:4]: each for each in tail(rows, 1000) if each.status != "error"}
    row = next(
        answered[f"{session:03d}{turn}"]
        for session in range(0, 1000, 5)
        for turn in range(1, 5)
        if {f"{session:03d}{turn}", f"{session:03d}{turn - 1}"} <= answered.keys()
        and answered[f"{session:03d}{turn}"].session == f"s-{session}"
    )
    async with browse() as visitor:
        page = await visitor.open(f"/requests/{row.id}")
        await expect(page.locator("tr.missed").first).to_contain_text("System prompt")
        await expect(page.get_by_text("could have been read from the cache").first).to_be_visible()


async def test_times_are_the_viewers(browse, rows):
    [row] = tail(rows, 1)
    async with browse() as visitor:
        page = await visitor.open("/requests")
        first = page.locator("tbody time").first
        shown = await first.evaluate(
            "e => e.textContent === new Intl.DateTimeFormat('en', {dateStyle: 'short', "
            "timeStyle: 'medium', timeZone: 'Asia/Seoul'}).format(new Date(e.dateTime))"
        )
        assert shown
    assert show(rows, row.id).id == row.id
