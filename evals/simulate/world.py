"""Conversations to route: a tenant's share a prefix, and their turns come in time."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from cascade.backends.litellm_prices import card_of
from cascade.caches import CacheCard
from cascade.prefix import Chain
from cascade.pricing import PriceCard
from evals.simulate.truth import Question, Skill

BLOCK = 64
"""Tokens of a block of the simulated prompts."""

WIDTH = 8
OUTPUT_TOKENS = 300

_CONVERSATIONS = 100_000
"""A tenant's conversations have the numbers from so many times its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineup:
    """Tiers with their prices and caches, from the smallest."""

    name: str
    cards: dict[str, PriceCard]
    caches: dict[str, CacheCard]
    abilities: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """One kind of traffic.

    Attributes:
        prefix: tokens that all conversations of a tenant begin with.
        turns: of a conversation, in the mean.
        tokens: that a turn adds besides its answer.
        gap: seconds between an answer and the next turn, in the mean.
        live: conversations under way at the same time.
    """

    prefix: int
    turns: int
    tokens: int
    gap: float
    live: int = 4

    @property
    def name(self) -> str:
        """In short."""
        return f"{self.prefix // 1000}k/{self.turns}t/{self.tokens}/{self.gap:g}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of one conversation.

    Attributes:
        at: seconds.
        place: in the conversation, from 0.
        prompt: its tokens.
        chain: the prompt's.
        whole: the chain of the prompt and its answer.
    """

    at: float
    conversation: int
    place: int
    prompt: int
    question: Question
    chain: Chain
    whole: Chain


def regimes() -> list[Regime]:
    """The 36 kinds of traffic that are reported."""
    return [
        Regime(prefix=prefix, turns=turns, tokens=tokens, gap=gap)
        for prefix in (1000, 6000, 30_000)
        for turns in (3, 8, 20)
        for tokens in (150, 2000)
        for gap in (20.0, 240.0)
    ]


@dataclass(slots=True)
class _Conversation:
    """One under way.

    Attributes:
        turns: that it will have.
        place: of the next.
    """

    number: int
    turns: int
    difficulty: float
    place: int = 0


def tenant(
    regime: Regime,
    skill: Skill,
    *,
    turns: int,
    seed: int | Sequence[int],
    number: int = 0,
    begins: float = 0.0,
) -> list[Turn]:
    """The turns of one tenant in the order in which they come.

    Lengths of conversations are uniform between half and one and a half times the mean, gaps
    log-normal around theirs with a spread of 0.7, and a conversation that ends is followed by
    another after a gap.

    Args:
        regime: of the traffic.
        skill: of tiers and judge.
        turns: so many.
        seed: of all that is drawn.
        number: of the tenant; those of two numbers share no prefix and no conversation.
        begins: seconds, when the first turn may come.
    """
    random = np.random.default_rng(seed)
    first = number * _CONVERSATIONS
    waiting: list[tuple[float, int]] = []
    for begun in range(first, first + regime.live):
        heapq.heappush(waiting, (begins + float(random.uniform(0.0, regime.gap)), begun))
    newest, live = first + regime.live - 1, dict[int, _Conversation]()
    found: list[Turn] = []
    while len(found) < turns:
        at, of = heapq.heappop(waiting)
        one = live.get(of) or _begun(regime, skill, of, random)
        live[of] = one
        found.append(_turn(regime, skill, one, at, random))
        gap = regime.gap * float(np.exp(0.7 * random.standard_normal() - 0.245))
        one.place += 1
        if one.place == one.turns:
            del live[of]
            newest += 1
            of = newest
        heapq.heappush(waiting, (at + gap, of))
    return found


def _begun(regime: Regime, skill: Skill, number: int, random: np.random.Generator) -> _Conversation:
    low, high = max(1, regime.turns // 2), regime.turns + regime.turns // 2
    turns = int(random.integers(low, high + 1))
    difficulty = skill.between * float(random.standard_normal())
    return _Conversation(number=number, turns=turns, difficulty=difficulty)


def _turn(
    regime: Regime, skill: Skill, of: _Conversation, at: float, random: np.random.Generator
) -> Turn:
    prompt = regime.prefix + regime.tokens + of.place * (regime.tokens + OUTPUT_TOKENS)
    return Turn(
        at=at,
        conversation=of.number,
        place=of.place,
        prompt=prompt,
        question=Question.draw(skill, of.difficulty, random),
        chain=_chain(regime, of.number, prompt),
        whole=_chain(regime, of.number, prompt + OUTPUT_TOKENS),
    )


def _chain(regime: Regime, conversation: int, tokens: int) -> Chain:
    """A chain whose blocks are numbered: the tenant's first, then the conversation's own."""
    shared, blocks = regime.prefix // BLOCK, tokens // BLOCK
    numbers = np.arange(blocks, dtype=np.int64)
    numbers[:shared] += (conversation // _CONVERSATIONS) << 56
    numbers[shared:] += (conversation + 1) << 32
    return Chain(elements=numbers.tobytes(), width=WIDTH, block=BLOCK, tokens=tokens)


TTL = 300.0
"""Seconds for which an API's cache keeps a prefix."""


