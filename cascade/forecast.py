"""What calls are expected to find warm, to cost and to take, and what is learned from them.

The engine's memory: caches, traffic, speeds, lengths. All of it is one process's, is lost with it,
and comes back with the traffic.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Final

from cascade.answers import is_answer
from cascade.averages import Averages
from cascade.changing import changed
from cascade.ledger import Ledger
from cascade.pace import Pace
from cascade.prefix import Chain
from cascade.quote import Quote
from cascade.quoting import Expected, quote, wanted
from cascade.reading import Prompt, Reader, Reading, answered, answered_as_text
from cascade.sight import Seen, Sight
from cascade.tiers import ModelTier
from cascade.tiers.requirements import answer_limit
from cascade.traffic import Traffic, Whose
from cascade.types import Attempt, ChatRequest, Chunk, Completion, Kind, Step

OUTPUT_TOKENS: Final = 256
"""What an answer is taken to have before any came."""

PATIENCE_SECONDS: Final = 0.5
"""How long a turn waits for what the turn before it left to be counted."""


class Forecast:
    """Expects and learns, for one configuration.

    Args:
        tiers: by name.
        pace: what was learned of the tiers' speed; nothing yet without one.
        key: a secret that goes into the segments' hashes.
        clock: seconds that only go up.
        patience_seconds: how long a turn waits for what the one before it left to be counted.
    """

    def __init__(
        self,
        tiers: Mapping[str, ModelTier],
        *,
        pace: Pace | None = None,
        key: bytes = b"",
        clock: Callable[[], float] = time.monotonic,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        caches = {name: tier.cache for name, tier in tiers.items() if tier.cache is not None}
        self._tiers = tiers
        self._clock = clock
        self._patience_seconds = patience_seconds
        self.pace = pace or Pace()
        self.ledger = Ledger(caches, clock=clock)
        self.traffic = Traffic(clock=clock)
        self._reader = Reader(key=key)
        self._outputs = Averages()
        self._judging = Averages()
        self._judging_seconds = Averages()
        self._counting: dict[asyncio.Task[None], tuple[str, str, str]] = {}
        self._open: dict[str, Reading] = {}
        self._aside: dict[str, Reading] = {}
        self._numbers = count()
        self._told: list[Callable[[str, Completion], None]] = []
        for name in caches:
            tiers[name].watch(partial(self._sight, name))
        for tier in tiers.values():
            tier.follower.follow = self._follow

    @property
    def tiers(self) -> Mapping[str, ModelTier]:
        """Of which it knows, by name."""
        return self._tiers

    @property
    def under_way(self) -> int:
        """Requests that are being answered, those aside included."""
        return len(self._open)

    def aside(self) -> "Forecast":
        """For calls that are no turns of a conversation.

        They share caches, speeds and lengths with the turns, and learn and expect nothing of what
        the traffic wants.
        """
        other = copy(self)
        other.traffic = Traffic(clock=self._clock)
        return other

    def tell(self, heard: Callable[[str, Completion], None]) -> None:
        """Have somebody told the tier and the answer of each call that was made aside."""
        self._told.append(heard)

    def recall(self, request: ChatRequest) -> ChatRequest:
        """The request with the tier that answered its session's last turn."""
        tier = self.traffic.served_by(request.tenant, request.session) if request.session else ""
        return changed(request, served_by=tier) if tier else request

    async def read(
        self, request: ChatRequest, tiers: Collection[str], *, counted: Collection[str]
    ) -> Reading:
        """What tiers would read of a request, whose turn begins with that.

        Args:
            request: as the client sent it.
            tiers: names of those that may be asked.
            counted: those of them whose own tokenizer is asked: the ones that a policy may want and
                that have a cache.
        """
        await self._counted(request, counted)
        chosen = [self._tiers[name] for name in tiers]
        reading = await self._reader.read(request, chosen, counted=counted)
        if not request.prewarm:
            self.traffic.began(_whose(request, reading))
        self._open[request.id] = reading
        return reading

    def quotes(
        self, request: ChatRequest, reading: Reading, steps: Sequence[Step]
    ) -> Iterable[Quote]:
        """What a call to each of the tiers that were read for is expected to cost and take."""
        whose = _whose(request, reading)
        judges = {step.tier: step.judge for step in steps if step.judge is not None}
        for name, prompt in reading.prompts.items():
            expected = self._expected(request, prompt)
            made = quote(self._tiers[name], expected, self.traffic, whose)
            key = (name, judges.get(name))
            yield changed(
                made,
                judge_dollars=Decimal(self._judging.of(key, 0.0)),
                judge_seconds=self._judging_seconds.of(key, 0.0),
                seconds=self.pace.seconds(made),
            )

    def _expected(self, request: ChatRequest, prompt: Prompt) -> Expected:
        name = prompt.tier
        cache, n = self._tiers[name].cache, int(request.params.get("n") or 1)
        output = round(self._outputs.of(name, float(OUTPUT_TOKENS)))
        output = n * min(output, answer_limit(request) or output)
        kept = prompt.kept
        if cache is None or kept is None:
            return Expected(prompt=prompt.chain.tokens, output=output, cached=False)
        return Expected(
            prompt=prompt.chain.tokens,
            stable=min(prompt.stable_tokens, kept.tokens),
            output=output,
            warm=self.ledger.warm(name, kept, call=request.id),
            shared_age=self.ledger.age_seconds(name, prompt.chain.first(prompt.stable_tokens)),
            lifetime=self.ledger.residence_seconds(name),
            minimum=cache.minimum_tokens,
        )

    def _sight(self, tier: str, request: ChatRequest, servers: Collection[str]) -> Sight | None:
        """What is warm of an open request at a tier's servers; None where it was not read."""
        reading = self._open.get(request.id) or self._aside.get(request.id)
        prompt = reading.prompts.get(tier) if reading else None
        if reading is None or prompt is None:
            return None
        chain, ledger = prompt.chain, self.ledger
        # While there is room nothing goes, however long ago the oldest was used.
        full = [s for s in servers if ledger.residence_seconds(tier, replica=s) is not None]
        return Sight(
            tokens=chain.tokens,
            prefix=f"{request.tenant}\x1f{reading.stable}",
            prefix_tokens=prompt.stable_tokens,
            seen=Seen(
                warm_tokens={s: ledger.warm(tier, chain, replica=s).tokens for s in servers},
                victim_age_seconds={s: ledger.victim_age_seconds(tier, replica=s) for s in full},
            ),
        )

    def began(self, request: ChatRequest, prompt: Prompt, replica: str | None) -> None:
        """The first piece of an answer came."""
        known = replica if self._tiers[prompt.tier].replicated else None
        if prompt.kept is not None:
            self.ledger.began(prompt.tier, prompt.kept, replica=known, call=request.id)

    def ended(self, request: ChatRequest, prompt: Prompt, attempt: Attempt) -> None:
        """A tier gave a whole answer."""
        self.pace.observe(attempt)
        answer = attempt.completion
        if answer is None:
            return
        usage = answer.usage
        if usage.output is not None and not request.prewarm:
            each = (usage.output + (usage.reasoning or 0)) / len(answer.choices)
            self._outputs.observe(prompt.tier, each)
        self._cached(request, prompt, answer)

    def _cached(self, request: ChatRequest, prompt: Prompt, answer: Completion) -> None:
        """Learn from a whole answer what was in a cache, and what is now."""
        usage, replica = answer.usage, self._replica(answer)
        self._reader.learn(prompt, usage)
        cache, kept = self._tiers[prompt.tier].cache, prompt.kept
        if cache is None or kept is None:
            return
        self.ledger.reported(prompt.tier, kept, usage.cache_read, replica=replica, call=request.id)
        if cache.kind == "ttl":  # an API's, which only keeps what was asked
            self.ledger.ended(prompt.tier, kept, prompt=kept, replica=replica)
            return
        if not prompt.chain.exact:
            for one in answer.each():
                self._holds(prompt, answered_as_text(prompt, one), replica)
            return
        task = asyncio.get_running_loop().create_task(self._keep(prompt, answer, replica))
        self._counting[task] = (prompt.tier, request.tenant, request.session)
        task.add_done_callback(self._counting.pop)

    async def _follow(self, tier: ModelTier, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Make a call whose answer goes to no client, and learn what it leaves in the caches.

        Nothing else is learned of it: a label is no answer, and nobody's traffic wanted it.
        """
        # Equal prompts of one request, samples for instance, may be under way at the same time.
        request = replace(request, id=f"{request.id}-{next(self._numbers)}")
        prompt = None if tier.cache is None else await self._read_aside(tier, request)
        began = False
        try:
            async with aclosing(tier.stream(request)) as chunks:
                async for chunk in chunks:
                    if prompt is not None and not began and is_answer(chunk.choices):
                        began = True
                        self.began(request, prompt, chunk.replica)
                    if chunk.completion is not None:
                        self._followed(request, prompt, chunk.completion)
                    yield chunk
        finally:
            self._aside.pop(request.id, None)

    async def _read_aside(self, tier: ModelTier, request: ChatRequest) -> Prompt:
        counted = [] if tier.cooling() else [tier.name]
        reading = self._aside[request.id] = await self._reader.read(
            request, [tier], counted=counted
        )
        prompt = reading.prompts[tier.name]
        if prompt.kept is not None:
            # Since when it is under way, which its report is held against.
            self.ledger.warm(tier.name, prompt.kept, call=request.id)
        return prompt

    def _followed(self, request: ChatRequest, prompt: Prompt | None, answer: Completion) -> None:
        if prompt is not None:
            self._cached(request, prompt, answer)
        for heard in self._told:
            heard(prompt.tier if prompt else answer.tier, answer)

    def judged(self, attempt: Attempt) -> None:
        """A judge was asked; what that cost and took is what is expected the next time."""
        if attempt.kind is not Kind.JUDGE:
            return
        key = (attempt.step.tier, attempt.step.judge)
        self._judging_seconds.observe(key, attempt.seconds)
        if attempt.cost is not None:
            self._judging.observe(key, float(attempt.cost.total))

    def over(
        self,
        request: ChatRequest,
        reading: Reading,
        attempts: Sequence[Attempt],
        led: Mapping[str, tuple[Quote, float]],
        *,
        answered: str = "",
    ) -> None:
        """A turn is over.

        Args:
            request: whose turn it was.
            reading: of it.
            attempts: all that were made for it.
            led: the quotes of its tiers and by how many dollars they led, where the policy weighs
                dollars; otherwise it is taken to have wanted what it called, at any price.
            answered: the tier whose answer was given; empty when there was none.
        """
        self._open.pop(request.id, None)
        if request.prewarm:  # it is no turn of anybody's
            return
        calls = [a for a in attempts if a.kind is Kind.ANSWER and a.completion is not None]
        called = {a.step.tier for a in calls}
        wants = {tier: 1.0 if tier in called else 0.0 for tier in reading.prompts}
        wants |= {tier: wanted(*each) for tier, each in led.items()}
        self.traffic.ended(_whose(request, reading), wants, answered)

    async def aclose(self) -> None:
        """Count no longer what answers left in the caches: the servers that do it are going."""
        for task in self._counting:
            task.cancel()
        await asyncio.gather(*self._counting, return_exceptions=True)

    async def _keep(self, prompt: Prompt, answer: Completion, replica: str | None) -> None:
        """What the cache holds of a prompt and its answers, whose tokens are asked for."""
        for one in answer.each():
            chain = await answered(prompt, self._tiers[prompt.tier], one)
            self._holds(prompt, chain or prompt.chain, replica)

    def _holds(self, prompt: Prompt, chain: Chain, replica: str | None) -> None:
        self.ledger.ended(prompt.tier, chain, prompt=prompt.chain, replica=replica)

    async def _counted(self, request: ChatRequest, tiers: Collection[str]) -> None:
        """Wait until what the session's last turn left in the caches is known."""
        whose = request.tenant, request.session
        waiting = [
            task
            for task, (tier, *its) in self._counting.items()
            if request.session and tier in tiers and tuple(its) == whose
        ]
        if waiting:
            await asyncio.wait(waiting, timeout=self._patience_seconds)

    def _replica(self, answer: Completion) -> str | None:
        return answer.replica if self._tiers[answer.tier].replicated else None


def _whose(request: ChatRequest, reading: Reading) -> Whose:
    return Whose(request.tenant, request.session, reading.stable)
