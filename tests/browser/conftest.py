"""A real Chromium in front of a real service, on three days of traffic.

The browser is Debian's (`apt-get install chromium fonts-noto-cjk`), or what CASCADE_BROWSER names.
Where there is none the group is skipped and says so; with CI set it fails instead.
"""

import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import BrowserContext, Page, Route, async_playwright

from serving.admin.access import KEY
from tests.browser.traffic import Traffic, fill
from tests.end_to_end.processes import CascadeProcess

CONFIG = Path(__file__).with_name("cascade.yaml")
NAMES = ("chromium", "chromium-browser", "google-chrome-stable")
DESK = {"width": 1360, "height": 900}
PHONE = {"width": 375, "height": 812}
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run", "--no-pings"),
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


def executable() -> str:
    named = os.environ.get("CASCADE_BROWSER")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    said = (
        "no Chromium: apt-get install chromium fonts-noto-cjk, or name one in CASCADE_BROWSER; "
        "the tests in a browser"
    )
    if os.environ.get("CI"):
        pytest.fail(f"{said} must run here")
    pytest.skip(f"{said} are skipped")


@dataclass
class Watched:
    """Pages of one browser, and what went wrong or left the machine meanwhile."""

    context: BrowserContext
    root: str
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def open(self, path: str = "/") -> Page:
        page = await self.context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        await page.goto(f"{self.root}{path}")
        return page

    def _heard(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    async def guard(self, route: Route) -> None:
        """Lets through what stays on this machine."""
        self.asked.append(route.request.url)
        if urlsplit(route.request.url).hostname == "127.0.0.1":
            await route.continue_()
        else:
            await route.abort()

    def elsewhere(self) -> list[str]:
        """What was asked of other machines."""
        return [
            url
            for url in self.asked
            if urlsplit(url).hostname != "127.0.0.1" and not url.startswith("data:")
        ]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CascadeProcess]:
    """The real command, with the traffic in its log."""
    executable()  # before anything is started
    folder = tmp_path_factory.mktemp("dashboard")
    config = folder / CONFIG.name
    shutil.copyfile(CONFIG, config)
    fill(f"sqlite:///{folder}/cascade.db", folder / "filling", time.time())
    process = CascadeProcess(config, CASCADE_HOME=str(folder / "home"), **{KEY: ""})
    process.start()
    yield process
    process.stop()


@pytest.fixture
def log(served: CascadeProcess) -> str:
    """The URL of the service's database."""
    return f"sqlite:///{served.config.parent}/cascade.db"


@pytest.fixture
async def browse(served: CascadeProcess) -> AsyncIterator[Any]:
    """Opens contexts of one browser: each a visitor with a screen and a language."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable(), args=list(FLAGS), chromium_sandbox=False
        )

        @asynccontextmanager
        async def visit(
            screen: dict[str, int] = DESK, language: str = "en-US", scheme: str = "light"
        ) -> AsyncIterator[Watched]:
            context = await browser.new_context(
                viewport=screen,
                locale=language,
                color_scheme=scheme,
                timezone_id="Asia/Seoul",
                reduced_motion="reduce",
                has_touch=screen is PHONE,
                is_mobile=screen is PHONE,
            )
            watched = Watched(context, f"{served.url}/dashboard")
            await context.route("**/*", watched.guard)
            yield watched
            await context.close()
            assert watched.complaints == []
            assert watched.elsewhere() == []

        yield visit
        await browser.close()


__all__ = ["Traffic"]
