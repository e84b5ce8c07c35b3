from dataclasses import dataclass

import pytest

from serving.readiness import readiness
from serving.store.sink import AuditState
from serving.store.spool import Backlog


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


@pytest.mark.parametrize(
    ("servers", "log", "ready", "status"),
    [
        ([], "ok", True, "ready"),
        (["ready", "ready"], "ok", True, "ready"),
        (["ready", "restarting"], "ok", True, "degraded"),
        (["restarting", "restarting"], "ok", False, "unready"),
        (["ready", "ready"], "degraded", True, "degraded"),
        (["ready", "ready"], "full", False, "unready"),
    ],
)
def test_it_is_ready_while_a_model_is_up_and_the_log_has_room(servers, log, ready, status):
    states = [Server(f"t{i}", state) for i, state in enumerate(servers)]
    found = readiness(states, audit(log))
    assert (found.ready, found.report["status"]) == (ready, status)
    assert found.report["tiers"] == {server.tier: server.state for server in states}
    assert found.report["audit"]["status"] == log
