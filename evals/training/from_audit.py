"""Rows straight from the audit log and the feedback beside it; no prompt is needed.

A request whose answer somebody spoke of is a row: its features and embedding are on its audit row,
and the word is the label of the tier that answered. What the other tiers would have said is not
known, and what was sent up is harder than the rest: such labels make each tier look worse or better
than it is on average, unless some requests are sent to each tier at random by an experiment.
"""

from base64 import b64decode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, RowMapping, select

from classifiers.features import KNOWN, TAG, TEXT
from evals.metrics import mean
from evals.training.rows import Rows, TrainingError
from serving.store.tables import feedback, requests

WORDS: Mapping[str, float] = {
    **dict.fromkeys(("good", "right", "correct", "up", "accept", "accepted", "yes"), 1.0),
    **dict.fromkeys(("bad", "wrong", "incorrect", "down", "reject", "rejected", "no"), 0.0),
}
"""What a label of the feedback stands for, where it has no score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """Rows of a log.

    Attributes:
        embedded_by: the model whose embeddings they hold; empty for none.
        skipped: requests with feedback that are no rows, by why.
    """

    rows: Rows
    embedded_by: str
    skipped: Mapping[str, int]


def from_audit(engine: Engine, tiers: Sequence[str], *, embeddings: bool) -> Logged:
    """Every request that somebody spoke of, as a row.

    Args:
        engine: of the audit database.
        tiers: from the cheapest to the best.
        embeddings: take only rows with an embedding, of the model that most of them have.

    Raises:
        TrainingError: there are none.
    """
    said = _said(engine)
    skipped: dict[str, int] = defaultdict(int)
    found = []
    for row in _answered(engine):
        word = said.get((row["id"], row["tenant"]))
        if word is None:
            continue
        if (why := _unfit(row, tiers, embeddings=embeddings)) is not None:
            skipped[why] += 1
            continue
        found.append((row, word))
    if embeddings:
        found, embedded_by = _of_one_model(found, skipped)
    if not found:
        raise TrainingError(f"no request of the audit log can be learned from: {_why(skipped)}")
    return Logged(
        rows=_rows(found, tiers, embeddings=embeddings),
        embedded_by=embedded_by if embeddings else "",
        skipped=dict(skipped),
    )


Found = list[tuple[RowMapping, float]]


def _said(engine: Engine) -> dict[tuple[str, str], float]:
    """By request and tenant, the mean of what its sources said."""
    words: dict[tuple[str, str], list[float]] = defaultdict(list)
    with engine.connect() as connection:
        for row in connection.execute(select(feedback)).mappings():
            score = row["score"]
            if score is None:
                score = WORDS.get((row["label"] or "").strip().lower())
            if score is not None:
                words[row["request_id"], row["tenant"]].append(score)
    return {key: mean(scores) for key, scores in words.items()}


def _answered(engine: Engine) -> Sequence[RowMapping]:
    columns = ("id", "tenant", "session", "prompt_hash", "tier", "features", "embedding")
    spoken_of = requests.c.id.in_(select(feedback.c.request_id))
    wanted = select(*(requests.c[name] for name in columns)).where(spoken_of)
    with engine.connect() as connection:
        return connection.execute(wanted.order_by(requests.c.id)).mappings().all()


def _unfit(row: RowMapping, tiers: Sequence[str], *, embeddings: bool) -> str | None:
    if row["tier"] not in tiers:
        return "no tier of the configuration answered"
    if not _features(row).keys() >= set(TEXT):
        return "its features are not those of an estimator of type learned: give its policy one"
    if embeddings and not row["embedding"]:
        return "no embedding was kept: set audit.embeddings"
    return None


def _of_one_model(found: Found, skipped: dict[str, int]) -> tuple[Found, str]:
    counts: dict[str, int] = defaultdict(int)
    for row, _ in found:
        counts[row["embedding"]["model"]] += 1
    if not counts:
        return [], ""
    most = max(counts, key=counts.__getitem__)
    kept = [pair for pair in found if pair[0]["embedding"]["model"] == most]
    if len(kept) < len(found):
        skipped[f"embedded by another model than {most}"] += len(found) - len(kept)
    return kept, most


def _rows(found: Found, tiers: Sequence[str], *, embeddings: bool) -> Rows:
    labels = np.full((len(found), len(tiers)), np.nan)
    for at, (row, score) in enumerate(found):
        labels[at, tiers.index(row["tier"])] = score
    return Rows(
        tiers=list(tiers),
        features=[_features(row) for row, _ in found],
        labels=labels,
        groups=np.array([row["session"] or row["prompt_hash"] for row, _ in found]),
        embeddings=np.stack([_vector(row) for row, _ in found]) if embeddings else None,
    )


def _features(row: RowMapping) -> dict[str, float]:
    kept = row["features"] or {}
    return {
        name: float(value)
        for name, value in kept.items()
        if value is not None and (name in KNOWN or name.startswith(TAG))
    }


def _vector(row: RowMapping) -> NDArray[np.float32]:
    return np.frombuffer(b64decode(row["embedding"]["float16"]), dtype="<f2").astype(np.float32)


def _why(skipped: Mapping[str, int]) -> str:
    if not skipped:
        return "nobody gave feedback with a score or a label such as good or bad"
    return "; ".join(f"{count} skipped: {why}" for why, count in skipped.items())
