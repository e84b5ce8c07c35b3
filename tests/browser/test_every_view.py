"""What holds for every view: nothing leaves the machine, nobody is shut out, and it looks right.

With CASCADE_SCREENSHOTS set, pictures are written to docs/screenshots as well.
"""

import os
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.async_api import expect

from serving.store.database import engine_for
from serving.store.queries import tail
from tests.browser.conftest import DESK, PHONE
from tests.browser.traffic import HOSTILE

VIEWS = {
    "overview": "/",
    "requests": "/requests",
    "judges": "/judges",
    "experiments": "/experiments",
    "experiment": "/experiments/auto",
    "fleet": "/fleet",
    "playground": "/playground",
}
HOSTILE_VIEWS = {
    "overview of long names": "/?range=7d",
    "requests of long names": f"/requests?{urlencode({'tenant': HOSTILE})}",
    "request of long names": "/requests/wide",
}
PICTURES = Path(__file__).parents[2] / "docs" / "screenshots"
MOST_BYTES = 200_000
TALLEST = 1_800
COLOURS = 64
DARK = "rgb(15, 21, 27)"
LOOKS = {
    "light": {"scheme": "light"},
    "dark": {"scheme": "dark"},
    "phone": {"screen": PHONE},
    "korean": {"language": "ko-KR"},
}

BARRIERS = Path(__file__).with_name("barriers.js").read_text(encoding="utf-8")
"""What a person who cannot see or has no mouse needs; each finding names what is in their way."""

FAINT = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
"""Texts that are too faint by WCAG 2.1, which wants 4.5 to 1."""


CUT = """e => {
  const holder = e.closest(".names");
  return holder.scrollWidth > holder.clientWidth
    && getComputedStyle(holder).textOverflow === "ellipsis";
}"""


def paths(log):
    engine = engine_for(log)
    row = next(
        each
        for each in tail(engine, 400)
        if each.answers > 1
        and each.session.removeprefix("s-").isdigit()
        and int(each.session.removeprefix("s-")) % 5 == 0
        and each.id[3] != "0"
    )
    engine.dispose()
    return {**VIEWS, "request": f"/requests/{row.id}"}


async def settled(page):
    await page.wait_for_load_state("networkidle")
    for plot in await page.locator("[data-chart]").all():
        await expect(plot.locator(".main-svg").first).to_be_attached()


@pytest.mark.parametrize("look", LOOKS)
async def test_no_view_complains_shuts_anybody_out_or_is_wider_than_the_screen(browse, log, look):
    async with browse(**LOOKS[look]) as visitor:
        for name, path in {**paths(log), **HOSTILE_VIEWS}.items():
            page = await visitor.open(path)
            await settled(page)
            assert await page.evaluate(BARRIERS) == [], name
            assert await page.evaluate(FAINT) == [], name
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= (LOOKS[look].get("screen") or DESK)["width"], name
            if os.environ.get("CASCADE_SCREENSHOTS") and name not in HOSTILE_VIEWS:
                await picture(page, f"{name}-{look}")
            await page.close()


HIDDEN = """() => {
  const e = document.activeElement, box = e.getBoundingClientRect();
  if (e === document.body) return null;
  const middle = [box.x + box.width / 2, box.y + Math.min(box.height, 20) / 2];
  const shown = document.elementFromPoint(...middle);
  const style = getComputedStyle(e);
  if (style.outlineStyle === "none" && style.boxShadow === "none") return `unseen ${e.outerHTML}`;
  return shown && (e.contains(shown) || shown.contains(e)) ? "" : `hidden ${e.outerHTML}`;
}"""
"""What is wrong with what has the focus; null where nothing has it."""


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
async def test_what_has_the_focus_is_in_sight(browse, screen):
    async with browse(screen=screen) as visitor:
        for path in ("/", "/judges", "/experiments/auto?wait=yes", "/fleet"):
            page = await visitor.open(path)
            await settled(page)
            stops = 0
            while stops < 60:
                await page.keyboard.press("Tab")
                wrong = await page.evaluate(HIDDEN)
                if wrong is None:
                    break
                assert wrong == "", path
                stops += 1
            assert stops > 15, path
            await page.close()


@pytest.mark.parametrize("path", ["/?range=7d", f"/requests?{urlencode({'tenant': HOSTILE})}"])
async def test_a_long_name_is_cut_so_that_the_numbers_beside_it_are_in_sight(browse, path):
    async with browse() as visitor:
        page = await visitor.open(path)
        name = page.locator(".name").get_by_text(HOSTILE, exact=True).first
        assert await name.get_attribute("title") == HOSTILE
        assert await name.evaluate(CUT)
        region = page.locator("main .scroll").filter(has=name)
        edge = await region.bounding_box()
        for number in await region.locator("td.number").all():
            box = await number.bounding_box()
            assert box["x"] + box["width"] <= edge["x"] + edge["width"] + 1


async def picture(page, name):
    """The top of a page, in so few colours that the file is small."""
    from PIL import Image

    size = page.viewport_size
    whole = await page.evaluate("document.documentElement.scrollHeight")
    tall = min(TALLEST, max(whole, size["height"]))
    await page.set_viewport_size({"width": size["width"], "height": tall})
    shot = await page.screenshot()
    PICTURES.mkdir(parents=True, exist_ok=True)
    file = PICTURES / f"{name}.png"
    Image.open(BytesIO(shot)).convert("RGB").quantize(COLOURS).save(file, optimize=True)
    assert file.stat().st_size < MOST_BYTES


async def test_everything_can_be_reached_and_seen_by_keyboard(browse):
    async with browse() as visitor:
        page = await visitor.open("/experiments/auto")
        await page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the content")
        await expect(skip).to_be_focused()
        await expect(skip).to_be_in_viewport()
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "main"
        wanted = await page.locator(
            "main a[href], main button:visible, main input:visible, main summary"
        ).count()
        seen = set()
        for _ in range(wanted + 10):
            await page.keyboard.press("Tab")
            told = await page.evaluate(
                "() => { const e = document.activeElement, s = getComputedStyle(e);"
                " return [e.outerHTML.slice(0, 300), s.outlineStyle, s.outlineWidth]; }"
            )
            if told[0].startswith("<body"):
                break
            assert told[1:] == ["solid", "2px"], told
            seen.add(told[0])
        assert len(seen) >= wanted


async def test_the_theme_and_the_language_that_are_chosen_stay(browse):
    async with browse() as visitor:
        page = await visitor.open("/fleet")
        await page.get_by_role("link", name="Dark theme").click()
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        await expect(page.locator("body")).to_have_css("background-color", DARK)
        await page.get_by_role("link", name="한국어").click()
        await page.get_by_role("link", name="요청").first.click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("요청")
        await expect(page.locator("body")).to_have_css("background-color", DARK)


async def test_a_part_that_looks_again_shows_what_is_new(browse, served):
    async with browse() as visitor:
        page = await visitor.open("/fleet")
        answered = page.locator('[data-tier="small"] dd').nth(4)
        before = await answered.text_content()
        served.ask("always-small", "hi")
        await expect(answered).not_to_have_text(before, timeout=25_000)
