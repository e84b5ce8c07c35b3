"""Which server of a model is asked, and what that does to its prompt caches and its waiting time.

Requests come at random moments. A rule assigns each to a server, which computes prompts one after
the other in the order of their assignment, what is warm of them left out, and writes answers side
by side at a fixed speed. So what an earlier prompt leaves in the cache is there for a later one.
Ledger, rules and prices are those that serve.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from cascade.backends.replica_choice import RuleName, rule_of
from cascade.backends.replica_load import Assigned, Loads
from cascade.cache_economics import Machine, ModelShape, prefill_seconds
from cascade.caches import CacheCard
from cascade.ledger import Ledger
from cascade.pricing import MILLION, PriceCard
from cascade.sight import Seen
from cascade.types import Usage
from evals.simulate.workloads import BLOCK, Accounting, Ask, Chat, Workload

QWEN3_8B = ModelShape(params=8.2e9, layers=36, kv_heads=8, head_dim=128, heads=32)
H100 = Machine(flops_per_second=989e12, efficiency=0.5)
H100_BYTES_PER_SECOND = 3.35e12
USD_PER_HOUR = Decimal("4.29")
TOKEN_SECONDS = 2 * QWEN3_8B.params / (H100_BYTES_PER_SECOND * H100.efficiency)
"""An answer's token reads all weights once, at the same share of what the data sheet promises."""
IDLE_TOKENS = 300_000
"""Tokens that fit into a server's cache beside what is being answered."""

_TIER = "model"
_UNBOUNDED = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is simulated.

    Attributes:
        replicas: servers.
        requests: that are counted, after those that fill the caches.
        idle_tokens: that fit into a server's cache; None for all there are.
    """

    workload: Workload
    rule: RuleName
    replicas: int
    accounting: Accounting
    requests: int
    idle_tokens: int | None = IDLE_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of it.

    Attributes:
        recomputed: share of the prompt tokens that had to be computed.
        busiest_requests: requests of the server with the most, over the mean.
        busiest_prefill: seconds of computing prompts of the server with the most, over the mean.
        dollars: of computing prompts, per million requests.
        first_token_seconds: until the prompt was computed, at the median and the 99th percentile.
    """

    recomputed: float
    busiest_requests: float
    busiest_prefill: float
    dollars: float
    first_token_seconds: tuple[float, float]


def simulate(setting: Setting, seed: int) -> Measured:
    """One run; the same seed gives the same."""
    chance = random.Random(seed)  # noqa: S311 - made-up traffic
    servers = _Servers(setting, chance.random)
    counted = _Counted(setting.replicas)
    asks = setting.workload.asks(chance, setting.accounting)
    for number, ask in enumerate(
        itertools.islice(asks, setting.workload.warm_up + setting.requests)
    ):
        servers.pass_time(chance.expovariate(setting.workload.per_second))
        served = servers.serve(ask)
        if number >= setting.workload.warm_up:
            counted.add(ask, served)
    return counted.measured()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """How a request fared: where, what of it was warm, its own and all seconds until it began."""

    server: int
    warm: int
    prefill_seconds: float
    first_token_seconds: float


