"""All model servers of a configuration, started and stopped together."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cascade.errors import ConfigError
from serving.models.child import free_ports
from serving.models.fetch import locate
from serving.models.launch import Launch, share_threads, usable_cores
from serving.models.sources import Progress, silent
from serving.models.state import ServerState, sweep
from serving.models.supervisor import Listener, ModelServer, Timing


class Fleet:
    """One model server a launch; none for none.

    Args:
        servers: not yet started.
        home: where their run files lie.
    """

    def __init__(self, servers: Sequence[ModelServer], home: Path) -> None:
        self._servers = MappingProxyType({server.state.tier: server for server in servers})
        self._home = home

    @property
    def servers(self) -> Mapping[str, ModelServer]:
        """By tier. Address and key hold from the beginning, before anything runs."""
        return self._servers

    def listen(self, listener: Listener) -> None:
        """Tell one more of every change of a server's phase."""
        for server in self._servers.values():
            server.listen(listener)

    async def start(self) -> None:
        """Start all at once, and return when all are healthy.

        Raises:
            ConfigError: some do not come up; those that did are stopped again.
        """
        sweep(self._home)
        starts = [asyncio.create_task(server.start()) for server in self._servers.values()]
        try:
            outcomes = await asyncio.gather(*starts, return_exceptions=True)
            _raise_failures(outcomes)
        except BaseException:
            await asyncio.gather(*starts, return_exceptions=True)
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop all; harmless where they are not running."""
        stops = (server.stop() for server in self._servers.values())
        _raise_failures(await asyncio.gather(*stops, return_exceptions=True))

    def states(self) -> list[ServerState]:
        """Each server as it is now."""
        return [server.state for server in self._servers.values()]


def prepare(
    launches: Sequence[Launch],
    home: Path,
    *,
    progress: Progress = silent,
    listener: Listener | None = None,
    timing: Timing | None = None,
) -> Fleet:
    """A fleet ready to start, its model files fetched; blocks for as long as that takes.

    Args:
        launches: what to run.
        home: folder for model files, logs and run files.
        progress: told of model files as they are fetched or checked.
        listener: told of every change of a server's phase.
        timing: the supervisors' patience.

    Raises:
        ConfigError: a model file cannot be had, or two launches name one tier or one port.
    """
    for what in ("tier", "port"):
        _refuse_twice([getattr(launch, what) for launch in launches], what)
    files = [locate(launch.model, home, progress) for launch in launches]
    ports = free_ports(len(launches))
    threads = share_threads(launches, usable_cores())
    servers = []
    for launch, file, free in zip(launches, files, ports, strict=True):
        port = launch.port or free
        server = ModelServer(
            tier=launch.tier,
            model=launch.alias,
            command=launch.command(file, port, launch.threads or threads),
            port=port,
            home=home,
            timing=timing,
            listener=listener,
        )
        servers.append(server)
    return Fleet(servers, home)


def _refuse_twice(values: Sequence[str | int | None], what: str) -> None:
    given = [value for value in values if value is not None]
    if twice := {value for value in given if given.count(value) > 1}:
        raise ConfigError(f"two model servers have the same {what}: {sorted(map(str, twice))}")


def _raise_failures(outcomes: Sequence[BaseException | None]) -> None:
    failed = [outcome for outcome in outcomes if outcome is not None]
    if len(failed) > 1 and all(isinstance(error, ConfigError) for error in failed):
        raise ConfigError("\n".join(map(str, failed)))
    if failed:
        raise failed[0]
