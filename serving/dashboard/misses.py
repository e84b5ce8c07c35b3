"""Which part of a request's prompt was not read from a cache, held against its session's others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, select

from cascade.audit import AuditRecord
from serving.doctor.calls import Call, Prompt, prompt_of
from serving.doctor.compare import Comparison, change, compare
from serving.doctor.difference import NAMES
from serving.doctor.losses import Loss, TierFacts, losses
from serving.doctor.memory import Held, Memory
from serving.store.cache_queries import calls
from serving.store.tables import requests

LATEST = 30
"""How many requests of the session are looked at."""

NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One segment of the prompt.

    Attributes:
        change: what became of it since the session's last request: "same", "added", "changed", ...;
            empty where there is none to hold it against.
        cold: it is the first that changed or comes after that, so no cache could hold it.
    """

    name: str
    tokens: int
    change: str
    cold: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """What one call of a model lost, and why."""

    call: Call
    loss: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A prompt, and what of it was not read that could have been.

    Attributes:
        before: the session's last request before it; None for its first.
    """

    parts: Sequence[Part]
    misses: Sequence[Miss]
    before: str | None


def read(engine: Engine, record: AuditRecord, facts: Mapping[str, TierFacts]) -> Reading:
    """Explain a request's cache use.

    Args:
        engine: of the audit log.
        record: the request.
        facts: what the configuration says, by tier.
    """
    memory = Memory()
    before: Call | None = None
    seen: list[tuple[Call, list[Held], bool]] = []
    for call in _session(engine, record):
        held, ours = memory.earlier(call)
        if call.request_id == record.id:
            seen.append((call, held, ours))
            continue
        if seen:
            break
        before = call
        memory.keep(call, held)
    found = [
        Miss(call=call, loss=loss)
        for call, held, ours in seen
        if call.prompt_tokens is not None and call.read_tokens is not None
        for loss in losses(call, held, facts.get(call.tier, TierFacts()), ours=ours)
    ]
    return Reading(
        parts=_parts(before.prompt if before else None, prompt_of(record.segments)),
        misses=found,
        before=before.request_id if before else None,
    )


def _session(engine: Engine, record: AuditRecord) -> Iterable[Call]:
    """The calls of the request's session, from some requests before it on."""
    if not record.session:
        return calls(engine, since=record.created_at, tenant=record.tenant, session="")
    c = requests.c
    since = (
        select(c.created_at)
        .where(c.session == record.session, c.tenant == record.tenant)
        .where(c.created_at <= record.created_at)
        .order_by(c.created_at.desc())
        .limit(LATEST)
    )
    with engine.connect() as connection:
        oldest = min(connection.scalars(since), default=record.created_at)
    return calls(engine, since=oldest, tenant=record.tenant, session=record.session)


def _parts(before: Prompt | None, after: Prompt | None) -> list[Part]:
    if after is None:
        return []
    found = compare(before, after) if before else None
    parts, cold = [], False
    for name in NAMES:
        became = _became(name, before, after, found) if before and found else ""
        cold = cold or became not in {"same", ""}
        if (segment := after.segments.get(name)) is not None:
            parts.append(Part(name=name, tokens=segment.tokens, change=became, cold=cold))
    return parts


def _became(name: str, before: Prompt, after: Prompt, found: Comparison) -> str:
    """What became of a segment: a history that goes on is the same, what is asked last is new."""
    if name == "suffix":
        return NEW
    if name == "history":
        of_history = found.cause is not None and found.cause.segment in {"", name}
        if found.goes_on or (found.turns and not of_history):
            return "same"
        return found.cause.kind if found.cause and of_history else "changed"
    cause = change(before.segments.get(name), after.segments.get(name), name)
    return cause.kind if cause else "same"
