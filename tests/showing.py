"""A service with its page, over scripted tiers, on an audit log with some days of traffic."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cascade.engine import CascadeEngine
from serving.app import create_app
from serving.commands.options import wire
from serving.config import ConfigFile
from serving.dashboard.page import sources
from serving.overrides.watcher import Watcher
from serving.service import Service
from serving.store.database import engine_for
from serving.store.sink import SqlAuditSink
from tests.services import MemoryLog, NoServers, listening

CONFIG = Path(__file__).parent / "browser" / "cascade.yaml"


@dataclass
class Shown:
    """A running service with its page; `page` is the page's address."""

    url: str
    engine: CascadeEngine
    sink: SqlAuditSink
    watcher: Watcher

    @property
    def page(self) -> str:
        return f"{self.url}/dashboard"


@asynccontextmanager
async def shown(database_url: str, spool: Path, config: Path = CONFIG) -> AsyncIterator[Shown]:
    file, database = ConfigFile(config), engine_for(database_url)
    sink = SqlAuditSink(database, spool)
    engine = CascadeEngine(wire(file), sink)
    watcher = Watcher(engine, engine_for(database_url), seconds=0.1)
    service = Service(
        engine=engine,
        sink=sink,
        servers=NoServers(),
        max_body_bytes=1_000_000,
        background=[watcher],
        overrides=watcher,
        page=sources(file, watcher.database),
    )
    async with listening(create_app(service)) as url:
        yield Shown(url, engine, sink, watcher)
    database.dispose()


@dataclass(frozen=True)
class ModelServer:
    """A launched model server as the fleet tells of it."""

    tier: str
    state: str = "ready"
    model: str = "qwen2.5-coder-0.5b"
    restarts: int = 0
    reason: str = ""


def service_of(snapshot, servers) -> Service:
    """A service that nobody starts."""
    log = MemoryLog()
    return Service(
        engine=CascadeEngine(snapshot, log), sink=log, servers=servers, max_body_bytes=1_000
    )
