"""Errors as values, and why a request has no answer."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from cascade.candidates import Candidates
from cascade.errors import BudgetError, CascadeError, DeadlineError, NoAnswerError, NoFitError
from cascade.types import Attempt, Failure, Kind


def no_answer(
    candidates: Candidates,
    attempts: Sequence[Attempt],
    *,
    late: bool,
    drained: Mapping[str, str] = MappingProxyType({}),
) -> CascadeError:
    """Why there is no answer.

    Args:
        candidates: the tiers that could be asked, and why the others could not.
        attempts: all that were made.
        late: whether the time allowed is over.
        drained: tiers that may be asked again another time, with the reason that they are left out
            for; one that is left out for another could not serve it then either.
    """
    calls = [attempt for attempt in attempts if attempt.kind is Kind.ANSWER]
    left_out = candidates.why()
    if not calls and left_out:
        if candidates.over_budget:
            return BudgetError(f"the budget is too small for any call: {left_out}")
        message = f"no tier can serve this request: {left_out}"
        wanted = {step.tier for step in candidates.steps}
        left = {
            tier for tier in wanted & drained.keys() if candidates.unfit.get(tier) == drained[tier]
        }
        return NoAnswerError(message) if left else NoFitError(message)
    failures = [call for call in calls if call.error is not None]
    told = [f"{a.step.tier}: {a.error.message}" for a in failures if a.error]
    message = f"no model answered ({'; '.join([*told, *filter(None, [left_out])])})"
    if late:
        return DeadlineError(message)
    last = failures[-1].error if failures else None
    if last is None:
        return NoAnswerError(message)
    return NoAnswerError(message, status=last.status, retry_after=last.retry_after)


def failure(error: BaseException) -> Failure:
    """An error as a value."""
    if isinstance(error, CascadeError):
        return Failure(
            type=type(error).__name__,
            message=error.message,
            status=error.status,
            code=error.code,
            retry_after=error.retry_after,
        )
    return Failure(type=type(error).__name__, message=str(error), status=500)
