"""Asking a scripted service in OpenAI's shape."""

import aiohttp
import openai

ASK = [{"role": "user", "content": "what is 2+2?"}]


def client(service):
    return openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0)


async def post(service, body, **headers):
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/v1/chat/completions", data=body, headers=headers) as response,
    ):
        return response.status, response.headers, await response.json()


async def lines(service, **body):
    body = {"model": "cascade", "messages": ASK, "stream": True, **body}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/v1/chat/completions", json=body) as response,
    ):
        return response.headers, (await response.text()).split("\n\n")
