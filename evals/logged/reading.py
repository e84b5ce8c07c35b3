"""Reads the audit log in the order of time, a batch at once, so that its size does not matter."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine, RowMapping, and_, func, literal, or_, select

from cascade.audit import AuditRecord
from cascade.types import Kind
from evals.metrics import mean
from evals.training.preferences import beside
from serving.store.feedback import WORDS
from serving.store.rows import record
from serving.store.tables import attempts, feedback, requests

Key = tuple[str, str]
"""A request and its tenant."""

BATCH: Final = 2_000
_NOBODYS: Final = ("prewarm",)
"""Policies of rows that no client asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """One request of the log.

    Attributes:
        label: how good the answer is, in [0, 1], in the mean of what was said of it; None where
            nobody said.
        compared: what it is worth by comparisons with other answers to the same prompt, which say
            which is better and not whether it will do; None where there are none.
    """

    record: AuditRecord
    label: float | None
    compared: float | None = None


def logged(engine: Engine, since: float | None = None, *, batch: int = BATCH) -> Iterator[Logged]:
    """The requests of clients, the earliest first.

    Args:
        engine: of the audit database.
        since: seconds since the epoch; None: all.
        batch: how many are held in memory.
    """
    last = (since or 0.0, "")
    with engine.connect() as connection:
        compared = _compared(connection)
        while rows := _batch(connection, last, batch):
            last = (rows[-1]["created_at"], rows[-1]["id"])
            ids = [row["id"] for row in rows]
            calls, labels = _calls(connection, ids), _labels(connection, ids)
            for row in rows:
                if row["policy"] not in _NOBODYS:
                    key = row["id"], row["tenant"]
                    yield Logged(
                        record=record(row, calls[row["id"]]),
                        label=labels.get(key),
                        compared=compared.get(key),
                    )


def output_tokens(engine: Engine, since: float | None = None) -> dict[str, float]:
    """By tier, how many tokens its answers had in the mean."""
    c = attempts.c
    # A verdict is none, and it has no tokens of its own.
    known = (c.kind.in_((Kind.ANSWER.value, Kind.SHADOW.value)), c.output_tokens.is_not(None))
    wanted = select(c.tier, func.avg(c.output_tokens)).where(*known)
    if since is not None:
        wanted = wanted.join(requests, requests.c.id == c.request_id)
        wanted = wanted.where(requests.c.created_at >= since)
    with engine.connect() as connection:
        return {row[0]: float(row[1]) for row in connection.execute(wanted.group_by(c.tier))}


def judges_of_draws(engine: Engine, since: float | None = None) -> list[str]:
    """Who looked at answers of requests that were drawn, with nobody acting on it."""
    c = attempts.c
    shadow = c.kind == literal(Kind.SHADOW.value, literal_execute=True)
    wanted = select(c.judge).where(shadow, c.judge.is_not(None)).distinct()
    if since is not None:
        wanted = wanted.join(requests, requests.c.id == c.request_id)
        wanted = wanted.where(requests.c.created_at >= since)
    with engine.connect() as connection:
        return sorted(connection.scalars(wanted))


def _batch(connection: Connection, last: tuple[float, str], batch: int) -> Sequence[RowMapping]:
    at, identity = last
    c = requests.c
    later = or_(c.created_at > at, and_(c.created_at == at, c.id > identity))
    wanted = select(requests).where(c.created_at >= at, later)
    wanted = wanted.order_by(c.created_at, c.id).limit(batch)
    return connection.execute(wanted).mappings().all()


def _calls(connection: Connection, ids: Sequence[str]) -> Mapping[str, list[RowMapping]]:
    found: dict[str, list[RowMapping]] = defaultdict(list)
    wanted = select(attempts).where(attempts.c.request_id.in_(ids))
    for row in connection.execute(wanted.order_by(attempts.c.index)).mappings():
        found[row["request_id"]].append(row)
    return found


def _compared(connection: Connection) -> Mapping[Key, float]:
    """What comparisons say, each of both its answers; few requests are in any, so all at once."""
    f, other = feedback.c, requests.alias("other")
    wanted = (
        select(f.request_id, f.compared_to, f.tenant, f.preferred)
        .join(requests, and_(requests.c.id == f.request_id, requests.c.tenant == f.tenant))
        .join(other, and_(other.c.id == f.compared_to, other.c.tenant == f.tenant))
        .where(
            f.preferred.is_not(None),
            requests.c.prompt_hash == other.c.prompt_hash,
            requests.c.prompt_hash != "",
        )
    )
    rows = connection.execute(wanted.order_by(f.request_id, f.source)).all()
    asked = sorted({name for row in rows for name in row[:2]})
    words: dict[Key, float] = {}
    for first in range(0, len(asked), BATCH):
        words |= _labels(connection, asked[first : first + BATCH])
    found: dict[Key, list[float]] = defaultdict(list)
    for this, that, tenant, preferred in rows:
        for mine, theirs, better in ((this, that, "this"), (that, this, "other")):
            is_better = None if preferred == "same" else preferred == better
            found[mine, tenant].append(beside(words.get((theirs, tenant)), is_better))
    return {key: mean(values) for key, values in found.items()}


def _labels(connection: Connection, ids: Sequence[str]) -> Mapping[Key, float]:
    said: dict[tuple[str, str], list[float]] = defaultdict(list)
    wanted = select(feedback).where(feedback.c.request_id.in_(ids))
    for row in connection.execute(wanted).mappings():
        score = row["score"]
        if score is None:
            score = WORDS.get((row["label"] or "").strip().lower())
        if score is not None:
            said[row["request_id"], row["tenant"]].append(score)
    return {key: mean(scores) for key, scores in said.items()}
