"""Rows of an experiment's requests, written straight into the tables."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Engine, insert

from cascade.audit import PICO
from serving.store.tables import attempts, feedback, requests

BEGUN = 1_790_000_000.0

_REQUEST = {
    "created_at": BEGUN,
    "status": "ok",
    "requested_model": "auto",
    "experiment": "auto",
    "arm": "a",
    "policy": "default",
    "config_version": "c0ffee",
    "tenant": "default",
    "session": "s",
    "tags": {},
    "prompt_hash": "p",
    "prompt_messages": 1,
    "reason": "",
    "answers": 1,
    "belief_flags": [],
    "tier": "small",
    "duration_ms": 100.0,
    "overhead_ms": 1.0,
    "released_characters": 10,
}
_ATTEMPT = {
    "index": 0,
    "kind": "answer",
    "tier": "small",
    "reason": "",
    "partial": False,
    "usage_estimated": False,
    "started_ms": 1.0,
    "duration_ms": 90.0,
}
_WORD = {"tenant": "default", "source": "", "given_at": BEGUN}


def asked(request_id: str, arm: str = "a", **fields: Any) -> dict[str, Any]:
    """A request; `dollars` and `baseline` in dollars, its unit its own id if none is given."""
    row = {**_REQUEST, "id": request_id, "arm": arm, "unit": request_id, **fields}
    for name, column in (("dollars", "cost_pico"), ("baseline", "baseline_pico")):
        amount = row.pop(name, None)
        row[column] = None if amount is None else round(amount * float(PICO))
    return row


def called(request_id: str, **fields: Any) -> dict[str, Any]:
    return {**_ATTEMPT, "request_id": request_id, **fields}


def sampled(request_id: str, score: float | None, **fields: Any) -> dict[str, Any]:
    """A verdict of a judge that decides nothing, on the answer that was served."""
    drawn = {"kind": "shadow", "index": 9, "judge": "expert", "propensity": 0.5}
    return called(request_id, **{**drawn, "score": score, **fields})


def said(request_id: str, score: float | None = None, **fields: Any) -> dict[str, Any]:
    return {**_WORD, "request_id": request_id, "score": score, **fields}


def write(
    engine: Engine,
    asking: Iterable[Mapping[str, Any]] = (),
    calls: Iterable[Mapping[str, Any]] = (),
    words: Iterable[Mapping[str, Any]] = (),
) -> None:
    with engine.begin() as connection:
        for table, rows in ((requests, asking), (attempts, calls), (feedback, words)):
            columns = [column.name for column in table.columns]
            given = [{name: row.get(name) for name in columns} for row in rows]
            if given:
                connection.execute(insert(table), given)
