"""A page over real databases, asked as a browser asks."""

import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

import aiohttp
import pytest

from serving.admin.access import KEY
from tests.browser.traffic import fill
from tests.databases import database, postgres, sqlite_copy, template
from tests.showing import shown

__all__ = ["database", "postgres", "template"]


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    """Whoever runs the tests may have one."""
    monkeypatch.delenv(KEY, raising=False)


@dataclass
class Visitor:
    """Asks for pages, and keeps the cookies."""

    session: aiohttp.ClientSession
    page: str

    async def get(self, path="/", **options):
        async with self.session.get(self.page + path, **options) as answer:
            return answer.status, await answer.text(), answer

    async def post(self, path, headers=None, **fields):
        async with self.session.post(
            self.page + path, data=fields, headers=headers, allow_redirects=False
        ) as answer:
            return answer.status, await answer.text(), answer

    async def csrf(self, path="/"):
        """The mark that this browser's forms bring along."""
        _, body, _ = await self.get(path)
        return body.partition('name="csrf" value="')[2].partition('"')[0]


@pytest.fixture
async def visiting():
    """Starts a service on a database, and lets somebody visit its page."""
    async with AsyncExitStack() as stack:

        async def start(url, folder):
            service = await stack.enter_async_context(shown(url, folder / "spool"))
            jar = aiohttp.CookieJar(unsafe=True)  # addresses are numbers here
            session = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=jar))
            return Visitor(session, service.page), service

        yield start


@pytest.fixture
async def visitor(visiting, template, tmp_path):
    """On an empty log."""
    started, _ = await visiting(sqlite_copy(template, tmp_path).url, tmp_path)
    return started


@pytest.fixture
def traffic(database, tmp_path):
    """A database with traffic in it, once on each kind; its URL with it."""
    return database.url, fill(database.url, tmp_path / "filling", time.time())
