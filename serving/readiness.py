"""Whether the service can answer and audit, in one report for probes and for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from serving.store.sink import AuditState


class ServerState(Protocol):
    """A model server, as far as readiness is concerned."""

    @property
    def tier(self) -> str:
        """Whose server it is."""
        ...

    @property
    def state(self) -> str:
        """ready, or what it is instead."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """`ready` decides the probe's status; the report says why."""

    ready: bool
    report: dict[str, Any]


def readiness(servers: Sequence[ServerState], audit: AuditState) -> Readiness:
    """Ready while a model server is up (or none is ours to watch) and the audit log has room.

    A server that is down or an audit log that spills makes the service degraded, not unready:
    requests are still answered and no row is lost.
    """
    up = [server for server in servers if server.state == "ready"]
    ready = audit.room and (bool(up) or not servers)
    whole = ready and len(up) == len(servers) and audit.status == "ok"
    report = {
        "status": "ready" if whole else "degraded" if ready else "unready",
        "tiers": {server.tier: server.state for server in servers},
        "audit": {
            "status": audit.status,
            "reason": audit.reason,
            "queued": audit.queued,
            "spilled_files": audit.backlog.files,
            "spilled_rows": audit.backlog.rows,
            "spilled_bytes": audit.backlog.bytes,
            "dropped": audit.dropped,
            "refused": audit.refused,
        },
    }
    return Readiness(ready=ready, report=report)
