"""Whether the service can answer and audit, in one report for probes and for people."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cascade.tiers import ModelTier
from serving.store.sink import AuditState

READY = "ready"
COOLING = "cooling down"
DRAINED = "drained"


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


def states(tiers: Mapping[str, ModelTier], servers: Iterable[ServerState]) -> dict[str, str]:
    """How each tier is: READY, or what keeps it from being asked."""
    found = {name: COOLING if tier.cooling() else READY for name, tier in tiers.items()}
    # What a server that is not up is doing says more than that its tier cools down.
    return found | {server.tier: server.state for server in servers if server.state != READY}


def readiness(
    tiers: Mapping[str, ModelTier],
    servers: Iterable[ServerState],
    audit: AuditState,
    drained: Collection[str] = (),
) -> Readiness:
    """Ready while some tier can answer and the audit log has room.

    A tier that cannot answer or an audit log that spills makes the service degraded, not unready:
    requests are still answered and no row is lost.

    Args:
        tiers: all that can be asked, by name. Nobody is asked here: a probe costs no I/O.
        servers: those of the tiers that Cascade launched.
        audit: how the log is doing.
        drained: tiers that nobody is sent to, however well they are.
    """
    found = states(tiers, servers) | dict.fromkeys(drained, DRAINED)
    up = [state == READY for state in found.values() if state != DRAINED]
    ready = audit.room and any(up)
    whole = ready and all(up) and audit.status == "ok"
    report = {
        "status": "ready" if whole else "degraded" if ready else "unready",
        "tiers": found,
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
