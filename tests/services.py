"""A whole service on loopback, over scripted tiers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from cascade.backends.scripted import ScriptedBackend
from cascade.engine import CascadeEngine
from cascade.experiments import Arm, Experiment
from cascade.policies.fixed import FixedPolicy
from cascade.snapshot import Snapshot
from serving.app import create_app
from serving.service import Service
from tests.engines import SMALL_THEN_LARGE, FixedJudge, MemorySink, tier


def snapshot(*, small=("four",), large=("4",), judge=None):
    policies = {
        "cascade": SMALL_THEN_LARGE.policy,
        "always-small": FixedPolicy(name="always-small", tier="small"),
    }
    arms = {name: Arm(name=None, policy=policy) for name, policy in policies.items()}
    trial = [
        Arm(name=name, policy=policy, experiment="auto", weight=1)
        for name, policy in policies.items()
    ]
    return Snapshot(
        version="v1",
        tiers={"small": tier("small", *small), "large": tier("large", *large)},
        judges={"told": judge or FixedJudge(0.9, logprobs=True, top_logprobs=2)},
        arms=arms,
        experiments={"auto": Experiment(name="auto", arms=trial)},
    )


class NoServers:
    """No model server is ours."""

    def __init__(self, states: Sequence[object] = ()) -> None:
        self.listed = list(states)

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    def states(self):
        return self.listed


class MemoryLog(MemorySink):
    """An audit log in memory."""

    def __init__(self, state=None) -> None:
        super().__init__()
        self.told = state

    def start(self) -> None:
        pass

    def close(self, timeout: float) -> None:
        pass

    def state(self):
        return self.told

    def answered_lately(self, tenant, key):
        answers = [each for each in self.results if not each.error and not each.cancelled]
        asked = [each.request for each in answers]
        return next((a.id for a in asked if (a.tenant, a.idempotency_key) == (tenant, key)), None)

    async def answered(self, tenant, key):
        return self.answered_lately(tenant, key)


@dataclass
class Running:
    url: str
    log: MemoryLog
    servers: NoServers
    snapshot: Snapshot

    def backend(self, tier: str) -> ScriptedBackend:
        backend = self.snapshot.tiers[tier].backend
        assert isinstance(backend, ScriptedBackend)
        return backend


@asynccontextmanager
async def running(
    snapshot: Snapshot, *, max_body_bytes: int = 1_000_000, log=None, traces=None, **parts: Any
) -> AsyncIterator[Running]:
    log, servers = log or MemoryLog(), NoServers()
    service = Service(
        engine=CascadeEngine(snapshot, log, traces=traces),
        sink=log,
        servers=servers,
        max_body_bytes=max_body_bytes,
        **parts,
    )
    async with listening(create_app(service)) as url:
        yield Running(url, log, servers, snapshot)


@asynccontextmanager
async def listening(app) -> AsyncIterator[str]:
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="on")
    server = uvicorn.Server(config)
    server.capture_signals = _no_signals
    task = asyncio.create_task(server.serve())
    while not server.started:
        if task.done():
            task.result()
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


def _no_signals():
    from contextlib import nullcontext

    return nullcontext()
