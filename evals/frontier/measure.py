"""Everything that is told of policies on a table: fitted, chosen and measured on rows apart."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from evals.frontier.choosing import TARGETS, Chosen, choose
from evals.frontier.figures import Figures, Measured, Result, gaps
from evals.frontier.headroom import Headroom, headroom
from evals.frontier.known import FrontierError, Known, complete
from evals.frontier.metrics import auc
from evals.frontier.policies import Replays, replayed
from evals.frontier.replayed import ORACLE, Always, Mixed, Replayed
from evals.frontier.resampling import THREADS, intervals, resampled
from evals.frontier.warmth import Cold, Warmth
from evals.tables import OutcomeTable
from evals.tables.splits import SPLITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """All that was measured.

    Attributes:
        source: the table's file.
        digest: of what is in it.
        tiers: from the cheapest.
        rows: how many of each split were replayed.
        left_out: rows that lack the quality or the cost of a tier.
        groups: that the intervals are over.
        headroom: of the test rows.
        singles: each tier alone, by name: quality and cost.
        results: by policy.
        missing: by policy, why it could not be played.
        leader: the policy with the largest area on the choose rows; empty without one.
        cheapest: by target, the policy that reaches it with the least on the choose rows.
        cold: whether cold caches are in the costs.
    """

    source: str
    digest: str
    tiers: tuple[str, ...]
    rows: Mapping[str, int]
    left_out: int
    groups: int
    resamples: int
    seed: int
    headroom: Headroom
    singles: Mapping[str, Mapping[str, Measured]]
    results: Mapping[str, Result]
    missing: Mapping[str, str]
    leader: str
    cheapest: Mapping[float, str]
    cold: bool


def measure(
    table: OutcomeTable,
    *,
    names: Sequence[str] = (),
    resamples: int = 200,
    seed: int = 0,
    warmth: Warmth | None = None,
) -> Frontier:
    """Plays policies: fitted on the fit rows, chosen on the choose rows, measured on the test rows.

    Args:
        table: with all three splits.
        names: of the policies; none: all that it can play. Those that mix at random or always ask
            one tier are always there.
        resamples: of the groups of the test rows.
        seed: of the resamples.
        warmth: what cold caches cost where conversations are known; None: nothing is added.

    Raises:
        FrontierError: a split is empty, or a policy cannot be played.
    """
    rows = complete(table) if warmth is None else warmth.warm(complete(table))
    splits = _splits(rows)
    replays = replayed(rows)
    known = replays.known
    policies = [_billed(policy, warmth) for policy in _wanted(replays, names)]
    chosen = _chosen(policies, splits["choose"], known.best)
    figures = Figures(splits["test"], known, list(zip(policies, chosen, strict=True)))
    values = figures.statistics(figures.clusters.all())
    drawn = resampled(figures.clusters, figures.statistics, resamples=resamples, seed=seed)
    found = [Measured(*each) for each in zip(values, intervals(drawn), strict=True)]
    singles, results = figures.told(found)
    return Frontier(
        source=table.source,
        digest=table.digest(),
        tiers=table.tiers,
        rows={name: len(some) for name, some in splits.items()},
        left_out=len(table) - len(rows),
        groups=figures.clusters.count,
        resamples=resamples,
        seed=seed,
        headroom=headroom(splits["test"], known),
        singles=singles,
        results={each.name: each for each in results},
        missing=replays.missing,
        leader=_leader(splits["choose"], known, policies, chosen),
        cheapest=_cheapest(policies, chosen),
        cold=warmth is not None,
    )


def _chosen(policies: Sequence[Replayed], rows: OutcomeTable, best: int) -> list[Chosen]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda policy: choose(policy, rows, best), policies))


def _splits(rows: OutcomeTable) -> dict[str, OutcomeTable]:
    """The parts by name.

    Raises:
        FrontierError: one is empty.
    """
    found = {name: rows.of(name) for name in SPLITS}
    if empty := [name for name, some in found.items() if not len(some)]:
        raise FrontierError(
            f"{rows.source}: there are no {empty[0]} rows: numbers must not be read off the rows "
            "they were chosen on; leave the column of splits out to have them drawn"
        )
    return found


def _wanted(replays: Replays, names: Sequence[str]) -> list[Replayed]:
    wanted = {name: replays[name] for name in names} if names else replays.policies
    base = {
        name: policy
        for name, policy in replays.policies.items()
        if isinstance(policy, Always | Mixed)
    }
    return list({**base, **wanted}.values())


def _billed(policy: Replayed, warmth: Warmth | None) -> Replayed:
    """The policy with what going to and fro costs it; the oracle is spared, being a bound."""
    if warmth is None or not _routes(policy):
        return policy
    return Cold(name=policy.name, knob=policy.knob, inner=policy, warmth=warmth)


def _leader(
    choose_rows: OutcomeTable, known: Known, policies: Sequence[Replayed], chosen: Sequence[Chosen]
) -> str:
    """The policy with the largest area on the choose rows, of those that can be had."""
    _, whole = gaps(
        choose_rows.cost.mean(axis=0).tolist(), choose_rows.quality.mean(axis=0).tolist(), known
    )
    areas = {
        policy.name: auc(each.curve.cost, each.curve.quality, whole)
        for policy, each in zip(policies, chosen, strict=True)
        if _routes(policy)
    }
    return max(areas, key=lambda name: areas[name], default="")


def _cheapest(policies: Sequence[Replayed], chosen: Sequence[Chosen]) -> dict[float, str]:
    """By target, what costs least on the choose rows, of the policies that can be had."""
    found: dict[float, tuple[float, str]] = {}
    for policy, each in zip(policies, chosen, strict=True):
        for target, cost in each.costs.items():
            if _routes(policy):
                found[target] = min((cost, policy.name), found.get(target, (np.inf, "")))
    return {target: found[target][1] for target in TARGETS if target in found}


def _routes(policy: Replayed) -> bool:
    """Whether it looks at requests, and could be had."""
    return not isinstance(policy, Always | Mixed) and policy.name != ORACLE
