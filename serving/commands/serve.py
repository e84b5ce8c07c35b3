"""cascade serve: from nothing to a service that answers, saying what it does on the way."""

import gc
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
import uvicorn
from fastapi import FastAPI
from rich.console import Console

from cascade.engine import CascadeEngine
from cascade.errors import AuditError, ConfigError
from cascade.forecast import Forecast
from cascade.protocols import AuditSink
from serving import logs
from serving.alerts.make import watches
from serving.app import create_app
from serving.audit_wiring import AuditParts, audit_parts, audit_sink, pruners
from serving.commands.options import config_option, load, wire
from serving.commands.progress import downloading
from serving.config import ConfigFile, Idempotency
from serving.dashboard.page import ROOT, sources
from serving.models.fleet import Fleet, prepare
from serving.models.home import home
from serving.models.state import Phase, ServerState
from serving.overrides.watcher import Watcher
from serving.prewarm.recorded import PrewarmSink
from serving.recordings import RecordingLimits, Recordings
from serving.service import Service
from serving.shadow.make import shadows_of
from serving.store import schema
from serving.store.database import engine_for, shown
from serving.tier_wiring import kv_bytes_per_token
from serving.wiring import launches

if TYPE_CHECKING:
    from serving.metrics.metrics import Metrics
    from serving.telemetry.tracing import Tracing

GRACEFUL_SECONDS = 30
KEEP_ALIVE_SECONDS = 75
GC_THRESHOLD = (20_000, 20, 20)
"""A request makes hundreds of objects that end with it; to look for cycles that often is wasted."""


@click.command()
@click.option("--host", help="Listen on this address instead of the configuration's.")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port; 0 takes any.")
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    default="INFO",
    show_default=True,
    help="How much to log.",
)
@config_option
def serve(path: Path | None, host: str | None, port: int | None, log_level: str) -> None:
    """Start the models and serve requests.

    Fetches what models are missing, migrates the database, starts the model servers, and says when
    it is ready. Logs are JSON lines on standard error.
    """
    logs.configure(log_level.upper())
    console = Console()
    began = time.monotonic()
    file = load(path)
    for warning in wire(file).warnings:  # what cannot work is said before anything is fetched
        console.print(f"[yellow]warning:[/] {warning}", highlight=False)
    parts = audit_parts(file)
    settings = file.config.server
    listener = _listen(host or settings.host, settings.port if port is None else port)
    with downloading(console) as progress:
        fleet = prepare(launches(file.config), home(), progress=progress, listener=_Teller(console))
    _migrate(file, console)
    app = create_app(_service(file, fleet, parts))
    try:
        with suppress(KeyboardInterrupt):  # by then everything has been stopped in order
            _Server(app, listener, console, began).run([listener])
    except SystemExit:
        if app.state.fault is not None:
            raise app.state.fault from None
        raise


