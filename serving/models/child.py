"""One run of a server process: born with a log, watched, and never left behind."""

import asyncio
import contextlib
import os
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path


class DownError(Exception):
    """The process is of no use any more; the message says why."""


@contextlib.asynccontextmanager
async def running(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str], stop_seconds: float
) -> AsyncIterator[Process]:
    """A process that appends to the log; on leaving it is asked to end, then made to.

    Its standard input stays open for as long as this process lives, which is how it can tell.
    """
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=file,
            stderr=file,
            env=os.environ | environment,
            start_new_session=True,  # ctrl-C is for the service, which then stops its servers
        )
    try:
        yield process
    finally:
        await _end(process, stop_seconds)


async def watch(process: Process, seconds: float) -> None:
    """Wait that long.

    Raises:
        DownError: the process ended meanwhile.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            code = await process.wait()
            how = f"with status {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
            raise DownError(f"its process ended {how}")


def refuse_taken(port: int) -> None:
    """Make sure that nothing listens on the loopback port.

    Raises:
        DownError: something does.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise DownError(f"port {port} is in use by another process") from error


def free_ports(count: int) -> list[int]:
    """That many different loopback ports that nothing listens on."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


async def _end(process: Process, stop_seconds: float) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    # Not asyncio.timeout: this may run in a task that is being cancelled.
    ended = asyncio.create_task(process.wait())
    done, _ = await asyncio.wait({ended}, timeout=stop_seconds)
    if not done:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await ended
