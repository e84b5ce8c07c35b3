"""Logs of made-up conversations: what is said in them is known by hashes only, as in real ones.

In a text `<date ...>` is a date and `<id ...>` an identifier. A tool has 100 tokens, a system
prompt 1,000, a document 300, a message 200.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from sqlalchemy import Engine

from cascade.audit import record
from cascade.prefix import Fingerprint, Segment, SegmentName
from cascade.result import CascadeResult
from cascade.types import Cost
from serving.doctor.calls import Call, Prompt, prompt_of
from serving.store.cache_queries import as_call, calls
from serving.store.rows import decode, encode, insert
from tests.builders import attempt, completion, request, result, usage

START = 1_790_000_000.0
SYSTEM = "You help."
TOOLS = ("read", "write", "search", "run", "fetch")
READ, WRITE, FRESH, OUT = (Decimal(each) / 10**6 for each in ("0.3", "3.75", "3", "15"))


def segment(name: SegmentName, parts: Sequence[str], tokens: int) -> Segment:
    text = "\n".join(parts)
    raw = _hash(text)
    ways = {
        "dates": _undated(text),
        "ids": _unnamed(text),
        "order": "\n".join(sorted(parts)),
        "all": "\n".join(sorted(map(_unnamed, map(_undated, parts)))),
    }
    masked = {way: _hash(changed) for way, changed in ways.items() if changed != text}
    return Segment(name=name, tokens=tokens, raw=raw, masked=masked, parts=[*map(_hash, parts)])


def fingerprint(
    turns: Iterable[str] = ("hello",),
    *,
    tools: Sequence[str] = TOOLS,
    system: str = SYSTEM,
    pack: Sequence[str] = (),
) -> Fingerprint:
    """A prompt; messages that begin with "a:" are answers, and the last one ends the history."""
    said = list(turns)
    answers = [number for number, turn in enumerate(said, 1) if turn.startswith("a:")]
    history = max(answers, default=0)
    all_ = [
        segment("tools", tools, 100 * len(tools)),
        segment("system", [system] if system else [], 1000),
        segment("pack", pack, 300 * len(pack)),
        segment("history", said[:history], 200 * history),
        segment("suffix", said[history:], 200 * (len(said) - history)),
    ]
    return Fingerprint(segments=[each for each in all_ if each.parts])


def prompt(*turns: str, **parts: Any) -> Prompt:
    """The same as the doctor has it."""
    found = record(result(fingerprint=fingerprint(turns, **parts))).segments
    made = prompt_of(found)
    assert made is not None
    return made


def asked(
    request_id: str,
    seconds: float,
    read: int | None,
    *turns: str,
    tier: str = "large",
    session: str = "s",
    tenant: str = "acme",
    output: int = 100,
    written: str | None = "5m",
    premium: bool = True,
    replica: str | None = None,
    took: float = 2.0,
    **parts: Any,
) -> CascadeResult:
    """A request that began so many seconds after the first; what was not read was written."""
    print_ = fingerprint(turns, **parts)
    tokens = sum(each.tokens for each in print_.segments)
    cold = tokens - (read or 0)
    used = usage(
        input=0 if written else cold,
        cache_read=read,
        cache_write={written: cold} if written else None,
        output=output,
    )
    cost = Cost(
        input=FRESH * (0 if written else cold),
        cache_read=READ * (read or 0),
        cache_write=WRITE * (cold if written else 0),
        output=OUT * output,
    )
    call = attempt(
        tier=tier,
        completion=completion(tier=tier, usage=used, replica=replica),
        cost=cost,
        cold_premium=_premium(cold, written) if premium and read is not None else None,
        started=0.0,
        seconds=took,
        first_token_seconds=took / 2,
    )
    return result(
        request=request(id=request_id, session=session, tenant=tenant),
        attempts=(call,),
        fingerprint=print_,
        started_at=START + seconds,
    )


def stored(engine: Engine, log: Iterable[CascadeResult]) -> None:
    """Write a log as the service does."""
    with engine.begin() as connection:
        insert(connection, [decode(encode(record(each))) for each in log])


def logged(engine: Engine, *log: CascadeResult) -> list[Call]:
    """A log that was written and read back."""
    stored(engine, log)
    return list(calls(engine))


def unlogged(*log: CascadeResult) -> list[Call]:
    """The same without a database."""
    found = []
    for each in log:
        entry = decode(encode(record(each)))
        (row,) = entry.requests
        found += [as_call(row, call, prompt_of(row["segments"])) for call in entry.attempts]
    return found


def _premium(cold: int, written: str | None) -> Decimal:
    return cold * ((WRITE if written else FRESH) - READ)


def _undated(text: str) -> str:
    return re.sub(r"<date [^>]*>", "<date>", text)


def _unnamed(text: str) -> str:
    return re.sub(r"<id [^>]*>", "<id>", text)


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=4).hexdigest()
