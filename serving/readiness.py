"""Whether the service can answer and audit, in one report for probes and for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from serving.models.supervisor import ServerState
from serving.store.sink import AuditState


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """ready decides the probe's status; the report says why."""

    ready: bool
    report: dict[str, Any]


def readiness(servers: Sequence[ServerState], audit: AuditState) -> Readiness:
    """Ready while some model server is up (or none is ours) and the audit log has room.

    A server that is down or an audit log that spills makes the service degraded, not unready:
    requests are still answered and no row is lost.
    """
    raise NotImplementedError
