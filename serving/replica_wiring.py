"""Makes one backend of a tier's several servers.

A part of the composition root. Each server has its limit and its cool-down, so that one that fails
is left alone while the others serve; tries are the tier's, outside of these.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

from cascade.backends.replica_choice import RuleName, rule_of
from cascade.backends.replicas import Replica, ReplicasBackend
from cascade.backends.wrappers.breaker import CoolingBackend
from cascade.errors import ConfigError
from cascade.protocols import Backend, Tokenizer
from cascade.sight import Load, Look
from cascade.tiers.tier import never_cooling, nobody_chooses, nothing_to_end


class Server(NamedTuple):
    """What a tier asks: its guards, and how its model counts."""

    backend: Backend
    tokenizer: Tokenizer | None
    recovered: Callable[[], None]
    cooling: Callable[[], bool]
    loads: Callable[[], Sequence[Load]]
    watch: Callable[[Look], None] = nobody_chooses


class Guards(NamedTuple):
    """What stands around a server's backend.

    Attributes:
        load: counts its calls.
        circuit: its cool-down; None for none.
    """

    load: Callable[[], Load]
    circuit: CoolingBackend | None = None

    def loads(self) -> list[Load]:
        """What the one server has to do."""
        cooling = self.circuit is not None and self.circuit.cooling()
        return [replace(self.load(), cooling=cooling)]


def guarded_by(backend: Backend, guards: Guards, tokenizer: Tokenizer | None) -> Server:
    """One server with its cool-down and its limit, if it has them."""
    circuit = guards.circuit
    if circuit is None:
        return Server(backend, tokenizer, nothing_to_end, never_cooling, guards.loads)
    return Server(backend, tokenizer, circuit.recovered, circuit.cooling, guards.loads)


def replicated(
    urls: Sequence[str],
    server: Callable[[str], Server],
    where: str,
    *,
    rule: RuleName | None,
    cached: bool,
) -> Server:
    """All servers of a tier as one, which is cooling down only when all of them are.

    Prompts are counted by the first: they serve the same model.

    Args:
        urls: their addresses.
        server: what asks the one at an address.
        where: path of the tier.
        rule: how one is chosen.
        cached: it is known how their caches work.

    Raises:
        ConfigError: they cannot work.
    """
    servers = dict(zip(_names(urls), map(server, urls), strict=True))
    replicas = {name: Replica(backend=s.backend, cooling=s.cooling) for name, s in servers.items()}
    if rule is not None and rule_of(rule).reads_caches and not cached:
        raise ConfigError(
            f"{rule} goes by what is warm where, and nothing is known of this tier's cache: say "
            "how it works with cache, or take session",
            param=f"{where}.replica_rule",
        )
    backend = ReplicasBackend(replicas, rule=rule)
    first = next(iter(servers.values()))
    return Server(
        backend,
        first.tokenizer,
        nothing_to_end,
        backend.cooling,
        lambda: [replace(s.loads()[0], name=name) for name, s in servers.items()],
        backend.watch,
    )


def _names(urls: Sequence[str]) -> list[str]:
    """Host and port, as of a server that is alone; with the path where these do not suffice."""
    parts = [urlsplit(url) for url in urls]
    hosts = [each.netloc.rpartition("@")[2] for each in parts]  # credentials are nobody's name
    if len(set(hosts)) == len(urls):
        return hosts
    return [f"{host}{each.path}" for host, each in zip(hosts, parts, strict=True)]
