"""Time that the service adds to a call, side by side with the LiteLLM proxy in one run.

    python -m benchmarks.overhead [--seconds S] [--without-litellm] [--cpu]

One upstream that answers at once; in front of it nothing, Cascade (a ladder whose first step is
judged by `format`, audit log on SQLite), and the LiteLLM proxy, which is installed into its own
environment on first use. Every service runs as one worker on one core; client and upstream share
another. Needs Linux (taskset) and two cores that do nothing else. With `--cpu` it tells the CPU
time of a request instead, for which the cores need not be idle.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.overhead import cpu
from serving.models.home import home

LITELLM = "litellm==1.110.2"
# The proxy's extra names packages of its maker that are not published; the server works without.
PROXY_NEEDS = """
from importlib.metadata import requires
print(*(r.split(";")[0] for r in requires("litellm")
        if "extra == 'proxy'" in r.replace('"', "'") and not r.startswith("litellm-")
        and "python_full_version >= '3.15'" not in r.replace('"', "'")), sep="\\n")
"""
CONNECTIONS = (1, 16, 64)
BUSY = 16
HOWS = ("whole", "streamed")
SERVICE_CORE, CLIENT_CORE = "0", "1"
ROOT = Path(__file__).parents[2]

CASCADE = """\
tiers:
  small:
    backend: openai_http
    url: {upstream}
    model: instant
    price: {{input: 0.02, cache_read: 0.002, output: 0.04}}
  large:
    backend: openai_http
    url: {upstream}
    model: instant
    price: {{input: 0.2, cache_read: 0.02, output: 0.4}}
judges:
  well_formed: {{type: format}}
policies:
  ladder:
    type: ladder
    steps: [{{tier: small, judge: well_formed, accept_at: 0.5}}, {{tier: large}}]
"""

PROXY = """\
model_list:
  - model_name: ladder
    litellm_params: {{model: openai/instant, api_base: "{upstream}", api_key: none}}
