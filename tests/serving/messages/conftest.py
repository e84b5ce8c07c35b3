"""Anthropic's own client for a service over scripted tiers."""

import anthropic
import pytest


@pytest.fixture
async def connect(serve):
    """Starts a service; the service, and a client of it."""
    clients = []

    async def start(**options):
        service = await serve(**options)
        ai = anthropic.AsyncAnthropic(base_url=service.url, api_key="none", max_retries=0)
        clients.append(ai)
        return service, ai

    yield start
    for ai in clients:
        await ai.close()
