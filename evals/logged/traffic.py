"""What drift is told by, from the requests of a time: scores, beliefs, embeddings and labels.

Of each session the scores, beliefs and embeddings of one request are looked at, its first, since
those of its others are not independent of them.
"""

from base64 import b64decode
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cascade.audit import AuditRecord
from cascade.types import Kind
from evals.logged.reading import Logged

OUT_OF_DOMAIN = "out_of_domain"
NOT_BELIEVED = frozenset({"fallback", "no_estimator"})
"""Flags of beliefs that no estimator gave."""

MOST_SESSIONS = 50_000
"""Of which embeddings are held in memory; those of later ones are left out."""


class Who(NamedTuple):
    """Whose numbers they are: a judge's of a tier's answers, or the beliefs in a tier."""

    tier: str
    judge: str | None

    def __str__(self) -> str:
        return f"{self.judge} of {self.tier}" if self.judge else f"belief in {self.tier}"


@dataclass(slots=True)
class Traffic:
    """The requests of a time.

    Attributes:
        requests: how many.
        sessions: of which.
        scores: of each judge and tier, and the beliefs in each tier, one a session.
        labelled: the same with whether the answer was right, of every request that was spoken of.
        flagged: sessions that a learned estimator looked at, and of these those out of its domain.
        embeddings: as halves, by the model that made them.
        features: of the same sessions, by model.
    """

    requests: int = 0
    sessions: set[str] = field(default_factory=set)
    scores: dict[Who, list[float]] = field(default_factory=lambda: defaultdict(list))
    labelled: dict[Who, list[tuple[float, bool]]] = field(default_factory=lambda: defaultdict(list))
    flagged: tuple[int, int] = (0, 0)
    embeddings: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    features: dict[str, list[Mapping[str, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def vectors(self, model: str) -> NDArray[np.float32]:
        """The embeddings of a model, of shape (sessions, dimensions)."""
        halves = [np.frombuffer(each, dtype="<f2") for each in self.embeddings.get(model, ())]
        return np.stack(halves).astype(np.float32) if halves else np.zeros((0, 0), np.float32)


def traffic(rows: Iterable[Logged], policies: Collection[str]) -> Traffic:
    """What the requests say.

    Args:
        rows: of the log.
        policies: names of those whose estimator's domain is asked about.
    """
    found = Traffic()
    for row in rows:
        add(found, row, policies)
    return found


def add(found: Traffic, row: Logged, policies: Collection[str]) -> None:
    """One more request."""
    record = row.record
    found.requests += 1
    whose = f"{record.tenant}/{record.session or record.id}"
    said = dict(_said(record))
    if row.label is not None and record.tier is not None:
        for who, score in said.items():
            if who.tier == record.tier:
                found.labelled[who].append((score, row.label >= 0.5))  # noqa: PLR2004 - one half
    if whose in found.sessions:
        return
    found.sessions.add(whose)
    for who, score in said.items():
        found.scores[who].append(score)
    if record.policy in policies and not NOT_BELIEVED.intersection(record.belief_flags):
        looked, out = found.flagged
        found.flagged = looked + 1, out + (OUT_OF_DOMAIN in record.belief_flags)
    if record.embedding and len(found.sessions) <= MOST_SESSIONS:
        model = record.embedding["model"]
        found.embeddings[model].append(b64decode(record.embedding["float16"]))
        found.features[model].append(numbers(record))


def _said(record: AuditRecord) -> Iterator[tuple[Who, float]]:
    for call in record.attempts:
        if call.kind == Kind.ANSWER and call.judge is not None and call.score is not None:
            yield Who(call.tier, call.judge), call.score
    if not NOT_BELIEVED.intersection(record.belief_flags):
        for tier, mean in (record.beliefs or {}).items():
            yield Who(tier, None), mean


def numbers(record: AuditRecord) -> dict[str, float]:
    """The features that an estimate was made from, as far as they are there."""
    return {name: float(v) for name, v in (record.features or {}).items() if v is not None}
