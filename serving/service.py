"""What a running service holds, in one frozen value that is handed to the app."""

from dataclasses import dataclass

from cascade.engine import CascadeEngine
from serving.models.supervisor import Fleet
from serving.store.sink import SqlAuditSink


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The engine, where its audit rows go, and the model servers that Cascade started."""

    engine: CascadeEngine
    sink: SqlAuditSink
    fleet: Fleet
    max_body_bytes: int
