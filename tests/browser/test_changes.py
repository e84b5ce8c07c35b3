"""Changes that an operator makes with the mouse, as a client sees them."""

from playwright.async_api import expect


def arms(served):
    """The arms of some sessions, which are in both when both have a share."""
    sessions = [{"session": f"unit {i}"} for i in range(8)]
    return {served.ask("auto", "hi", cascade=each)[2]["x-cascade-arm"] for each in sessions}


async def confirm(page, why):
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await dialog.get_by_label("Reason, for the log").fill(why)
    await dialog.get_by_role("button", name="Do it").click()
    await expect(dialog).to_be_hidden()


async def test_turning_an_arm_off_changes_the_next_request_and_on_again_the_one_after(
    browse, served
):
    assert arms(served) == {"control", "cascade"}
    async with browse() as visitor:
        page = await visitor.open("/experiments/auto")
        control = page.locator('[data-arm="control"]')
        await control.get_by_role("button", name="Turn off").click()
        await confirm(page, "it is too dear")
        assert arms(served) == {"cascade"}
        await expect(page.get_by_text("it is too dear").first).to_be_visible()
        await page.locator('[data-arm="control"]').get_by_role("button", name="Turn on").click()
        await confirm(page, "the price fell")
        assert arms(served) == {"control", "cascade"}
        await page.get_by_role("button", name="Back to the file").click()
        await confirm(page, "as it was")
        await expect(page.get_by_text("The file is overridden")).to_have_count(0)


async def test_a_change_needs_a_reason_and_can_be_thought_better_of(browse, served):
    async with browse() as visitor:
        page = await visitor.open("/experiments/auto")
        await page.get_by_role("button", name="Stop").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Do it").click()
        await expect(dialog).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await expect(page.get_by_text("running")).to_be_visible()
    assert arms(served) == {"control", "cascade"}


async def test_a_pinned_tier_answers_everything_until_it_is_unpinned(browse, served):
    async with browse() as visitor:
        page = await visitor.open("/fleet")
        await page.locator('[data-tier="small"]').get_by_role("button", name="Pin").first.click()
        await confirm(page, "the large one is slow")
        assert served.ask("always-large", "hi")[2]["x-cascade-tier"] == "small"
        await page.get_by_role("button", name="Unpin").first.click()
        await confirm(page, "it is well again")
        assert served.ask("always-large", "hi")[2]["x-cascade-tier"] == "large"


async def test_shares_are_changed_once_it_is_confirmed(browse, served):
    async with browse() as visitor:
        page = await visitor.open("/experiments/auto")
        form = page.locator("form[data-confirm]")
        await form.get_by_label("Weight of control").fill("0")
        await form.get_by_label("Reason, for the log").fill("all of it")
        page.once("dialog", lambda dialog: dialog.dismiss())
        await form.get_by_role("button", name="Change").click()
        assert arms(served) == {"control", "cascade"}
        page.once("dialog", lambda dialog: dialog.accept())
        await form.get_by_role("button", name="Change").click()
        await expect(page.get_by_text("The file is overridden")).to_be_visible()
        assert arms(served) == {"cascade"}
        await page.get_by_role("button", name="Back to the file").click()
        await confirm(page, "as it was")
        assert arms(served) == {"control", "cascade"}
