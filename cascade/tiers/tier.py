"""A tier: a model that can be asked, what it costs, and what it can do."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from decimal import Decimal

from cascade.caches import CacheCard
from cascade.changing import changed
from cascade.pricing import PriceCard
from cascade.protocols import Backend, Tokenizer
from cascade.sight import Load, Look
from cascade.tiers.bound import stripped
from cascade.tiers.requirements import Needs
from cascade.types import ChatRequest, Chunk, Cost, Usage

CHARACTERS_PER_TOKEN = 4
EXPECTED_OUTPUT_TOKENS = 256


def nothing_to_end() -> None:
    """Of a tier that never cools down."""


def nobody_chooses(look: Look) -> None:
    """Of a tier with one server."""


def nobody_counts() -> Sequence[Load]:
    """Of a tier whose calls are not counted."""
    return ()


def never_cooling() -> bool:
    """Of the same."""
    return False


@dataclass(slots=True)
class Follower:
    """Who makes the calls whose answers go to no client, to learn of them; None: nobody."""

    follow: "Callable[[ModelTier, ChatRequest], AsyncGenerator[Chunk]] | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTier:
    """One rung: a backend, its price card and what it can be asked for.

    What a tier does not state it makes no claim about, and nothing is held against it.

    Attributes:
        capabilities: what it serves beyond plain text ("logprobs", "json_schema", "tools",
            "vision", "reasoning"). A stated list is complete, an empty one means plain text only.
        context_tokens: its window, which the prompt must leave room in.
        output_tokens: how long an answer may be.
        accepts: content of providers that it knows (see `bound`); the rest is taken out.
        tokenizer: counts prompts as its model does; None when only estimates are to be had.
        recovered: to be told when the model's server is known to be well again, so that a
            cool-down need not run its time.
        cooling: whether it is being left alone for now, so that a call would fail at once.
        cache: how its servers keep prompts; None when that is not known, or they keep none.
        salted: whether each tenant has a cache of its own.
        replicated: whether several servers of the model each have their own.
        watch: takes who says what is warm at which of these servers.
        loads: what each of its servers has to do now; nothing where nobody counts.
        follower: who learns of calls aside.
    """

    name: str
    backend: Backend
    prices: PriceCard | None = None
    capabilities: frozenset[str] | None = None
    context_tokens: int | None = None
    output_tokens: int | None = None
    accepts: frozenset[str] = frozenset()
    tokenizer: Tokenizer | None = None
    recovered: Callable[[], None] = nothing_to_end
    cooling: Callable[[], bool] = never_cooling
    cache: CacheCard | None = None
    salted: bool = False
    replicated: bool = False
    watch: Callable[[Look], None] = nobody_chooses
    loads: Callable[[], Sequence[Load]] = nobody_counts
    follower: Follower = field(default_factory=Follower, compare=False, repr=False)

    def unfit(self, needs: Needs) -> str | None:
        """Why it cannot serve such a request, as the rest of a sentence; None when it may."""
        if self.capabilities is not None:
            missing = [name for name in needs.capabilities if name not in self.capabilities]
            if missing:
                return f"does not offer {', '.join(missing)}"
        answer = needs.answer_tokens
        if self.output_tokens is not None and answer is not None and answer > self.output_tokens:
            return f"answers with at most {self.output_tokens} tokens, not {answer}"
        # The answer's limit does not count here: many clients state a large one by habit, and some
        # servers then simply answer until the window is full.
        if self.context_tokens is not None and needs.prompt_exceeds(self.context_tokens - 1):
            return f"has a window of {self.context_tokens} tokens, too short for the prompt"
        return None

    async def overlong(self, request: ChatRequest) -> str | None:
        """Why the prompt does not fit by the tokenizer's count; None when it does or may."""
        if self.tokenizer is None or self.context_tokens is None:
            return None
        count = await self.tokenizer.count(stripped(request, self.accepts))
        return None if count is None else self.too_short_for(count)

    def too_short_for(self, tokens: int) -> str | None:
        """Why a prompt of so many tokens does not fit; None when it does or may."""
        if self.context_tokens is None or tokens < self.context_tokens:
            return None
        return f"has a window of {self.context_tokens} tokens, too short for the prompt of {tokens}"

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask the backend; the completion carries the tier's name, also for a model without one."""
        request = stripped(request, self.accepts)
        async with aclosing(self.backend.stream(request)) as chunks:
            async for chunk in chunks:
                if (answer := chunk.completion) is None:
                    yield chunk
                    continue
                named = changed(answer, tier=self.name, model=answer.model or self.name)
                yield Chunk(
                    choices=chunk.choices,
                    model=chunk.model,
                    replica=chunk.replica,
                    completion=named,
                )

    def aside(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask for what goes to no client, a verdict or an estimate: it fills the caches as well."""
        follow = self.follower.follow
        return self.stream(request) if follow is None else follow(self, request)

    def price(self, usage: Usage) -> Cost | None:
        """What a call cost; None when the card or the report does not say."""
        return self.prices.price(usage) if self.prices else None

    def cold_premium(self, usage: Usage, paid: Cost | None) -> Decimal | None:
        """Dollars that a call cost more than it would have with its whole prompt warm.

        None when the price or what was cached is not known.
        """
        prompt = usage.prompt
        if self.prices is None or paid is None or prompt is None or usage.cache_read is None:
            return None
        warm = self.prices.warm_prompt(prompt)
        return None if warm is None else paid.input + paid.cache_read + paid.cache_write - warm


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTokens:
    """What a call is expected to take, whichever tier is asked."""

    prompt: int
    output: int

    @classmethod
    def of(cls, request: ChatRequest, needed: Needs) -> "ExpectedTokens":
        """The prompt and its tools as characters / 4; each of the n answers as its limit or 256.

        Of limit and 256 the smaller counts: many clients state a large limit by habit.
        """
        characters = sum(map(len, needed.texts))
        if request.tools:
            characters += len(repr(request.tools))  # about as long as their JSON
        output = min(needed.answer_tokens or EXPECTED_OUTPUT_TOKENS, EXPECTED_OUTPUT_TOKENS)
        return cls(
            prompt=characters // CHARACTERS_PER_TOKEN + 1,
            output=output * (request.params.get("n") or 1),
        )
