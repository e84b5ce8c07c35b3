"""Asks a small tier's model, in one token, whether its own answer to the request would do.

The probabilities of the label tokens are the estimate, which is steadier than a confidence in
words. It costs a short call before every request, and that cost is booked: it pays only where the
calls that it saves are much dearer. What a person wrote is kept from giving the model orders as
well as `cascade.asking.prompts` can.
"""

import asyncio
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from cascade.asking import calls
from cascade.asking.calls import for_a_label, tier_named
from cascade.asking.labels import read_label
from cascade.asking.prompts import delimited
from cascade.asking.rubric import load
from cascade.errors import BackendError, ConfigError, EstimatorError
from cascade.posterior import PRIOR
from cascade.tiers import ModelTier
from cascade.types import FREE, Beliefs, Budget, ChatRequest, total
from classifiers.text import Asked, Extraction, asked

FOLDER: Final = Path(__file__).parent / "rubrics"
"""Of the rubrics that come with Cascade for estimating."""

_READ: Final = Extraction(ask_tokens=512, context_tokens=256, system_tokens=64, code_tokens=256)
_SHARE: Final = 0.25
"""Of what a client allows for the whole request; the rest is for the answer."""


class LlmEstimator:
    """P(acceptable) of one tier from its model's label, and of the others as configured.

    Args:
        name: how the audit log calls it.
        tier: whose model is asked, and whose answer it speaks of.
        tiers: the other tiers' probability of an acceptable answer.
        rubric: the name of one that comes with Cascade or the path of a file.
        top_logprobs: alternatives to read label probabilities from, from 1 to 20, as many as the
            server allows.
        seconds: that it may take, and a quarter of the request's deadline if that is less.
        text: what of a conversation is shown; fields of Extraction.
        served: the tiers there are.
        base: folder that a relative path of a rubric starts from.
    """

    def __init__(
        self,
        *,
        name: str = "llm",
        tier: str,
        tiers: Mapping[str, float],
        rubric: str = "enough",
        top_logprobs: int = 20,
        seconds: float = 5.0,
        text: Mapping[str, Any] | None = None,
        served: Mapping[str, ModelTier],
        base: Path = Path(),
    ) -> None:
        for other, value in tiers.items():
            if not 0.0 <= value <= 1.0:
                raise ConfigError("it is a probability, from 0 to 1", param=f"tiers.{other}")
        if tier in tiers:
            raise ConfigError("that one's probability is what its model says", param="tiers")
        if not 1 <= top_logprobs <= 20:  # noqa: PLR2004 - what the API allows
            raise ConfigError("it is not in 1..20", param="top_logprobs")
        if not seconds > 0.0:
            raise ConfigError("it must be above 0", param="seconds")
        self.name = name
        self.asks: str | None = tier
        self._asked = tier_named(served, tier, "tier")
        self._others = dict(tiers)
        self._rubric = load(rubric, base, FOLDER)
        self._top_logprobs = top_logprobs
        self._seconds = seconds
        self._read = Extraction.of(text, "text", _READ)

    async def estimate(self, requests: Sequence[ChatRequest]) -> list[Beliefs]:
        """One Beliefs a request.

        Raises:
            EstimatorError: the model failed or named no label; has what all the calls cost.
        """
        outcomes = await asyncio.gather(*map(self._beliefs, requests), return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for failure in failures:
            if not isinstance(failure, EstimatorError):
                raise failure
        if failures:
            costs = [o.cost for o in outcomes if isinstance(o, EstimatorError | Beliefs)]
            estimated = any(o.estimated for o in outcomes if isinstance(o, EstimatorError))
            message = str(failures[0])
            raise EstimatorError(message, cost=total(costs), estimated=estimated) from failures[0]
        return [outcome for outcome in outcomes if isinstance(outcome, Beliefs)]

    async def _beliefs(self, request: ChatRequest) -> Beliefs:
        shown = asked(request.messages, self._read)
        if not shown.said:  # an image, say: there is nothing to show
            mean = {self._asked.name: PRIOR, **self._others}
            return Beliefs(mean=mean, flags=frozenset({"fallback"}))
        messages = delimited(self._rubric, _pieces(shown))
        question = for_a_label(self._asked, request, self.name, messages, self._top_logprobs)
        budget = request.budget or Budget()
        self._hold_to(budget, question)
        answer = await self._in_time(question, budget)
        reading = read_label(answer.completion, self._rubric.labels)
        if reading is None:
            wrote = answer.completion.text[:40]
            raise EstimatorError(
                f"{self._asked.name} wrote {wrote!r}, none of the labels", cost=answer.cost
            )
        chance = self._rubric.expected(reading.probabilities)
        features = {"expected": chance, "told": float(reading.mass is not None)}
        if reading.mass is not None:
            features["mass"] = reading.mass
        mean = {self._asked.name: chance, **self._others}
        return Beliefs(mean=mean, features=features, cost=answer.cost)

    def _hold_to(self, budget: Budget, question: ChatRequest) -> None:
        """Refuse a call that would take too much of what the answer may cost."""
        if budget.dollars is None:
            return
        expected = calls.expected_cost(self._asked, question)
        if expected is None or expected.total > budget.dollars * Decimal(_SHARE):
            raise EstimatorError(
                f"an estimate by {self._asked.name} is not known to cost at most a quarter of the "
                f"${budget.dollars.normalize():f} allowed",
                cost=FREE,
            )

    async def _in_time(self, question: ChatRequest, budget: Budget) -> calls.Asked:
        allowed = self._seconds
        if budget.seconds is not None:
            allowed = min(allowed, budget.seconds * _SHARE)
        limit = asyncio.timeout(allowed)
        try:
            async with limit:
                return await calls.ask(self._asked, question)
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"{self._asked.name} did not answer within {allowed:g} s"
            spent = calls.expected_cost(self._asked, question)
            raise EstimatorError(message, cost=spent, estimated=True) from None
        except BackendError as error:
            message = f"{self._asked.name} could not be asked: {error.message}"
            if error.unreported_tries or not error.may_have_cost:
                raise EstimatorError(message, cost=calls.cost_of(error)) from error
            spent = calls.expected_cost(self._asked, question)
            raise EstimatorError(message, cost=spent, estimated=True) from error


def _pieces(shown: Asked) -> dict[str, str]:
    """What there is, the request's own words last."""
    pieces = {"system": shown.system, "earlier": shown.context, "last message": shown.text}
    return {name: text for name, text in pieces.items() if text}
