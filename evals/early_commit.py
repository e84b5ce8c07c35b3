"""What releasing an answer by its start alone would have done to stored answers.

The start of a stored answer is what the service's judge would have seen of it. So the threshold of
a commit rule gets a certificate of its own: that of whole answers says nothing of their starts. An
answer that ended before the look is never released early, and counts among all requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cascade.early import beginning, free, growing
from cascade.errors import ConfigError, JudgeError
from cascade.protocols import Judge
from cascade.types import ChatRequest, Completion
from evals.datasets import Prompt
from evals.guarantee import GRID, RISKS, Certificate, Labelled, certify, opening
from evals.metrics import Interval, auroc, bootstrap, mean
from evals.outcomes import Outcomes, OutcomesError
from evals.panel_rows import completion_of

_RESAMPLES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """One stored answer, its start and the whole of it as judged.

    Attributes:
        group: prompts made alike share one.
        split: "fit", "calibrate" or "test".
        long: whether it lasted until the look.
        start: score of the start; None for an answer that ended before, or that nobody could tell
            about.
        whole: score of the whole answer; None: cannot tell.
        right: whether the answer is acceptable.
        strong_right: whether the highest tier's is.
    """

    prompt: str
    group: str
    split: str
    long: bool
    start: float | None
    whole: float | None
    right: bool
    strong_right: bool


class Share(NamedTuple):
    """A share of the rows, or a difference of shares, with its interval at 95 %."""

    value: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a ladder of two tiers does with and without the commit rule, on the same rows.

    Attributes:
        rows: how many.
        long: share of answers that lasted until the look.
        ranks: area under the ROC curve of the start's score, right against wrong, over the answers
            that have one; None when all of them are right or all wrong.
        released: share released early.
        wrong: share released early and wrong.
        right: share of right answers in the end, without the rule and with it.
        sent_up: share of escalated requests, without it and with it.
        lost: right answers lost by the rule: without it less with it, the rows drawn in pairs.
    """

    rows: int
    long: Share
    ranks: Share | None
    released: Share
    wrong: Share
    right: tuple[Share, Share]
    sent_up: tuple[Share, Share]
    lost: Share


async def started(
    outcomes: Outcomes,
    prompts: Mapping[str, Prompt],
    judges: tuple[Judge, Judge],
    after_tokens: int,
) -> list[Started]:
    """A row for each prompt that both the lowest and the highest tier answered.

    Args:
        outcomes: the answers, with log probabilities.
        prompts: by id.
        judges: who looks at the start, and who judges the whole answer.
        after_tokens: how long the start is.

    Raises:
        ConfigError: a judge cannot do that without asking a model.
        OutcomesError: a prompt is not there, or answers have no log probabilities to cut them by.
        JudgeError: a judge failed; says on which prompt.
    """
    _refuse(*judges)
    first, *_, last = outcomes.manifest.tiers
    strong = outcomes.answers(last)
    rows = []
    for name, answer in outcomes.answers(first).items():
        if name not in prompts:
            raise OutcomesError(f"the outcomes answer {name!r}, which is no prompt of the set")
        if answer.logprobs is None:
            raise OutcomesError(
                f"{first}'s answer to {name!r} has no log probabilities, so nobody knows where its "
                f"first {after_tokens} tokens end; collect from a server that gives them"
            )
        if name not in strong:
            continue
        prompt, whole = prompts[name], completion_of(answer)
        long = len(answer.logprobs) >= after_tokens
        start = beginning(whole, after_tokens)
        rows.append(
            Started(
                prompt=name,
                group=prompt.group or name,
                split=prompt.split,
                long=long,
                start=await _score(judges[0], prompt.request(), start) if long else None,
                whole=await _score(judges[1], prompt.request(), whole),
                right=answer.right,
                strong_right=strong[name].right,
            )
        )
    return rows


def certificates(
    rows: Sequence[Started], alpha: float, delta: float, risks: Sequence[str] = tuple(RISKS)
) -> list[Certificate]:
    """One for each risk, from the calibrate rows; the fit rows say where to begin.

    Raises:
        CertifyError: there are too few rows.
    """
    labels = [
        Labelled(score=row.start, right=row.right, strong_right=row.strong_right)
        for row in split(rows, "calibrate")
    ]
    before = [row.start for row in split(rows, "fit")]
    found = []
    for risk in risks:
        grid = opening(before, len(labels), alpha, delta) if risk == "selective" else GRID
        found.append(certify(labels, risk=risk, alpha=alpha, delta=delta, grid=grid))
    return found


def split(rows: Sequence[Started], name: str) -> list[Started]:
    """The rows of a split."""
    return [row for row in rows if row.split == name]


def effect(rows: Sequence[Started], *, at: float, accept_at: float) -> Effect:
    """What the ladder does with a commit threshold, beside what it does without one.

    Args:
        rows: at least one.
        at: score of the start from which on an answer is released.
        accept_at: score of the whole answer from which on it is accepted.
    """

    def out(row: Started) -> bool:
        return row.start is not None and row.start >= at

    def up(row: Started) -> bool:
        return row.whole is None or row.whole < accept_at

    def right(row: Started) -> bool:
        return row.strong_right if up(row) else row.right

    def with_rule(row: Started) -> bool:
        return row.right if out(row) else right(row)

    return Effect(
        rows=len(rows),
        long=_share(rows, [row.long for row in rows]),
        ranks=ranks(rows),
        released=_share(rows, [out(row) for row in rows]),
        wrong=_share(rows, [out(row) and not row.right for row in rows]),
        right=(_share(rows, map(right, rows)), _share(rows, map(with_rule, rows))),
        sent_up=(
            _share(rows, map(up, rows)),
            _share(rows, [up(row) and not out(row) for row in rows]),
        ),
        lost=_share(rows, [right(row) - with_rule(row) for row in rows]),
    )


def ranks(rows: Sequence[Started]) -> Share | None:
    """How well the score of the starts tells right answers from wrong; see `Effect`."""
    rows = [row for row in rows if row.start is not None]

    def area(drawn: Sequence[Started]) -> float | None:
        return auroc([row.start or 0.0 for row in drawn], [row.right for row in drawn])

    whole = area(rows)
    if whole is None:
        return None
    groups = [row.group for row in rows]
    # A draw with only right answers, or only wrong ones, says nothing of their order.
    ends = bootstrap(rows, lambda d: area(d) or 0.5, groups=groups, resamples=_RESAMPLES)
    return Share(whole, ends)


def _refuse(start: Judge, whole: Judge) -> None:
    if not growing(start):
        raise ConfigError(
            f"judge {start.name} cannot look at an answer that is still growing; name one of the "
            "type logprob, or a panel of nothing but such"
        )
    if not free(whole):
        raise ConfigError(
            f"judge {whole.name} asks a model about whole answers, which stored ones do not wait "
            "for; name a policy whose first step has a judge that asks none"
        )


async def _score(judge: Judge, request: ChatRequest, completion: Completion) -> float | None:
    try:
        return (await judge.judge(request, completion)).score
    except JudgeError as error:
        raise JudgeError(f"prompt {request.id}: {judge.name}: {error.message}") from None


def _share(rows: Sequence[Started], values: Iterable[float]) -> Share:
    numbers = [float(value) for value in values]
    groups = [row.group for row in rows]
    return Share(mean(numbers), bootstrap(numbers, mean, groups=groups, resamples=_RESAMPLES))
