"""Two real vLLM servers on this machine, from a script that installs and starts them.

What the script installs is kept, so that only the first run takes minutes. The servers end with
the process that started them, however that ends: they hold the other end of a pipe of its.
"""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from serving.models.home import home
from tests.end_to_end.processes import wait_for

SCRIPT_VARIABLE = "CASCADE_VLLM_CPU"
FOLDER_VARIABLE = "CASCADE_VLLM_HOME"
RUNNING_VARIABLE = "CASCADE_VLLM_RUNNING"

SMALL_PORT, BIG_PORT = 18011, 18012
START_SECONDS = 1500.0  # a download on a slow line included
STOP_SECONDS = 30.0

_TIED_TO_STDIN = 'exec 3<&0; (cat <&3 >/dev/null; kill -TERM 0) & exec "$1" "$2" </dev/null 3<&-'


def script() -> Path:
    """Where the script is, or should be."""
    beside = Path(__file__).parents[3] / "shared" / "vllm-cpu"
    return Path(os.environ.get(SCRIPT_VARIABLE) or beside).expanduser() / "up.sh"


def folder() -> Path:
    """Where its installation is kept."""
    return Path(os.environ.get(FOLDER_VARIABLE) or home() / "vllm-cpu").expanduser()


@contextmanager
def running() -> Iterator[None]:
    """Both servers, healthy; those already running where CASCADE_VLLM_RUNNING is set."""
    if os.environ.get(RUNNING_VARIABLE):
        wait_for(healthy, 10.0)
        yield
        return
    for port in (SMALL_PORT, BIG_PORT):
        _refuse_taken(port)
    with _started(folder(), script()):
        yield


def healthy() -> bool:
    """Whether both answer."""
    return all(_is_healthy(port) for port in (SMALL_PORT, BIG_PORT))


def gauge(port: int, name: str) -> float:
    """A number that a server publishes about itself, summed over its labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    values = [line.rpartition(" ")[2] for line in lines if line.startswith(f"vllm:{name}{{")]
    assert values, f"no vllm:{name} on port {port}"
    return sum(map(float, values))


@contextmanager
def _started(where: Path, up: Path) -> Iterator[None]:
    whole = where / f"whole-{_fingerprint(up.parent)}"
    if not whole.exists():  # what an interrupted installation left cannot be told from a whole one
        shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True, exist_ok=True)
    with (where / "up.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", _TIED_TO_STDIN, "up", str(up), str(where)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        wait_for(lambda: _is_up(process, where), START_SECONDS, lambda: _said(where))
        whole.touch()
        yield
    finally:
        _stop(process)


def _is_up(process: subprocess.Popen[bytes], where: Path) -> bool:
    assert process.poll() is None, f"{script()} ended: {_said(where)}"
    return healthy()


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_SECONDS)


def _said(where: Path) -> str:
    logs = [where / name for name in ("up.log", "small.log", "big.log")]
    tails = [f"{log}: {log.read_text(errors='replace')[-1500:]}" for log in logs if log.exists()]
    return "\n".join(tails)


def _fingerprint(source: Path) -> str:
    texts = [path.read_bytes() for path in sorted(source.iterdir()) if path.suffix != ".md"]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:12]


def _refuse_taken(port: int) -> None:
    with closing(socket.socket()) as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            pytest.fail(
                f"something already listens on port {port}; if it is the vLLM of these tests, set "
                f"{RUNNING_VARIABLE}=1 to use it, else stop it",
                pytrace=False,
            )


def _is_healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
