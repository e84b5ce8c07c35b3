"""Rows straight from the audit log and the feedback beside it; no prompt is needed.

A request whose answer somebody spoke of is a row: its features and embedding are on its audit row,
and the word is the label of the tier that answered. What the other tiers would have said is not
known, and what was sent up is harder than the rest: such labels make each tier look worse or better
than it is on average, unless some requests are sent to each tier at random by an experiment. Shadow
calls (`from_draws`) have labels of all tiers for requests that chance has chosen.
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
from evals.training.from_draws import drawn_ids, drawn_labels
from evals.training.preferences import Answered, labels, unfit
from evals.training.rows import Rows, TrainingError
from serving.store.feedback import WORDS
from serving.store.tables import feedback, requests


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


def from_audit(
    engine: Engine, tiers: Sequence[str], *, embeddings: bool, judge: str | None = None
) -> Logged:
    """Every request that somebody spoke of, as a row.

    Args:
        engine: of the audit database.
        tiers: from the cheapest to the best.
        embeddings: take only rows with an embedding, of the model that most of them have.
        judge: whose word on the answers of requests that were drawn for shadow calls is a label as
            well, where nobody spoke of them; None: nobody's.

    Raises:
        TrainingError: there are none.
    """
    drawn = {} if judge is None else drawn_labels(engine, judge)
    said = _said(engine)
    skipped: dict[str, int] = defaultdict(int)
    fit = {}
    for row in _answered(engine, judge):
        key = row["id"], row["tenant"]
        why = _unfit(row, tiers, embeddings=embeddings)
        if why is None:
            fit[key] = row
        elif key in said or row["id"] in drawn:
            skipped[why] += 1
    compared, used = _compared(engine, fit, said, skipped)
    alone = [
        (row, known)
        for key, row in fit.items()
        if key not in used and (known := _known(row, tiers, drawn, said.get(key)))
    ]
    found = [*alone, *compared]
    if embeddings:
        found, embedded_by = _of_one_model(found, skipped)
    if not found:
        raise TrainingError(f"no request of the audit log can be learned from: {_why(skipped)}")
    return Logged(
        rows=_rows(found, tiers, embeddings=embeddings),
        embedded_by=embedded_by if embeddings else "",
        skipped=dict(skipped),
    )


Key = tuple[str, str]
Found = list[tuple[RowMapping, Mapping[str, float]]]
"""Rows with labels by tier."""


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


def _compared(
    engine: Engine,
    fit: Mapping[Key, RowMapping],
    said: Mapping[Key, float],
    skipped: dict[str, int],
) -> tuple[Found, set[Key]]:
    """A row for each prompt of which answers were compared, and the requests that are in it."""
    prompts: dict[Key, list[tuple[Answered, Answered, str]]] = defaultdict(list)
    rows: dict[Key, RowMapping] = {}
    used: set[Key] = set()
    for this, other, preferred in _comparisons(engine):
        if this not in fit or other not in fit:
            continue
        mine, theirs = (
            Answered(tier=fit[key]["tier"], prompt=fit[key]["prompt_hash"], word=said.get(key))
            for key in (this, other)
        )
        if (why := unfit(mine, theirs)) is not None:
            skipped[why] += 1
            continue
        prompt = mine.prompt, this[1]
        rows.setdefault(prompt, fit[this])
        prompts[prompt].append((mine, theirs, preferred))
        used |= {this, other}
    return [(rows[prompt], labels(pairs)) for prompt, pairs in prompts.items()], used


def _comparisons(engine: Engine) -> list[tuple[Key, Key, str]]:
    columns = ("request_id", "compared_to", "tenant", "preferred")
    wanted = select(*(feedback.c[name] for name in columns)).where(
        feedback.c.preferred.is_not(None)
    )
    ordered = wanted.order_by(feedback.c.request_id, feedback.c.source)
    with engine.connect() as connection:
        return [
            ((this, tenant), (other, tenant), preferred)
            for this, other, tenant, preferred in connection.execute(ordered)
        ]


def _known(
    row: RowMapping,
    tiers: Sequence[str],
    drawn: Mapping[str, Mapping[str, float]],
    word: float | None,
) -> dict[str, float]:
    """Labels by tier; what was said of an answer counts before what a judge says."""
    judged = drawn.get(row["id"], {})
    known = {tier: score for tier, score in judged.items() if tier in tiers}
    return known if word is None else {**known, row["tier"]: word}


def _answered(engine: Engine, judge: str | None) -> Sequence[RowMapping]:
    columns = ("id", "tenant", "session", "prompt_hash", "tier", "features", "embedding")
    spoken_of = requests.c.id.in_(select(feedback.c.request_id)) | requests.c.id.in_(
        select(feedback.c.compared_to).where(feedback.c.compared_to.is_not(None))
    )
    if judge is not None:
        spoken_of |= requests.c.id.in_(drawn_ids(judge))
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
    given = np.full((len(found), len(tiers)), np.nan)
    for at, (_, told) in enumerate(found):
        for tier, score in told.items():
            given[at, tiers.index(tier)] = score
    return Rows(
        tiers=list(tiers),
        features=[_features(row) for row, _ in found],
        labels=given,
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
