"""Judge models that say how likely each label is, for tests."""

import math
from dataclasses import replace

from cascade.errors import BackendServerError
from cascade.protocols import Backend
from cascade.types import Choice, Chunk, Completion, Usage
from tests.engines import tier

USAGE = Usage(input=10, cache_read=0, output=1)


class Voice(Backend):
    """Gives each label its probability, by request in turn; without any it only writes text."""

    def __init__(self, *answers, text=None, error=None):
        self.answers, self.text, self.error, self.requests = answers, text, error, []

    async def stream(self, request):
        self.requests.append(request)
        if self.error is not None and len(self.requests) > self.error:
            raise BackendServerError("down")
        choice = Choice(text=self.text or "", finish_reason="stop")
        if self.answers:
            said = self.answers[min(len(self.requests), len(self.answers)) - 1]
            top = [{"token": t, "logprob": math.log(p)} for t, p in said.items()]
            text = self.text or max(said, key=said.get)
            entry = {"token": text, "logprob": top[0]["logprob"], "top_logprobs": top}
            choice = Choice(text=text, finish_reason="stop", logprobs=[entry])
        yield Chunk(completion=Completion(choices=(choice,), usage=USAGE))


def speaking(name, voice, **claims):
    """A tier of that model."""
    return replace(tier(name, **claims), backend=voice)
