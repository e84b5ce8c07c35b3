"""Keeps one model server alive: starts it, asks after its health, starts it again when it fails.

The server keeps its port and its key over restarts, so that whoever talks to it need not be told.
A first start that fails is the operator's to mend and is an error; a server that worked once is
started again for as long as the service runs, ever less often while it keeps failing.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from cascade.errors import ConfigError
from serving.models import logs
from serving.models.child import DownError, refuse_taken, running, watch
from serving.models.llama_cpp import KEY_VARIABLE
from serving.models.sources import size_of
from serving.models.state import Phase, ServerState, log_file, publish

_POLL_SECONDS = 0.1
_LEVELS = {Phase.RESTARTING: logging.WARNING, Phase.FAILED: logging.ERROR}

logger = logging.getLogger(__name__)

Listener = Callable[[ServerState], None]
"""Is told of every change of a server's phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How patient the supervisor is, in seconds unless said otherwise.

    Attributes:
        start: until a new process must be healthy.
        check: between two health checks.
        answer: until a health check must be answered.
        misses: number of checks that fail in a row before the process counts as hung.
        backoff: before the first restart; doubled for each further one.
        backoff_limit: longest wait before a restart.
        steady: of life after which earlier failures are forgotten.
        stop: between asking a process to end and ending it.
    """

    start: float = 300.0
    check: float = 1.0
    answer: float = 3.0
    misses: int = 4
    backoff: float = 0.5
    backoff_limit: float = 10.0
    steady: float = 60.0
    stop: float = 5.0

    def failures(self, before: int, lived: float) -> int:
        """How many failures in a row there are when a process fails that lived so many seconds."""
        return 1 if lived >= self.steady else before + 1

    def pause(self, failures: int) -> float:
        """Seconds to wait before the next start, after so many failures in a row."""
        return min(self.backoff * 2.0 ** min(failures - 1, 16), self.backoff_limit)


class ModelServer:
    """One supervised process that serves one model on the loopback interface.

    Args:
        tier: the tier it serves.
        model: how it is called in messages.
        command: starts the process, which must end when its standard input closes.
        port: where it will listen.
        home: folder for its log and run file.
        timing: the supervisor's patience.
        listener: told of every change of phase.
    """

    def __init__(
        self,
        *,
        tier: str,
        model: str,
        command: Sequence[str],
        port: int,
        home: Path,
        timing: Timing | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.api_key = secrets.token_urlsafe(24)
        self._command = tuple(command)
        self._home = home
        self._timing = timing or Timing()
        self._listeners = [] if listener is None else [listener]
        self._task: asyncio.Task[None] | None = None
        self._log_start = 0
        self._state = ServerState(
            tier=tier,
            model=model,
            url=f"http://127.0.0.1:{port}",
            port=port,
            log=log_file(home, tier),
            since=time.time(),
            supervisor=os.getpid(),
        )

    @property
    def state(self) -> ServerState:
        """The server as it is now."""
        return self._state

    @property
    def url(self) -> str:
        """Base address, the same over restarts; requests need `api_key` as a bearer token."""
        return self._state.url

    def listen(self, listener: Listener) -> None:
        """Tell one more of every change of phase."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Start, and return once the server is healthy.

        Raises:
            ConfigError: it does not come up; the message has the end of its log.
        """
        if self._task is not None:
            raise RuntimeError(f"the model server of tier {self._state.tier!r} was started before")
        self._enter(Phase.STARTING)
        healthy = asyncio.Event()
        self._task = asyncio.create_task(self._supervise(healthy))
        waiting = asyncio.create_task(healthy.wait())
        try:
            await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if not healthy.is_set():
                await self.stop()

    async def stop(self) -> None:
        """End the process, gently first; does nothing when there is none.

        Raises:
            ConfigError: the server never came up.
        """
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()
        self._enter(Phase.STOPPED, pid=None)

    async def _supervise(self, healthy: asyncio.Event) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            reason = await self._live(healthy)
            if not healthy.is_set():
                self._enter(Phase.FAILED, pid=None, reason=reason)
                raise ConfigError(self._obituary(reason))
            failures = self._timing.failures(failures, time.monotonic() - began)
            restarts = self._state.restarts + 1
            self._enter(Phase.RESTARTING, pid=None, reason=reason, restarts=restarts)
            await asyncio.sleep(self._timing.pause(failures))

    async def _live(self, healthy: asyncio.Event) -> str:
        """One life of the process, from its start to its end; returns why it ended."""
        log = self._state.log
        try:
            refuse_taken(self._state.port)
            log.parent.mkdir(parents=True, exist_ok=True)
            logs.bound(log)
            self._log_start = size_of(log)
            async with self._running() as process, self._client() as client:
                self._enter(self._state.state, pid=process.pid)
                await self._until_healthy(process, client)
                self._enter(Phase.READY, reason="")
                healthy.set()
                reason = await self._until_down(process, client)
        except (DownError, OSError) as error:
            reason = str(error)
        return reason

    def _running(self) -> AbstractAsyncContextManager[Process]:
        return running(
            self._command,
            log=self._state.log,
            environment={KEY_VARIABLE: self.api_key},
            stop_seconds=self._timing.stop,
        )

    def _client(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            self.url,
            connector=aiohttp.TCPConnector(force_close=True),
            timeout=aiohttp.ClientTimeout(total=self._timing.answer),
            headers={"Authorization": f"Bearer {self.api_key}"},
        )

    async def _until_healthy(self, process: Process, client: aiohttp.ClientSession) -> None:
        limit = self._timing.start
        try:
            async with asyncio.timeout(limit):
                while not await _is_healthy(client):
                    await watch(process, _POLL_SECONDS)
        except TimeoutError:
            raise DownError(f"it was not ready within {limit:.0f} seconds") from None

    async def _until_down(self, process: Process, client: aiohttp.ClientSession) -> str:
        misses = 0
        while misses < self._timing.misses:
            await watch(process, self._timing.check)
            misses = 0 if await _is_healthy(client) else misses + 1
            logs.bound(self._state.log)
        return f"it left {misses} health checks in a row without an answer"

    def _enter(self, phase: Phase, **changes: Any) -> None:
        """Take on a state, tell the listener and the log of a new phase, write the run file."""
        changed = phase is not self._state.state
        since = time.time() if changed else self._state.since
        self._state = state = replace(self._state, state=phase, since=since, **changes)
        try:
            publish(state, self._home)
        except OSError as error:
            logger.warning("the run file of tier %s cannot be written: %s", state.tier, error)
        if not changed:
            return
        facts = {"tier": state.tier, "state": phase, "pid": state.pid, "restarts": state.restarts}
        why = f": {state.reason}" if state.reason else ""
        level = _LEVELS.get(phase, logging.INFO)
        logger.log(level, "model server of tier %s is %s%s", state.tier, phase, why, extra=facts)
        for listener in self._listeners:
            with contextlib.suppress(OSError):  # a closed terminal must not stop a model
                listener(state)

    def _obituary(self, reason: str) -> str:
        said = logs.tail(self._state.log, self._log_start)
        return (
            f"the model server of tier {self._state.tier!r} ({self._state.model}) did not start: "
            f"{reason}; its log is {self._state.log}" + (f" and ends\n{said}" if said else "")
        )


async def _is_healthy(client: aiohttp.ClientSession) -> bool:
    try:
        async with client.get("/health") as response:
            return response.ok
    except (aiohttp.ClientError, TimeoutError):
        return False
