"""How judges ask models: priced by the tier's card, and every failure with what it cost."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from cascade.errors import BackendError, BackendProtocolError, ConfigError, JudgeError
from cascade.tiers import ModelTier
from cascade.types import FREE, ChatRequest, Completion, Cost, total


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model answered and what that cost; None when it is unknown."""

    completion: Completion
    cost: Cost | None


async def ask(tier: ModelTier, request: ChatRequest) -> Asked:
    """Ask a tier for a whole answer.

    Raises:
        JudgeError: it failed; has what the call cost.
    """
    completion = None
    try:
        async with aclosing(tier.stream(request)) as chunks:
            async for chunk in chunks:
                completion = chunk.completion or completion
        if completion is None:
            raise BackendProtocolError("the stream ended without a completion")
    except BackendError as error:
        raise JudgeError(
            f"{tier.name} could not be asked: {error.message}",
            cost=None if error.may_have_cost else FREE,
        ) from error
    cost = None if completion.unreported_tries else tier.price(completion.usage)
    return Asked(completion, cost)


async def ask_all(calls: Sequence[tuple[ModelTier, ChatRequest]]) -> list[Asked]:
    """Ask all at once.

    Raises:
        JudgeError: one of them failed; has what all of them cost.
    """
    outcomes = await asyncio.gather(*(ask(*call) for call in calls), return_exceptions=True)
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for failure in failures:
        if not isinstance(failure, JudgeError):
            raise failure
    if failures:
        costs = [o.cost for o in outcomes if isinstance(o, JudgeError | Asked)]
        raise JudgeError(str(failures[0]), cost=total(costs)) from failures[0]
    return [outcome for outcome in outcomes if isinstance(outcome, Asked)]


def tier_named(tiers: Mapping[str, ModelTier], name: str, option: str) -> ModelTier:
    """The tier that an option names.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in tiers:
        known = ", ".join(tiers) or "none"
        raise ConfigError(f"there is no tier {name!r}; there are: {known}", param=option)
    return tiers[name]


def answering(tiers: Mapping[str, ModelTier], completion: Completion) -> ModelTier:
    """The tier that gave an answer.

    Raises:
        JudgeError: it is none of those that are known here.
    """
    if completion.tier not in tiers:
        raise JudgeError(f"the tier {completion.tier!r} that answered is not known", cost=FREE)
    return tiers[completion.tier]