def lineups(ttl: float = TTL) -> list[Lineup]:
    """Three trios of published prices, and a pair that somebody serves on their own machines.

    Args:
        ttl: seconds for which the trios' caches keep a prefix after its last use; that of the newer
            OpenAI models six times as long, as their provider says.
    """
    return [
        _api("haiku-sonnet-opus", ("claude-haiku-4-5", "claude-sonnet-5", "claude-opus-5"), ttl),
        _api("luna-terra-sol", ("gpt-5.6-luna", "gpt-5.6-terra", "gpt-5.6-sol"), LONGER * ttl),
        _api("5-mini-5.4-5.5", ("gpt-5-mini", "gpt-5.4", "gpt-5.5"), ttl),
        _own(),
    ]


LONGER = 6.0
"""Half an hour is promised for models from GPT-5.6 on, five minutes for the others."""

_MINIMUM = {"claude-haiku-4-5": 4096, "claude-sonnet-5": 1024, "claude-opus-5": 512}
_TRIO = (0.4, 1.3, 2.1)
_PAIR = (0.6, 2.0)


def _api(name: str, models: Sequence[str], ttl: float) -> Lineup:
    cache = CacheCard(kind="ttl", block=BLOCK, ttl_seconds=ttl, minimum_tokens=1024)
    return Lineup(
        name=name,
        cards={model: card_of(model) for model in models},
        caches={m: replace(cache, minimum_tokens=_MINIMUM.get(m, 1024)) for m in models},
        abilities=_TRIO,
    )


def _own() -> Lineup:
    """An 8B model on one GPU and a 70B model on four, at three dollars for a GPU and hour.

    Speeds are of the order that such machines reach under load; what counts is their ratio.
    """
    small = PriceCard.from_gpu(
        usd_per_hour=Decimal(3),
        prefill_tokens_per_second=Decimal(25_000),
        cached_tokens_per_second=Decimal(1_000_000),
        decode_tokens_per_second=Decimal(2500),
    )
    large = PriceCard.from_gpu(
        usd_per_hour=Decimal(12),
        prefill_tokens_per_second=Decimal(12_000),
        cached_tokens_per_second=Decimal(500_000),
        decode_tokens_per_second=Decimal(1200),
    )
    return Lineup(
        name="own-8b-70b",
        cards={"8b": small, "70b": large},
        caches={
            "8b": CacheCard(kind="blocks", block=BLOCK, capacity_tokens=300_000),
            "70b": CacheCard(kind="blocks", block=BLOCK, capacity_tokens=150_000),
        },
        abilities=_PAIR,
    )
