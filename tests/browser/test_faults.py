"""What a visitor sees of what went wrong."""

from playwright.async_api import expect

LATER = """address => {
  const part = document.getElementById("results");
  part.dataset.later = address;
  return renew(part, address);
}"""
AGAIN = """address => renew(document.getElementById("fleet"), address)"""


async def test_results_that_cannot_be_had_are_a_word_in_their_place(browse):
    async with browse() as visitor:
        page = await visitor.open("/experiments/auto?wait=yes")
        await expect(page.get_by_role("heading", name="Verdict")).to_be_visible()
        await page.evaluate(LATER, f"{visitor.root}/nowhere")
        results = page.locator("#results")
        await expect(results.get_by_role("alert")).to_have_text("There is no such page.")
        await expect(results.get_by_role("link", name="Back to the overview")).to_be_visible()
        await expect(page.get_by_role("heading", name="Arms", exact=True)).to_be_visible()
        visitor.complaints.clear()  # the browser notes every status of 400 and above


async def test_what_is_looked_at_again_stays_when_it_cannot_be_had(browse):
    async with browse() as visitor:
        page = await visitor.open("/fleet")
        await page.evaluate(AGAIN, f"{visitor.root}/nowhere")
        await expect(page.locator('[data-tier="small"]')).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)
        visitor.complaints.clear()


async def test_a_page_that_is_not_there_says_so_in_the_visitors_language(browse):
    async with browse(language="ko-KR") as visitor:
        page = await visitor.open("/requests/nothing")
        await expect(page.get_by_role("alert")).to_contain_text("요청이 없거나 여럿입니다")
        await expect(page.get_by_role("link", name="개요로 돌아가기")).to_be_visible()
        visitor.complaints.clear()
