from dataclasses import dataclass

import pytest

from cascade.backends.scripted import ScriptedBackend
from cascade.engine import CascadeEngine
from cascade.errors import BackendCoolingDownError, BackendServerError
from cascade.snapshot import Snapshot
from cascade.tiers import ModelTier
from serving import tier_config as cfg
from serving.app import create_app
from serving.readiness import readiness
from serving.service import Service
from serving.store.sink import AuditState
from serving.store.spool import Backlog
from serving.tier_wiring import build_tier
from tests.apis import ask
from tests.engines import request
from tests.guards import COOLDOWN, Clock, cooling
from tests.services import MemoryLog, NoServers

FAULT = {"error": "BackendServerError"}


@dataclass
class Server:
    tier: str
    state: str


def audit(status="ok"):
    return AuditState(
        status=status,
        reason="" if status == "ok" else "the database is down",
        backlog=Backlog(files=0, bytes=0, oldest_ns=None),
        queued=0,
        dropped=0,
        refused=0,
    )


def tiers(*states):
    """Tiers of these states; one that is not cooling down is ready as far as it knows."""

    def made(name, state):
        cools = state == "cooling down"
        return ModelTier(name=name, backend=ScriptedBackend(), cooling=lambda: cools)

    return {f"t{i}": made(f"t{i}", state) for i, state in enumerate(states)}


@pytest.mark.parametrize(
    ("states", "log", "ready", "status"),
    [
        ([], "ok", False, "unready"),
        (["ready", "ready"], "ok", True, "ready"),
        (["ready", "restarting"], "ok", True, "degraded"),
        (["ready", "cooling down"], "ok", True, "degraded"),
        (["restarting", "restarting"], "ok", False, "unready"),
        (["restarting", "cooling down"], "ok", False, "unready"),
        (["cooling down", "cooling down"], "ok", False, "unready"),
        (["ready", "ready"], "degraded", True, "degraded"),
        (["ready", "ready"], "full", False, "unready"),
    ],
)
def test_it_is_ready_while_a_tier_can_answer_and_the_log_has_room(states, log, ready, status):
    launched = [Server(f"t{i}", state) for i, state in enumerate(states) if state != "cooling down"]
    found = readiness(tiers(*states), launched, audit(log))
    assert (found.ready, found.report["status"]) == (ready, status)
    assert found.report["tiers"] == {f"t{i}": state for i, state in enumerate(states)}
    assert found.report["audit"]["status"] == log


def test_a_tier_that_nobody_launched_is_enough_while_a_launched_one_is_down():
    found = readiness(tiers("restarting", "ready"), [Server("t0", "restarting")], audit())
    assert (found.ready, found.report["status"]) == (True, "degraded")
    assert found.report["tiers"] == {"t0": "restarting", "t1": "ready"}


@pytest.mark.parametrize(
    ("other", "ready", "status"), [("ready", True, "ready"), ("cooling down", False, "unready")]
)
def test_a_tier_that_is_drained_answers_nobody_however_well_it_is(other, ready, status):
    found = readiness(tiers(other, "ready"), [], audit(), drained={"t1"})
    assert (found.ready, found.report["status"]) == (ready, status)
    assert found.report["tiers"] == {"t0": other, "t1": "drained"}


def test_a_launched_tier_whose_calls_fail_at_once_is_not_ready_because_its_server_is_up():
    found = readiness(tiers("cooling down"), [Server("t0", "ready")], audit())
    assert not found.ready
    assert found.report["tiers"] == {"t0": "cooling down"}


def wired(name):
    """A tier whose cool-down is wrapped on both sides, and which fails every call."""
    entry = cfg.Tier.model_validate(
        {
            "backend": "scripted",
            "answers": [FAULT],
            "limits": {"concurrent": 1, "waiting": 1, "wait_seconds": 1},
            "retry": {"times": 1, "base_seconds": 0.001},
            "cooldown": {"min_calls": 2, "seconds": 600, "max_seconds": 600},
        }
    )
    return build_tier(name, entry, None)


async def fail(tier):
    with pytest.raises(BackendServerError):
        await tier.backend.complete(request())


async def test_the_probe_names_every_tier_and_is_a_503_once_all_of_them_cool_down():
    small, large = wired("small"), wired("large")
    snapshot = Snapshot(version="v", tiers={"small": small, "large": large}, judges={}, arms={})
    log = MemoryLog(audit())
    engine = CascadeEngine(snapshot, log)
    app = create_app(Service(engine=engine, sink=log, servers=NoServers(), max_body_bytes=9))

    async def probed():
        answer = await ask(app, "/readyz", b"", method="GET")
        return answer.status, answer.json["status"], answer.json["tiers"]

    assert await probed() == (200, "ready", {"small": "ready", "large": "ready"})
    await fail(small)
    assert await probed() == (200, "degraded", {"small": "cooling down", "large": "ready"})
    await fail(large)
    both = {"small": "cooling down", "large": "cooling down"}
    assert await probed() == (503, "unready", both)
    small.recovered()
    assert await probed() == (200, "degraded", both | {"small": "ready"})


async def test_a_tier_that_never_cools_down_is_never_said_to():
    entry = cfg.Tier.model_validate({"backend": "scripted", "answers": [FAULT], "cooldown": None})
    tier = build_tier("t", entry, None)
    for _ in range(10):
        await fail(tier)
    assert not tier.cooling()


async def test_a_tier_is_ready_again_as_soon_as_a_call_may_try_it():
    clock = Clock()
    backend = cooling(ScriptedBackend(answers=[FAULT] * COOLDOWN.min_calls + ["ok"]), clock)
    for _ in range(COOLDOWN.min_calls):
        with pytest.raises(BackendServerError):
            await backend.complete(request())
    assert backend.cooling()
    clock.pass_(COOLDOWN.seconds)
    # Asked twice, since a question that took the probe's place would leave none for a call.
    assert not backend.cooling()
    assert not backend.cooling()
    probe = backend.stream(request())
    await anext(probe)
    assert backend.cooling()
    with pytest.raises(BackendCoolingDownError):
        await backend.complete(request())
    async for _ in probe:
        pass
    assert not backend.cooling()