def _listen(host: str, port: int) -> socket.socket:
    """Take the address before the long work; nothing is accepted on it yet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}. Is Cascade running already? "
            "Choose another port with --port"
        ) from None
    return listener


def _migrate(file: ConfigFile, console: Console) -> None:
    """Bring the database up to date; one that is down must not keep the service from starting."""
    url = file.audit_url
    try:
        state = schema.upgrade(url)
    except AuditError as error:
        console.print(f"[yellow]audit log:[/] {error.message}", highlight=False)
        console.print("audit log: rows are kept in a local folder until it is back")
        return
    console.print(f"audit log: {shown(url)}, revision {state.current}", highlight=False)


def _service(file: ConfigFile, fleet: Fleet, parts: AuditParts) -> Service:
    server = file.config.server
    launched = _launched(fleet)
    sink = audit_sink(file, parts)
    snapshot = wire(file, launched)
    forecast = Forecast(snapshot.tiers, key=parts.prompts.hash_key)
    metrics = _metrics(file, forecast) if server.metrics else None
    told: AuditSink = sink if metrics is None else metrics.before(sink)
    tracing = _tracing(file)
    told = told if tracing is None else tracing.before(told)
    shadows = None
    if file.config.shadow is not None:
        shadows = shadows_of(
            file.config.shadow,
            engine_for(file.audit_url),
            judges=file.config.judges,
            launched=launched,
            snapshot=lambda: engine.snapshot,
            forecast=forecast,
            inner=told,
            log=sink,
            told=metrics,
            tracer=tracing,
        )
    engine = CascadeEngine(
        snapshot,
        PrewarmSink(shadows or told),
        forecast=forecast,
        traces=tracing.places if tracing else None,
    )
    overrides = Watcher(engine, engine_for(file.audit_url))
    page = sources(file, engine_for(file.audit_url))
    fleet.listen(_Recovery(engine))
    return Service(
        engine=engine,
        sink=sink,
        servers=fleet,
        metrics=metrics,
        background=[
            overrides,
            *(each for each in (tracing, shadows, page) if each is not None),
            *pruners(file, parts),
            *watches(file),
        ],
        overrides=overrides,
        page=page,
        shadows=shadows,
        max_body_bytes=server.max_body_bytes,
        recordings=_recordings(server.idempotency),
    )


def _launched(fleet: Fleet) -> dict[str, dict[str, str]]:
    """By tier, how its own server is asked."""
    return {
        tier: {"url": f"{launch.url}/v1", "api_key": launch.api_key}
        for tier, launch in fleet.servers.items()
    }


def _recordings(entry: Idempotency) -> Recordings:
    return Recordings(RecordingLimits(seconds=entry.hours * 3600, bytes=entry.mib << 20))


def _metrics(file: ConfigFile, forecast: Forecast) -> "Metrics":
    from serving.metrics.metrics import Metrics  # noqa: PLC0415 - its library, if it is used

    return Metrics(forecast, kv_bytes_per_token=kv_bytes_per_token(file.config))


def _tracing(file: ConfigFile) -> "Tracing | None":
    if file.config.server.tracing is None:
        return None
    try:
        from serving.telemetry.make import tracing  # noqa: PLC0415 - its libraries, if it is used
    except ModuleNotFoundError as error:
        raise file.explain(
            ConfigError(
                f"it takes a package that is not installed ({error.name}): pip install "
                "'cascade-router[telemetry]'",
                param="server.tracing",
            )
        ) from None
    try:
        return tracing(file.config)
    except ConfigError as error:
        raise file.explain(error) from None


class _Teller:
    """Tells the person who waits how the model servers get on, until the service is ready."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, state: ServerState) -> None:
        reason = f": {state.reason}" if state.reason else ""
        self._console.print(
            f"{state.tier} ({state.model}): {state.state}{reason}", highlight=False, markup=False
        )


class _Recovery:
    """Ends the cool-down of a tier whose server is up again: its faults were the old process's."""

    def __init__(self, engine: CascadeEngine) -> None:
        self._engine = engine

    def __call__(self, state: ServerState) -> None:
        tier = self._engine.snapshot.tiers.get(state.tier)
        if tier is not None and state.state is Phase.READY:
            tier.recovered()


class _Server(uvicorn.Server):
    """uvicorn, with a word for the person when it is ready."""

    def __init__(
        self, app: FastAPI, listener: socket.socket, console: Console, began: float
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACEFUL_SECONDS,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
        )
        self._console = console
        self._listener = listener
        self._page = app.state.service.page is not None
        self._began = began

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say how to use what was started."""
        await super().startup(sockets)
        # What is there now stays: the garbage collector need not look at it again and again, which
        # takes tens of milliseconds each time, in which nobody is answered.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLD)
        if not self.should_exit:
            self._console.print(
                _welcome(self._listener, time.monotonic() - self._began, page=self._page),
                highlight=False,
                markup=False,
                soft_wrap=True,
            )


def _welcome(listener: socket.socket, seconds: float, *, page: bool) -> str:
    host, port = listener.getsockname()[:2]
    root = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    url = f"{root}/v1"
    body = '{"model": "cascade", "messages": [{"role": "user", "content": "What is 17 + 26?"}]}'
    snippet = (
        f"from openai import OpenAI; print(OpenAI(base_url='{url}', api_key='none').chat."
        "completions.create(model='cascade', messages=[{'role': 'user', 'content': "
        "'Name three colours.'}]).choices[0].message.content)"
    )
    program = Path(sys.argv[0])
    here = Path.cwd()
    command = program.relative_to(here) if program.is_relative_to(here) else program
    return "\n".join(
        (
            "",
            f"ready in {seconds:.1f} s. Ctrl-C stops it. To paste:",
            "",
            f"curl -i {url}/chat/completions -H 'content-type: application/json' -d '{body}'",
            f'{sys.executable} -c "{snippet}"',
            f"{command} audit tail",
            *((f"\nthe page: {root}{ROOT}",) if page else ()),
            "",
        )
    )