class _Servers:
    """A model's servers with their caches, and who assigns requests to them."""

    def __init__(self, setting: Setting, chance: Callable[[], float]) -> None:
        self._names = [str(number) for number in range(setting.replicas)]
        self._rule = rule_of(setting.rule, chance)
        self._loads = Loads(self._names, self._rule)
        card = CacheCard(kind="blocks", block=BLOCK, capacity_tokens=setting.idle_tokens)
        self._ledger = Ledger({_TIER: card}, max_blocks=_UNBOUNDED, clock=lambda: self._now)
        # Where entries share nothing, any of them still has the system prompt at its beginning.
        self._always = setting.workload.system_tokens if setting.accounting == "own" else 0
        self._asked: set[str] = set()
        self._now = 0.0
        self._free = dict.fromkeys(self._names, 0.0)
        self._coming: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def pass_time(self, seconds: float) -> None:
        """What begins or ends until then does."""
        self._now += seconds
        while self._coming and self._coming[0][0] <= self._now:
            _, _, happen = heapq.heappop(self._coming)
            happen()

    def serve(self, ask: Ask) -> _Served:
        """Assign it, and compute its prompt when its turn comes."""
        assigned = self._loads.assign(ask.prompt, self._seen(ask))
        name = assigned.name
        warm = self._warm(ask, name)
        self._keep(ask, name)
        seconds = prefill_seconds(QWEN3_8B, H100, tokens=ask.chain.tokens, cached=warm)
        begins = max(self._now, self._free[name]) + seconds
        self._free[name] = begins
        self._plan(assigned, begins, begins + ask.answer_tokens * TOKEN_SECONDS)
        return _Served(
            server=int(name),
            warm=warm,
            prefill_seconds=seconds,
            first_token_seconds=begins - self._now,
        )

    def _plan(self, assigned: Assigned, begins: float, ends: float) -> None:
        for when, happen in ((begins, assigned.began), (ends, assigned.ended)):
            heapq.heappush(self._coming, (when, next(self._order), happen))

    def _seen(self, ask: Ask) -> Seen:
        if not self._rule.reads_caches:
            return Seen()
        ledger = self._ledger
        full = [n for n in self._names if ledger.residence_seconds(_TIER, replica=n) is not None]
        return Seen(
            warm_tokens={name: self._warm(ask, name) for name in self._names},
            victim_age_seconds={n: ledger.victim_age_seconds(_TIER, replica=n) for n in full},
        )

    def _warm(self, ask: Ask, name: str) -> int:
        found = self._ledger.warm(_TIER, ask.chain, replica=name).tokens
        return max(found, self._always) if name in self._asked else found

    def _keep(self, ask: Ask, name: str) -> None:
        # Prompts are computed in the order of their assignment, so to those behind it this one is
        # in the cache from now on.
        self._ledger.ended(_TIER, ask.kept, replica=name)
        self._asked.add(name)


class _Counted:
    """Sums over the requests of a run."""

    def __init__(self, replicas: int) -> None:
        self._cold = self._warm = 0
        self._requests = [0] * replicas
        self._prefill = [0.0] * replicas
        self._waits: list[float] = []

    def add(self, ask: Ask, served: _Served) -> None:
        """One more."""
        self._cold += ask.chain.tokens - served.warm
        self._warm += served.warm
        self._requests[served.server] += 1
        self._prefill[served.server] += served.prefill_seconds
        self._waits.append(served.first_token_seconds)

    def measured(self) -> Measured:
        """What they come to."""
        waits = sorted(self._waits)
        return Measured(
            recomputed=self._cold / (self._cold + self._warm),
            busiest_requests=_above_mean(self._requests),
            busiest_prefill=_above_mean(self._prefill),
            dollars=self._dollars(),
            first_token_seconds=(waits[len(waits) // 2], waits[len(waits) * 99 // 100]),
        )

    def _dollars(self) -> float:
        speed = Decimal(self._cold) / Decimal(sum(self._prefill))
        card = PriceCard.from_gpu(
            usd_per_hour=USD_PER_HOUR,
            prefill_tokens_per_second=speed,
            cached_tokens_per_second=Decimal("Infinity"),
            decode_tokens_per_second=Decimal(1) / Decimal(TOKEN_SECONDS),
        )
        cost = card.price(Usage(input=self._cold, cache_read=self._warm, output=0))
        assert cost is not None  # noqa: S101 - the card has all rates
        return float(cost.total * MILLION / len(self._waits))


def _above_mean(values: list[int] | list[float]) -> float:
    return max(values) * len(values) / sum(values)


def infinite_cache(chat: Chat, replicas: int) -> float:
    """Share of prompt tokens computed if caches held everything and servers were drawn at random.

    A turn finds what the latest turn before it left that went to the same server: that of j turns
    ago with probability (1/N) (1 - 1/N)^(j-1), and the system prompt if there was none.
    """
    stays = 1 / replicas
    cold = total = 0.0
    for turn in range(1, chat.turns + 1):
        warm, elsewhere = 0.0, 1.0
        for before in range(turn - 1, 0, -1):
            warm += elsewhere * stays * (chat.prompt_tokens(before) + chat.answer_tokens)
            elsewhere *= 1 - stays
        warm += elsewhere * chat.system_tokens
        cold += chat.prompt_tokens(turn) - warm
        total += chat.prompt_tokens(turn)
    return cold / total