litellm_settings: {{telemetry: false}}
general_settings: {{master_key: sk-bench}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One service under one load."""

    service: str
    how: str
    connections: int
    per_second: float
    p50_ms: float
    p99_ms: float
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A service that answers."""

    url: str
    pid: int


Starter = Callable[[Path, str], AbstractContextManager[Running]]
"""Starts a service in a folder, in front of an upstream."""


def main() -> None:
    """Measure all, print the table and what it says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each cell")
    parser.add_argument("--without-litellm", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="CPU time of a request, by thread")
    given = parser.parse_args()
    services = {"Cascade": _cascade} | ({} if given.without_litellm else {"LiteLLM": _litellm})
    if given.cpu:
        Console().print(cpu.table(_spent(services, given.seconds)))
        return
    found: list[Measured] = []
    for name, start in services.items():
        with _started(start) as (upstream, service):
            alone = {} if found else {"alone": upstream}
            found += _measure_all({**alone, name: service.url}, given.seconds)
    Console().print(_table(found))
    for sentence in _sentences(found):
        Console().print(sentence)


def _spent(services: Mapping[str, Starter], seconds: float) -> list[cpu.Spent]:
    """Of each service, under loads that keep it busy."""
    found = []
    for name, start in services.items():
        with _started(start) as (_, service):
            for how in HOWS:
                load = partial(_asked, service.url, how, BUSY, seconds)
                threads = cpu.spent(service.pid, load)
                found.append(cpu.Spent(service=name, how=how, connections=BUSY, threads=threads))
    return found


@contextmanager
def _started(start: Starter) -> Iterator[tuple[str, Running]]:
    """An upstream's address, and a service in front of it."""
    with (
        _upstream() as upstream,
        tempfile.TemporaryDirectory() as folder,
        start(Path(folder), upstream) as service,
    ):
        yield upstream, service


def _asked(url: str, how: str, connections: int, seconds: float) -> int:
    """How often a service was asked in that time."""
    return int(_loaded(url, how, connections, seconds)["sent"])


def _measure_all(urls: dict[str, str], seconds: float) -> list[Measured]:
    return [
        _measure(service, url, how, connections, seconds)
        for how in HOWS
        for connections in CONNECTIONS
        for service, url in urls.items()
    ]


def _measure(service: str, url: str, how: str, connections: int, seconds: float) -> Measured:
    Console(stderr=True).print(f"{service}, {how}, {connections} at once", highlight=False)
    told = _loaded(url, how, connections, seconds)
    return Measured(
        service=service,
        how=how,
        connections=connections,
        per_second=told["per_second"],
        p50_ms=told["p50_ms"],
        p99_ms=told["p99_ms"],
        errors=int(told["errors"]),
    )


def _loaded(url: str, how: str, connections: int, seconds: float) -> dict[str, float]:
    """What the client tells."""
    command = _python(CLIENT_CORE, "-m", "benchmarks.overhead.load")
    arguments = [url, "ladder", str(connections), str(seconds), how]
    done = subprocess.run([*command, *arguments], check=True, capture_output=True, cwd=ROOT)  # noqa: S603
    told: dict[str, float] = json.loads(done.stdout)
    return told


def _table(found: Sequence[Measured]) -> Table:
    title = "one worker on one core; milliseconds; added: over the upstream alone"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in (
        "answer",
        "at once",
        "service",
        "requests/s",
        "p50",
        "p99",
        "added",
        "errors",
    ):
        table.add_column(column, justify="left" if column in {"answer", "service"} else "right")
    for one in sorted(found, key=lambda one: (one.how != "whole", one.connections)):
        alone = _cell(found, "alone", one)
        table.add_row(
            one.how,
            str(one.connections),
            one.service,
            f"{one.per_second:,.0f}",
            f"{one.p50_ms:.2f}",
            f"{one.p99_ms:.2f}",
            f"{one.p50_ms - alone.p50_ms:.2f}",
            str(one.errors),
        )
    return table


def _sentences(found: Sequence[Measured]) -> Iterator[str]:
    """The ratios between the two services, cell by cell."""
    for proxy in (one for one in found if one.service == "LiteLLM"):
        ours, alone = _cell(found, "Cascade", proxy), _cell(found, "alone", proxy)
        added = (proxy.p50_ms - alone.p50_ms) / (ours.p50_ms - alone.p50_ms)
        yield (
            f"{proxy.how}, {proxy.connections} at once: the proxy adds {added:.1f} times as much "
            f"(median); Cascade answers {ours.per_second / proxy.per_second:.1f} times as many "
            "requests a second."
        )


def _cell(found: Sequence[Measured], service: str, like: Measured) -> Measured:
    return next(
        one
        for one in found
        if (one.service, one.how, one.connections) == (service, like.how, like.connections)
    )


@contextmanager
def _upstream() -> Iterator[str]:
    port = _free_port()
    command = [*_python(CLIENT_CORE, "-m", "benchmarks.overhead.upstream"), str(port)]
    with _running(command, f"http://127.0.0.1:{port}/", Path(os.devnull)):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def _cascade(folder: Path, upstream: str) -> Iterator[Running]:
    config = folder / "cascade.yaml"
    config.write_text(CASCADE.format(upstream=upstream))
    port = _free_port()
    named = "benchmarks.overhead.named"
    command = _python(SERVICE_CORE, "-m", named, "serve", "--log-level", "WARNING")
    command += ["--port", str(port), "--config", str(config)]
    ready = f"http://127.0.0.1:{port}/readyz"
    with _running(command, ready, folder / "cascade.log") as pid:
        yield Running(url=f"http://127.0.0.1:{port}/v1", pid=pid)


@contextmanager
def _litellm(folder: Path, upstream: str) -> Iterator[Running]:
    config = folder / "litellm.yaml"
    config.write_text(PROXY.format(upstream=upstream))
    port = _free_port()
    program = _environment() / "bin" / "litellm"
    command = ["taskset", "-c", SERVICE_CORE, str(program), "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    ready = f"http://127.0.0.1:{port}/health/liveliness"
    with _running(command, ready, folder / "litellm.log") as pid:
        yield Running(url=f"http://127.0.0.1:{port}/v1", pid=pid)


def _environment() -> Path:
    """The proxy's own environment, made on first use."""
    folder = home() / "benchmarks" / LITELLM
    if not (folder / "ready").exists():
        Console(stderr=True).print(f"installing {LITELLM} into {folder}", highlight=False)
        python = str(folder / "bin" / "python")
        install = [python, "-m", "pip", "install", "-q"]
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)  # noqa: S603
        subprocess.run([*install, LITELLM], check=True)  # noqa: S603
        needs = subprocess.run([python, "-c", PROXY_NEEDS], check=True, capture_output=True)  # noqa: S603
        subprocess.run([*install, LITELLM, *needs.stdout.decode().split("\n")[:-1]], check=True)  # noqa: S603
        (folder / "ready").touch()
    return folder


@contextmanager
def _running(command: Sequence[str], ready: str, log: Path) -> Iterator[int]:
    """A process that answers; yields its id."""
    environment = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        # The key is as weak as a benchmark's may be.
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603
            command, stdout=output, stderr=output, cwd=ROOT, env=environment
        )
    try:
        _wait_for(ready, process, log)
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-2000:] if log.is_file() else ""
                raise SystemExit(f"{url} does not answer. The end of its log:\n{said}") from None
            time.sleep(0.1)


def _python(core: str, *arguments: str) -> list[str]:
    return ["taskset", "-c", core, sys.executable, *arguments]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
