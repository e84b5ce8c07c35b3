"""Signing in with the admin key, as a browser does it."""

import shutil

import pytest
from playwright.async_api import expect

from serving.admin.access import COOKIE, KEY
from serving.store.schema import upgrade
from tests.browser.conftest import CONFIG, executable
from tests.end_to_end.processes import CascadeProcess

SECRET = "open sesame"


@pytest.fixture
def keyed(tmp_path):
    executable()
    config = tmp_path / CONFIG.name
    shutil.copyfile(CONFIG, config)
    upgrade(f"sqlite:///{tmp_path}/cascade.db")
    process = CascadeProcess(config, CASCADE_HOME=str(tmp_path / "home"), **{KEY: SECRET})
    process.start()
    yield process
    process.stop()


async def test_who_is_signed_out_meanwhile_is_asked_to_sign_in_again(browse, keyed):
    async with browse() as visitor:
        visitor.root = f"{keyed.url}/dashboard"
        page = await visitor.open("/fleet")
        await page.get_by_label("Admin key").fill(SECRET)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")
        await visitor.context.clear_cookies()
        await page.evaluate("""() => { renew(document.getElementById("fleet"), location.href); }""")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


async def test_who_has_the_key_signs_in_changes_something_and_signs_out(browse, keyed):
    async with browse() as visitor:
        visitor.root = f"{keyed.url}/dashboard"
        page = await visitor.open("/fleet")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        await page.get_by_label("Admin key").fill(SECRET)
        await page.get_by_label("Your name (optional)").fill("Mara")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")
        [cookie] = [c for c in await visitor.context.cookies() if c["name"] == COOKIE]
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (
            *(True, "Strict", "/dashboard"),
        )
        assert await page.evaluate("document.cookie") == ""
        await page.locator('[data-tier="large"]').get_by_role("button", name="Drain").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Reason, for the log").fill("it is slow")
        await dialog.get_by_role("button", name="Do it").click()
        await expect(page.get_by_text("Drained by Mara: it is slow")).to_be_visible()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        await page.goto(f"{visitor.root}/requests")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
