"""A prompt through a policy, with the answer as it comes and the decision behind it."""

from itertools import pairwise

import pytest
from playwright.async_api import expect


async def test_an_answer_streams_and_its_decision_is_shown_and_in_the_log(browse):
    async with browse() as visitor:
        page = await visitor.open("/playground")
        await page.get_by_label("Answered by").select_option("careful")
        await page.get_by_label("Prompt", exact=True).fill("What is 17 + 26?")
        await page.keyboard.press("Control+Enter")
        answer = page.locator("#answer")
        await expect(answer).to_have_text("Seventeen and twenty-six are forty-three.")
        decision = page.locator("#decision")
        await expect(decision).to_contain_text("large (large-model)")
        steps = decision.locator("tr.attempt")
        await expect(steps).to_have_count(3)
        await expect(steps.first).to_contain_text("rejected")
        await expect(steps.first).to_contain_text("/ 0.999")
        await expect(decision.locator("tr.because").last).to_contain_text("below 0.999")
        await page.wait_for_timeout(500)  # the row is on its way to the database
        await page.get_by_role("link", name="Open it in the log").click()
        await expect(page.locator(".fall > li")).to_have_count(3)


async def test_the_decision_is_said_in_the_visitors_language(browse):
    async with browse(language="ko-KR") as visitor:
        page = await visitor.open("/playground")
        await page.get_by_label("답할 대상").select_option("careful")
        await page.get_by_label("프롬프트", exact=True).fill("17 + 26?")
        await page.keyboard.press("Control+Enter")
        decision = page.locator("#decision")
        await expect(decision.locator("tr.because").first).to_have_text("사다리의 첫 단계")
        await expect(decision.locator("tr.because").last).to_contain_text("기준 0.999 미달")
        await expect(decision.locator('[data-say="reason"]')).to_contain_text("심사하지 않음")
        await expect(decision.locator("[lang=en]")).to_have_count(0)
        await page.get_by_label("프롬프트", exact=True).fill("17 + 27?")
        await page.keyboard.press("Control+Enter")
        await expect(decision).to_be_hidden()
        await expect(decision.locator('[data-say="reason"]')).to_contain_text("심사하지 않음")
        await expect(decision.locator("[lang=en]")).to_have_count(0)


async def test_the_answer_is_shown_while_it_comes(browse):
    async with browse() as visitor:
        page = await visitor.open("/playground?model=always-small")
        await page.get_by_label("Prompt", exact=True).fill("hello")
        await page.get_by_role("button", name="Send").click()
        seen = await page.evaluate(
            """async () => {
              const seen = new Set();
              const shown = document.getElementById("answer");
              while (document.getElementById("decision").hidden) {
                seen.add(shown.textContent);
                await new Promise((done) => setTimeout(done, 5));
              }
              return [...seen];
            }"""
        )
        assert len(seen) > 3
        assert all(later.startswith(earlier) for earlier, later in pairwise(seen))


async def test_an_answer_can_be_stopped(browse):
    async with browse() as visitor:
        page = await visitor.open("/playground?model=always-small")
        await page.get_by_label("Prompt", exact=True).fill("hello")
        await page.get_by_role("button", name="Send").click()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_role("status")).to_have_text("Stopped.")


@pytest.mark.parametrize("limit", ["Most dollars"])
async def test_a_refusal_is_said(browse, limit):
    async with browse() as visitor:
        page = await visitor.open("/playground?model=always-large")
        await page.get_by_label("Prompt", exact=True).fill("hello")
        await page.get_by_text("System prompt and limits").click()
        await page.get_by_label(limit).fill("0.000000000001")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("#state")).to_contain_text("It failed:")
        visitor.complaints.clear()  # the browser notes every status of 400 and above
