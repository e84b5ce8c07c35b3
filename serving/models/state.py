"""What is known of a model server, and how other processes get to know it.

A supervisor writes one file a server into the run folder and renews it at each change. Whoever
reads them must reckon with a supervisor that was killed and left its files behind.
"""

import contextlib
import json
import os
import re
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from serving.models.home import logs_folder, run_folder


class Phase(StrEnum):
    """Where a model server is in its life."""

    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPED = "stopped"
    STALE = "stale"
    """Its supervisor is gone without having said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """One model server at one moment.

    Attributes:
        url: base address, without a path.
        log: its log file.
        since: Unix time at which this state began.
        supervisor: pid of the process that watches it.
        pid: of the server's process; None while there is none.
        restarts: how often it had to be started again.
        reason: why it is restarting or failed.
    """

    tier: str
    model: str
    url: str
    port: int
    log: Path
    since: float
    supervisor: int
    state: Phase = Phase.STOPPED
    pid: int | None = None
    restarts: int = 0
    reason: str = ""


def log_file(home: Path, tier: str) -> Path:
    """Where the tier's server logs."""
    return logs_folder(home) / f"{_safe(tier)}.log"


def publish(state: ServerState, home: Path) -> None:
    """Write the state for other processes; a stopped or failed server's file is taken away."""
    file = run_folder(home) / f"{_safe(state.tier)}.{state.supervisor}.json"
    if state.state in {Phase.STOPPED, Phase.FAILED}:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(state) | {"log": str(state.log)}))
    draft.replace(file)


def published(home: Path) -> list[ServerState]:
    """Every server written down, ordered by tier; those without a living supervisor are stale."""
    found = []
    for file in sorted(run_folder(home).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            fields = json.loads(file.read_bytes())
            fields |= {"state": Phase(fields["state"]), "log": Path(fields["log"])}
            state = ServerState(**fields)
            alive = is_running(state.supervisor)
            found.append(state if alive else replace(state, state=Phase.STALE))
    return found


def sweep(home: Path) -> None:
    """Remove the files that dead supervisors have left."""
    for state in published(home):
        if state.state is Phase.STALE:
            publish(replace(state, state=Phase.STOPPED), home)


def is_running(pid: int) -> bool:
    """Whether a process has that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _safe(tier: str) -> str:
    return re.sub(r"[^\w.-]", "_", tier)
