"""How judges ask models: every failure is a judge's, with what it cost."""

import asyncio
from collections.abc import Mapping, Sequence

from cascade.asking import calls
from cascade.asking.calls import Asked
from cascade.errors import BackendError, JudgeError
from cascade.tiers import ModelTier
from cascade.types import FREE, ChatRequest, Completion, total

__all__ = ["Asked", "answering", "ask", "ask_all"]


async def ask(tier: ModelTier, request: ChatRequest) -> Asked:
    """Ask a tier for a whole answer.

    Raises:
        JudgeError: it failed; has what the call cost.
    """
    try:
        return await calls.ask(tier, request)
    except BackendError as error:
        raise JudgeError(
            f"{tier.name} could not be asked: {error.message}", cost=calls.cost_of(error)
        ) from error


async def ask_all(questions: Sequence[tuple[ModelTier, ChatRequest]]) -> list[Asked]:
    """Ask all at once.

    Raises:
        JudgeError: one of them failed; has what all of them cost.
    """
    outcomes = await asyncio.gather(*(ask(*each) for each in questions), return_exceptions=True)
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for failure in failures:
        if not isinstance(failure, JudgeError):
            raise failure
    if failures:
        costs = [o.cost for o in outcomes if isinstance(o, JudgeError | Asked)]
        raise JudgeError(str(failures[0]), cost=total(costs)) from failures[0]
    return [outcome for outcome in outcomes if isinstance(outcome, Asked)]


def answering(tiers: Mapping[str, ModelTier], completion: Completion) -> ModelTier:
    """The tier that gave an answer.

    Raises:
        JudgeError: it is none of those that are known here.
    """
    if completion.tier not in tiers:
        raise JudgeError(f"the tier {completion.tier!r} that answered is not known", cost=FREE)
    return tiers[completion.tier]
