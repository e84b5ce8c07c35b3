"""Which idempotency keys were answered lately: what the database may not hold yet.

An answer's row takes a moment to the database, and as long as an outage lasts. Until then this is
what knows that the answer was given, so that a repetition is not paid for again.
"""

from collections.abc import Iterable

import orjson

from cascade.audit import key_hash
from cascade.result import CascadeResult

MOST_KEYS = 100_000
"""Some tens of megabytes. Older ones are in the database, or were answered an outage ago."""

DONE = ("ok", "degraded")
"""Statuses of a request that was answered; after any other, a repetition runs anew."""

_MARK = b'"idempotency_hash":"'


class Answered:
    """Requests that were answered, by tenant and hash of their key."""

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._ids = dict[tuple[str, str], str]()

    def note(self, result: CascadeResult) -> None:
        """Remember a result, if it has a key and an answer."""
        request = result.request
        hashed = key_hash(request.idempotency_key)
        if hashed is not None and result.error is None and not result.cancelled:
            self._add(request.tenant, hashed, request.id)

    def read(self, lines: Iterable[bytes]) -> None:
        """Remember what earlier processes wrote into the spool."""
        for line in lines:
            if _MARK not in line:
                continue
            try:
                row = orjson.loads(line)
                if row["status"] in DONE:
                    self._add(row["tenant"], row["idempotency_hash"], row["id"])
            except (ValueError, KeyError, TypeError):
                continue  # the inserter sets such a line aside and says so

    def find(self, tenant: str, hashed: str) -> str | None:
        """The id of the request that answered this key, if it is remembered."""
        return self._ids.get((tenant, hashed))

    def _add(self, tenant: str, hashed: str, request_id: str) -> None:
        if len(self._ids) >= self._most_keys:
            del self._ids[next(iter(self._ids))]
        self._ids[tenant, hashed] = request_id
