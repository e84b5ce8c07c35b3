"""Calls that were made for a request after it had been answered and recorded."""

from collections.abc import Sequence
from dataclasses import dataclass

from cascade.types import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """Attempts that join a request's own in the audit log.

    Attributes:
        request_id: of the request; its row may be on its way still.
        attempts: their indices go on from those of the request.
        at: when the last of them ended, seconds since the epoch.
    """

    request_id: str
    attempts: Sequence[Attempt]
    at: float
