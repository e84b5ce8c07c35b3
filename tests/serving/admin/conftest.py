"""Workers whose configuration can be overridden."""

from contextlib import AsyncExitStack

import pytest

from serving.admin.access import KEY
from tests.databases import database, postgres, sqlite_copy, template
from tests.overriding import overridden

__all__ = ["database", "postgres", "template"]


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    """Whoever runs the tests may have one."""
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture
async def worker(template, tmp_path):
    """One, on SQLite, and whatever else of it a test wants."""
    url = sqlite_copy(template, tmp_path).url
    async with AsyncExitStack() as stack:

        async def start(**options):
            return await stack.enter_async_context(overridden(url, **options))

        yield start
