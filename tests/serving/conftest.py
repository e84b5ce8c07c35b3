"""A service over scripted tiers."""

import pytest

from tests.services import running, snapshot


@pytest.fixture
async def serve():
    stack = []

    async def start(**options):
        context = running(snapshot(**options))
        service = await context.__aenter__()
        stack.append(context)
        return service

    yield start
    for context in reversed(stack):
        await context.__aexit__(None, None, None)
