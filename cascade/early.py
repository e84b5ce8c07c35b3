"""The one look at an answer that is still coming in, after which it may go out as it grows.

There is one look only, at a start of exactly the length that the threshold was certified for: with
a second one the share of wrong starts that get out would be larger than the certificate says.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from cascade.answers import assemble, tokens
from cascade.commit import CommitRule
from cascade.protocols import Judge
from cascade.types import ChatRequest, Choice, Chunk, Completion, Json, Verdict

PATIENCE_SECONDS = 0.005
"""The stream is kept waiting no longer for a verdict, which then counts when it is there."""


def growing(judge: Judge) -> bool:
    """Whether a judge can look at an answer that is still growing; one that can says `growing`."""
    return bool(getattr(judge, "growing", False))


def free(judge: Judge) -> bool:
    """Whether a judge asks no model and starts no process; one that does neither says `free`."""
    return bool(getattr(judge, "free", False)) or growing(judge)


class EarlyLook:
    """Looks once at one answer.

    Args:
        rule: after how many tokens.
        judge: who looks; one that can judge a growing answer.
        request: what is answered.
        tier: whose answer it is.

    Attributes:
        began: when it looked, on the clock that measures.
    """

    def __init__(self, rule: CommitRule, judge: Judge, request: ChatRequest, tier: str) -> None:
        self.rule = rule
        self.judge = judge
        self.began = 0.0
        self._request = request
        self._tier = tier
        self._pieces: list[Sequence[Json]] = []
        self._tokens = 0
        self._over = False
        self._task: asyncio.Task[Verdict] | None = None

    async def after(self, chunk: Chunk) -> Verdict | None:
        """What the judge says of the start, once, with the chunk that it is known at.

        None before that and ever after, and when the answer ends first.

        Raises:
            JudgeError: it could not judge; as with a verdict, this comes once.
        """
        if self._over:
            return None
        if _ends(chunk):
            self.cancel()
            return None
        if self._task is None:
            self._pieces.append(chunk.choices)
            self._tokens += tokens([chunk.choices])
            if self._tokens < self.rule.after_tokens:
                return None
            self.began = time.perf_counter()
            self._task = asyncio.create_task(self._look(chunk.model))
            self._task.add_done_callback(_heard)
            await asyncio.wait({self._task}, timeout=PATIENCE_SECONDS)
        if not self._task.done():
            return None
        self._over = True
        return self._task.result()

    def cancel(self) -> None:
        """The answer has ended, however it did."""
        self._over = True
        if self._task is not None:
            self._task.cancel()

    async def _look(self, model: str) -> Verdict:
        choices = assemble(self._pieces)
        whole = Completion(choices=choices, tier=self._tier, model=model, partial=True)
        start = beginning(whole, self.rule.after_tokens)
        return await self.judge.judge(self._request, start)


def _heard(task: asyncio.Task[Verdict]) -> None:
    """A failure that came too late to matter is no error that nobody looked at."""
    if not task.cancelled():
        task.exception()


def beginning(completion: Completion, length: int) -> Completion:
    """The first tokens of an answer, as they were when no more had come.

    Without log probabilities nobody can tell tokens apart, and all the text there is stays.

    Args:
        completion: with one choice.
        length: tokens to keep.
    """
    choice = replace(completion.choices[0], finish_reason=None)
    if choice.logprobs is not None and len(choice.logprobs) > length:
        kept = choice.logprobs[:length]
        choice = Choice(text=_text(kept), logprobs=kept, extra=choice.extra)
    return replace(completion, choices=(choice,), partial=True)


def _text(entries: Sequence[Json]) -> str:
    """The tokens' text; a last character of which only a part has come is left out."""
    parts = (
        entry.get("bytes") or list(str(entry.get("token") or "").encode()) for entry in entries
    )
    return b"".join(map(bytes, parts)).decode(errors="ignore")


def _ends(chunk: Chunk) -> bool:
    done = any(piece.get("finish_reason") for piece in chunk.choices)
    return done or chunk.completion is not None
