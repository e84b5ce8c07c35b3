"""What the log knows of one request: which tiers answered, who judged that, and what it cost."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cascade.audit import PICO, AttemptRecord, AuditRecord
from cascade.types import Kind

_NOT_SURE: Final = 1.0 - 1e-9
"""Also where every request was drawn some are lost, so a draw is never as good as sure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A judge's word on an answer.

    Attributes:
        score: None where it could not tell, or failed.
        pico: what it cost, in pico-dollars; None where that is not known.
    """

    judge: str
    score: float | None
    features: dict[str, float]
    pico: int | None


@dataclass(slots=True, kw_only=True)
class Answered:
    """One tier's answer, or its failure.

    Attributes:
        call: its row.
        given: whether it is the answer that the client got.
        said: by judge.
    """

    call: AttemptRecord
    given: bool = False
    said: dict[str, Said] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls of one request.

    Attributes:
        answers: by tier, in the order in which it was asked.
        estimate_pico: pico-dollars of the estimator's own calls; None where that is not known.
        propensity: how likely it was that these calls were made, below 1 where any was drawn.
    """

    answers: dict[str, list[Answered]]
    estimate_pico: int | None
    propensity: float = 1.0

    def answer(self, tier: str, times: int) -> Answered | None:
        """What a tier said when it was asked for that time, counted from 0; None: not known."""
        found = self.answers.get(tier, ())
        return found[times] if times < len(found) else None


def own_calls(record: AuditRecord) -> Calls:
    """What is known without the calls that were drawn by chance."""
    return _calls(record, [call for call in record.attempts if call.kind != Kind.SHADOW])


def all_calls(record: AuditRecord) -> Calls | None:
    """The same with them; None where the request was not drawn."""
    drawn = [call for call in record.attempts if call.kind == Kind.SHADOW and call.propensity]
    if not drawn:
        return None
    return _calls(record, [call for call in record.attempts if call.kind != Kind.SHADOW], drawn)


def drawn_score(record: AuditRecord, tier: str, judge: str) -> float | None:
    """What a judge that nobody acted on gave a tier's answer; None where it was not asked."""
    found = [
        call.score
        for call in record.attempts
        if call.kind == Kind.SHADOW and (call.tier, call.judge) == (tier, judge)
    ]
    return found[-1] if found else None


def dollars(pico: int | None) -> float | None:
    """Dollars of whole pico-dollars."""
    return None if pico is None else float(pico / PICO)


def total(parts: Sequence[int | None]) -> int | None:
    """The sum; None when any is unknown."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _calls(
    record: AuditRecord, own: Sequence[AttemptRecord], drawn: Sequence[AttemptRecord] = ()
) -> Calls:
    answers: dict[str, list[Answered]] = defaultdict(list)
    last: Answered | None = None
    estimates: list[int | None] = []
    for call in own:
        if call.kind == Kind.ANSWER:
            last = Answered(call=call)
            answers[call.tier].append(last)
        elif call.kind == Kind.ESTIMATE:
            estimates.append(call.cost_pico)
        elif call.kind == Kind.JUDGE and last is not None and call.judge == last.call.judge:
            last.said[str(call.judge)] = _said(call)
    _mark_given(record, answers)
    for call in drawn:
        if call.judge is None:
            answers[call.tier].append(Answered(call=call))
        elif found := answers.get(call.tier):
            found[-1].said.setdefault(call.judge, _said(call))
    return Calls(
        answers=dict(answers),
        estimate_pico=total(estimates),
        propensity=min((_NOT_SURE * (call.propensity or 1.0) for call in drawn), default=1.0),
    )


def _mark_given(record: AuditRecord, answers: dict[str, list[Answered]]) -> None:
    """The answer that was taken is the last whole one of the tier that the row names."""
    whole = [each for each in answers.get(record.tier or "", ()) if each.call.error_type is None]
    if whole:
        whole[-1].given = True


def _said(call: AttemptRecord) -> Said:
    return Said(
        judge=str(call.judge),
        score=call.score,
        features=dict(call.features or {}),
        pico=call.cost_pico,
    )
