"""How a request that only fills a cache is recorded: as spending, and as nobody's answer.

What it cost is in the log and in every sum of dollars. It must not be taken for a client's request:
it was neither escalated nor judged, saved nothing, and no other tier would have been sent it.
"""

from dataclasses import replace
from typing import Final

from cascade.protocols import AuditSink
from cascade.result import CascadeResult
from cascade.types import Kind

POLICY: Final = "prewarm"
"""Under which its row is."""

_REASON: Final = "sent ahead, to fill the cache"


def as_prewarm(result: CascadeResult) -> CascadeResult:
    """What became of it, without an answer."""
    calls = [replace(each, kind=Kind.PREWARM, reason=_REASON) for each in result.attempts]
    return replace(
        result, policy=POLICY, attempts=calls, completion=None, baseline=None, reason=_REASON
    )


class PrewarmSink(AuditSink):
    """Another sink, which is told of requests that only fill a cache as what they are.

    Args:
        inner: takes every result.
    """

    def __init__(self, inner: AuditSink) -> None:
        self._inner = inner

    def write(self, result: CascadeResult) -> None:
        """Take a result."""
        self._inner.write(as_prewarm(result) if result.request.prewarm else result)
