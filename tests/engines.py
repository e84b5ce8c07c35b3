"""Engines over scripted tiers, for tests."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.engine import CascadeEngine
from cascade.experiments import Arm
from cascade.policies.ladder import LadderPolicy, Rung
from cascade.pricing import PriceCard, Rates
from cascade.protocols import Judge
from cascade.result import CascadeResult, Event, Finished
from cascade.snapshot import Snapshot
from cascade.tiers import ModelTier
from cascade.types import ChatRequest, Completion, Json, Plan, Step, Verdict


class MemorySink:
    """Keeps every result."""

    def __init__(self) -> None:
        self.results: list[CascadeResult] = []

    def write(self, result: CascadeResult) -> None:
        self.results.append(result)


class FixedJudge:
    """Gives the scores it is told, in order; the last one is repeated. An exception is raised."""

    def __init__(self, *scores: float | Exception | None, name: str = "told", **needs: Any) -> None:
        self.name = name
        self.needs: Json = needs
        self.seen: list[Completion] = []
        self._scores = scores

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        score = self._scores[min(len(self.seen), len(self._scores) - 1)]
        self.seen.append(completion)
        if isinstance(score, Exception):
            raise score
        return Verdict(judge=self.name, score=score, reason="told so")


def card(fresh: str = "1", cache_read: str = "0.1", output: str = "2") -> PriceCard:
    return PriceCard(
        rates=Rates(input=Decimal(fresh), cache_read=Decimal(cache_read), output=Decimal(output))
    )


KNOWS = frozenset({"cache_control", "prompt_cache", "thinking"})
"""All content bound to a provider: a scripted model is of every provider unless a test says not."""


def tier(
    name: str, *answers: Script | str, prices: PriceCard | None = None, **claims: Any
) -> ModelTier:
    return ModelTier(
        name=name,
        backend=ScriptedBackend(answers=answers or ("ok",), model=f"{name}-model"),
        prices=prices or card(),
        **{"accepts": KNOWS, **claims},
    )


def request(text: str = "what is 2+2?", **params: Any) -> ChatRequest:
    return ChatRequest(
        id="r1", model="cascade", messages=[{"role": "user", "content": text}], params=params
    )


def ladder(*rungs: Rung | Mapping[str, Any]) -> Arm:
    return Arm(name=None, policy=LadderPolicy(name="ladder", steps=rungs))


SMALL_THEN_LARGE = ladder(
    Rung(tier="small", judge="told", accept_at=0.8),
    Rung(tier="large"),
)


LOGPROBS_ONLY = frozenset({"logprobs"})
"""Capabilities of a tier that takes plain text and tells how sure it was."""


class Greedy:
    """A policy with a bug: it always wants small, whatever it was told."""

    name = "greedy"
    steps = ()

    def decide(self, request, beliefs, quotes, attempts):
        return Plan(steps=[Step(tier="small")])


class Bench:
    """An engine with its tiers, judges and sink at hand."""

    def __init__(
        self, *tiers: ModelTier, judge: Judge | None = None, arm: Arm = SMALL_THEN_LARGE
    ) -> None:
        self.sink = MemorySink()
        self.arm = arm
        snapshot = Snapshot(
            version="v1",
            tiers={each.name: each for each in tiers},
            judges={judge.name: judge} if judge else {},
        )
        self.engine = CascadeEngine(snapshot, self.sink)

    async def run(self, asked: ChatRequest | None = None) -> CascadeResult:
        return await self.engine.run(asked or request(), self.arm)

    async def live(self, asked: ChatRequest | None = None) -> CascadeResult:
        """The result of an answer that is streamed to the client."""
        last = (await self.events(asked))[-1]
        assert isinstance(last, Finished)
        return last.result

    async def events(self, asked: ChatRequest | None = None) -> list[Event]:
        return [event async for event in self.engine.events(asked or request(), self.arm)]

    def asked(self, name: str) -> Sequence[ChatRequest]:
        backend = self.engine.snapshot.tiers[name].backend
        assert isinstance(backend, ScriptedBackend)
        return backend.requests
