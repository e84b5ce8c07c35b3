"""A service whose configuration can be overridden while it runs, over scripted tiers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from cascade.engine import CascadeEngine
from cascade.snapshot import Snapshot
from serving.app import create_app
from serving.overrides.watcher import Watcher
from serving.service import Service
from serving.store.database import engine_for
from tests.services import MemoryLog, NoServers, listening
from tests.services import snapshot as plain


@dataclass
class Overridden:
    url: str
    log: MemoryLog
    watcher: Watcher
    engine: CascadeEngine


@asynccontextmanager
async def overridden(
    database_url: str, snapshot: Snapshot | None = None, *, seconds: float = 0.1
) -> AsyncIterator[Overridden]:
    """A worker on a database; several on one follow each other."""
    log = MemoryLog()
    engine = CascadeEngine(snapshot or plain(), log)
    watcher = Watcher(engine, engine_for(database_url), seconds=seconds)
    service = Service(
        engine=engine,
        sink=log,
        servers=NoServers(),
        max_body_bytes=1_000_000,
        background=[watcher],
        overrides=watcher,
    )
    async with listening(create_app(service)) as url:
        yield Overridden(url, log, watcher, engine)
