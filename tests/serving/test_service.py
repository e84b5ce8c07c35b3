"""What a service leaves behind when it stops."""

import asyncio
from dataclasses import replace

from cascade.caches import CacheCard
from cascade.protocols import Tokenizer
from tests.chats import ASK, client
from tests.engines import tier
from tests.services import running, snapshot


class Stuck(Tokenizer):
    """Cuts prompts, but never gets to an answer."""

    def __init__(self):
        self.asked = asyncio.Event()
        self.ended = False

    async def count(self, request):
        return None

    async def ids(self, request):
        return [1, 2, 3]

    async def text_ids(self, text):
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


async def test_it_does_not_wait_for_what_its_answers_left_in_caches_to_be_counted():
    tokenizer = Stuck()
    small = tier("small", "four", tokenizer=tokenizer, cache=CacheCard(kind="slots"))
    made = snapshot()
    made = replace(made, tiers={**made.tiers, "small": small})
    async with running(made) as service, client(service) as asking:
        answer = await asking.chat.completions.create(model="cascade", messages=ASK)
        await tokenizer.asked.wait()
        assert not tokenizer.ended
    assert answer.choices[0].message.content == "four"
    assert tokenizer.ended
    assert small.backend.closed
