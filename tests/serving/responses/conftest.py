"""OpenAI's own client for a service over scripted tiers."""

import pytest

from tests.chats import client


@pytest.fixture
async def connect(serve):
    """Starts a service; the service, and a client of it."""
    clients = []

    async def start(**options):
        service = await serve(**options)
        ai = client(service)
        clients.append(ai)
        return service, ai

    yield start
    for ai in clients:
        await ai.close()
