"""Answers that a judge and somebody who got them think differently of, to be looked at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Engine, and_, or_, select

from cascade.types import Kind, Outcome
from serving.store.tables import attempts, feedback, requests

LATEST: Final = 2_000
"""So many words of feedback are looked through, so that a page never waits for more."""

GOOD: Final = 0.5
"""From this score on somebody found an answer good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One answer that was served.

    Attributes:
        score: the judge's.
        threshold: what that was held against; None where nothing was.
        accepted: whether the policy took it on the judge's word.
        label: what was said of it, in [0, 1].
    """

    request_id: str
    given_at: float
    judge: str
    tier: str
    score: float
    threshold: float | None
    accepted: bool
    label: float


def disagreements(
    engine: Engine, since: float, until: float | None, limit: int
) -> Sequence[Disagreement]:
    """The latest, among the latest words of feedback of that time.

    Accepted answers that somebody found bad, and rejected ones that were served and found good.
    """
    said = feedback.c
    latest = (
        select(said.request_id, said.tenant, said.given_at, said.score.label("label"))
        .where(said.score.is_not(None), said.given_at >= since)
        .order_by(said.given_at.desc())
        .limit(LATEST)
    )
    if until is not None:
        latest = latest.where(said.given_at < until)
    words = latest.subquery()
    of = attempts.c
    accepted = of.outcome == Outcome.ACCEPTED.value
    rejected = of.outcome == Outcome.REJECTED.value
    found = (
        select(
            words.c.request_id,
            words.c.given_at,
            words.c.label,
            *(of.judge, of.tier, of.score, of.threshold),
            accepted.label("accepted"),
        )
        .join(
            requests,
            and_(requests.c.id == words.c.request_id, requests.c.tenant == words.c.tenant),
        )
        .join(attempts, and_(of.request_id == requests.c.id, of.tier == requests.c.tier))
        .where(of.kind == Kind.ANSWER.value, of.judge.is_not(None), of.score.is_not(None))
        .where(or_(and_(accepted, words.c.label < GOOD), and_(rejected, words.c.label >= GOOD)))
        .order_by(words.c.given_at.desc(), words.c.request_id)
        .limit(limit)
    )
    with engine.connect() as connection:
        rows = connection.execute(found).mappings()
        return [Disagreement(**{**row, "accepted": bool(row["accepted"])}) for row in rows]
