"""Every tier and server at one moment: whether it can be asked, what it has to do, what it holds.

All of it is this process's own knowledge, so it is looked at on the event loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cascade.sight import Load
from cascade.tiers import ModelTier
from serving.readiness import READY, states
from serving.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """One server of a tier.

    Attributes:
        load: what it has to do.
        held_tokens: in its prompt cache, as far as Cascade knows; None where that is not known.
    """

    load: Load
    held_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierState:
    """One tier.

    Attributes:
        state: ready, or what it is instead.
        model: what its server serves, of a launched one; empty of others.
        restarts: of the launched server; None of others.
        reason: why the launched server is not ready; may be empty.
        held_tokens: in all its caches together; None where that is not known.
        capacity_tokens: that fit into these; None where that is not known.
    """

    name: str
    tier: ModelTier
    state: str
    model: str
    restarts: int | None
    reason: str
    held_tokens: int | None
    capacity_tokens: int | None
    replicas: Sequence[ReplicaState]

    @property
    def ready(self) -> bool:
        """Whether it can be asked."""
        return self.state == READY

    @property
    def in_flight(self) -> int | None:
        """Calls that its servers have now; None where nobody counts."""
        counts = [each.load.in_flight for each in self.replicas]
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    @property
    def waiting(self) -> int:
        """Calls that wait for one of those to end."""
        return sum(each.load.waiting for each in self.replicas)

    @property
    def most(self) -> int | None:
        """Calls that are made at once; None for no limit."""
        limits = [each.load.most for each in self.replicas]
        known = [limit for limit in limits if limit is not None]
        return sum(known) if known and len(known) == len(limits) else None


def fleet_state(service: Service) -> list[TierState]:
    """Every tier as it is now, in the configuration's order."""
    tiers = service.engine.snapshot.tiers
    servers = {server.tier: server for server in service.servers.states()}
    found = states(tiers, servers.values())
    return [_tier(service, tier, found[name], servers.get(name)) for name, tier in tiers.items()]


def _tier(service: Service, tier: ModelTier, state: str, server: object) -> TierState:
    ledger = service.engine.forecast.ledger
    held = ledger.held_at(tier.name)
    loads = tier.loads()
    size = tier.cache.capacity_tokens if tier.cache else None
    alone = len(loads) == 1
    return TierState(
        name=tier.name,
        tier=tier,
        state=str(state),
        model=getattr(server, "model", ""),
        restarts=getattr(server, "restarts", None),
        reason=getattr(server, "reason", ""),
        held_tokens=ledger.held_tokens(tier.name),
        capacity_tokens=None if size is None else size * max(len(loads), 1),
        replicas=[
            ReplicaState(
                load=load,
                held_tokens=sum(held.values()) if alone and held else held.get(load.name),
            )
            for load in loads
        ],
    )
