"""The tables of simulated conversations: what counting caches well is worth, and where."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from evals.panel_report import Printed
from evals.simulate.conversation_ratios import (
    BLIND,
    PLAIN,
    RIVALS,
    TOO_DEAR,
    Compared,
    Summary,
    alone,
    best_rivals,
    chosen_elsewhere,
    grouped,
    summary,
)
from evals.simulate.conversations import (
    AUC,
    NAIVE,
    OURS,
    WARM_UP,
    WARM_UP_SEED,
    Cell,
    timed,
)
from evals.simulate.frontier import Frontiers, hull
from evals.simulate.world import TTL, Regime

MIDDLE: Final = Regime(prefix=6000, turns=8, tokens=2000, gap=20.0)
LONG: Final = Regime(prefix=30_000, turns=8, tokens=150, gap=240.0)
"""What is looked at more closely: traffic in the middle, and a long prefix that is seldom used."""

CLOSELY: Final = ("haiku-sonnet-opus", "own-8b-70b")

_AGAINST: Final = {
    BLIND: "the best that knows nothing of caches",
    PLAIN: "the best without a utility rule",
    NAIVE: "the utility rule, each call's exact bill",
}

_Vary = Callable[[Cell, float], Cell]


def _traffic(field: str) -> _Vary:
    return lambda cell, value: replace(cell, regime=replace(cell.regime, **{field: int(value)}))


_VARIED: Final[Mapping[str, tuple[Sequence[float], _Vary]]] = {
    "prefix, tokens": ((1000, 6000, 30_000), _traffic("prefix")),
    "turns": ((3, 8, 20), _traffic("turns")),
    "conversations at a time": ((1, 4, 16), _traffic("live")),
    "judge's AUC": ((0.65, 0.75, AUC, 0.95), lambda cell, value: replace(cell, auc=value)),
    "cache's time, s": ((60.0, TTL, 3600.0), lambda cell, value: replace(cell, ttl=value)),
}


def closely(names: Sequence[str]) -> list[Cell]:
    """The cells that show how much the results depend on one thing at a time.

    Some of them are among all cells already.
    """
    return list(dict.fromkeys(cell for _, _, row in _variations(names) for cell in row if cell))


def _bases(names: Sequence[str]) -> list[Cell]:
    known = [name for name in CLOSELY if name in names]
    return [Cell(lineup=name, regime=regime) for name in known for regime in (MIDDLE, LONG)]


def _variations(names: Sequence[str]) -> Iterator[tuple[str, float, list[Cell | None]]]:
    """What is varied, its value, and a cell for each base; None where caches know no such time."""
    for what, (values, vary) in _VARIED.items():
        for value in values:
            row = [vary(base, value) for base in _bases(names)]
            yield what, value, [cell if cell.ttl == TTL or timed(cell) else None for cell in row]


def record(each: Compared) -> dict[str, Any]:
    """A cell for machines: its ratios, at which quality against whom, and all frontiers."""
    return {
        **asdict(each.cell),
        "seeds": list(each.seeds),
        "outside": each.outside,
        "ratios": {name: each.ratio(name) for name in RIVALS},
        "elsewhere": {name: list(each.elsewhere[name]) for name in RIVALS},
        "against": {name: list(map(asdict, found)) for name, found in each.against.items()},
        "frontiers": {n: list(map(asdict, points)) for n, points in each.frontiers.items()},
    }


def tables(some: Sequence[Compared], more: Sequence[Compared], turns: int) -> list[Printed | str]:
    """All that is printed, or put into a page.

    Args:
        some: all cells.
        more: those that vary one thing.
        turns: counted in each run.
    """
    parts: list[Printed | str] = [_overall(some)]
    if len(some[0].seeds) > 1:
        parts.append(_elsewhere(some))
    parts += [_by_lineup(some), _by_traffic(some), _alone(some)]
    parts.append(_best(some))
    parts.append(_outside([*some, *more]))
    known = {each.cell: each for each in (*some, *more)}
    bases = _bases([each.cell.lineup for each in some])
    if bases and all(cell in known for cell in closely([b.lineup for b in bases])):
        parts.append(_sensitivity(bases, known))
    if (middle := known.get(Cell(lineup=some[0].cell.lineup, regime=MIDDLE))) is not None:
        parts.append(_frontier(middle))
    return [*parts, _how(some[0], turns)]


def _overall(some: Sequence[Compared]) -> Printed:
    rows = []
    for name, words in _AGAINST.items():
        found = summary(some, name)
        rows.append(
            (
                words,
                _between(found.mean, found.ends),
                f"{found.spread:.3f}",
                _between(found.worst, found.worst_ends),
                found.worst_cell,
                _share(found.above, found.above_ends),
            )
        )
    head = ("against", "mean", "spread of cells", "worst", "worst cell", f"above {TOO_DEAR}")
    return Printed(f"cost at equal quality, {len(some)} cells", head, rows)


def _elsewhere(some: Sequence[Compared]) -> Printed:
    rows = []
    for name, words in _AGAINST.items():
        if (found := chosen_elsewhere(some, name)) is not None:
            mean, spread = _between(found.mean, found.ends), f"{found.spread:.3f}"
            rows.append((words, mean, spread, f"{found.worst:.3f}", f"{found.above:.1%}"))
    head = (
        "against, chosen on the other seeds",
        "mean",
        "spread of cells",
        "worst",
        f"above {TOO_DEAR}",
    )
    return Printed("with rivals that are not chosen on the turns compared", head, rows)


def _by_lineup(some: Sequence[Compared]) -> Printed:
    rows = [
        (str(name), str(len(group)), *_three(group))
        for name, group in grouped(some, lambda cell: cell.lineup).items()
    ]
    return Printed("by line-up", ("line-up", "cells", *_THREE), rows)


_KEYS: Final[Mapping[str, Callable[[Cell], float]]] = {
    "prefix, tokens": lambda cell: cell.regime.prefix,
    "turns": lambda cell: cell.regime.turns,
    "tokens a turn": lambda cell: cell.regime.tokens,
    "gap, s": lambda cell: cell.regime.gap,
}


def _by_traffic(some: Sequence[Compared]) -> Printed:
    rows = [
        (what, f"{value:g}", str(len(group)), *_three(group))
        for what, key in _KEYS.items()
        for value, group in grouped(some, key).items()
    ]
    return Printed("by traffic", ("what", "value", "cells", *_THREE), rows)


_THREE: Final = tuple(f"{name} {what}" for name in RIVALS for what in ("mean", "worst"))


def _three(some: Sequence[Compared]) -> Iterator[str]:
    for name in RIVALS:
        found: Summary = summary(some, name)
        yield _between(found.mean, found.ends)
        yield f"{found.worst:.3f}"


def _alone(some: Sequence[Compared]) -> Printed:
    rows = []
    for rival in (*RIVALS[BLIND], NAIVE):
        mean, least, most, above = alone(some, rival)
        rows.append((rival, f"{mean:.3f}", f"{least:.3f}", f"{most:.3f}", f"{above:.0%}"))
    head = ("against this one alone", "mean", "best", "worst", f"above {TOO_DEAR}")
    return Printed("each rival by itself", head, rows)


def _best(some: Sequence[Compared]) -> str:
    shares = ", ".join(f"{name} {share:.0%}" for name, share in best_rivals(some, BLIND).items())
    return f"The cheapest that knows nothing of caches, by cells and qualities: {shares}."


def _outside(some: Sequence[Compared]) -> str:
    marked = [f"{_label(each.cell)} ({each.outside} of 5)" for each in some if each.outside]
    if not marked:
        return "Every quality lay between settings that were played, for us and for the rivals."
    return (
        "Outside of the settings that were played, for us or for a rival, so that the ratio is of "
        f"the nearest setting that is good enough, or missing: {'; '.join(marked)}."
    )


def _label(cell: Cell) -> str:
    """Its name, and what sets it apart from the cell that all have of that name."""
    parts = [cell.name]
    parts += [f"AUC {cell.auc:g}"] * (cell.auc != AUC)
    parts += [f"cache {cell.ttl:g} s"] * (cell.ttl != TTL)
    parts += [f"{cell.regime.live} at a time"] * (cell.regime.live != MIDDLE.live)
    return ", ".join(parts)


def _sensitivity(bases: Sequence[Cell], known: Mapping[Cell, Compared]) -> Printed:
    rows = []
    for what, value, row in _variations([base.lineup for base in bases]):
        cells = [
            "" if cell is None else " / ".join(f"{known[cell].ratio(n):.3f}" for n in RIVALS)
            for cell in row
        ]
        rows.append((what, f"{value:g}", *cells))
    head = ("what", "value", *(base.name for base in bases))
    return Printed(f"one thing at a time: {' / '.join(RIVALS)}", head, rows)


def _frontier(each: Compared) -> Printed:
    rows = [
        (
            name,
            f"{point.knob:g}",
            f"{point.quality:.3f}",
            f"{1000 * point.dollars:.2f}",
            f"{point.switches:.0%}",
            f"{point.premium:.0%}",
        )
        for name, points in _in_order(each.frontiers).items()
        for point in hull(points)
    ]
    head = ("policy", "knob", "quality", "$ a thousand turns", "switches", "cold premium")
    return Printed(f"frontiers of {each.cell.name}", head, rows)


def _in_order(frontiers: Frontiers) -> Frontiers:
    """Ours first."""
    return {OURS: frontiers[OURS], **frontiers}


def _how(each: Compared, turns: int) -> str:
    first, last = each.seeds[0], each.seeds[-1]
    return (
        f"Seeds {first} to {last}, {turns} turns of each after {WARM_UP} of another tenant (seed + "
        f"{WARM_UP_SEED}) that are not counted. In brackets: 95 % of what comes of drawing the "
        "seeds of each cell again, with replacement and widened by sqrt(n / (n - 1)), where the "
        "rival is chosen in hindsight; from how seeds differ, where it is chosen on others. "
        "Quality: acceptable answers, as a share of turns. Switches: turns answered by another "
        "tier than the one before. Cold premium: the share of the dollars that was paid because a "
        "prefix was cold. Knobs: a threshold; the share of the larger tiers for mix; a tier's "
        "place for tiers; else what quality is worth, over the difference of the tiers' mean list "
        "prices."
    )


def _between(value: float, ends: tuple[float, float] | None) -> str:
    return f"{value:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else "")


def _share(value: float, ends: tuple[float, float] | None) -> str:
    return f"{value:.1%}" + (f" ({ends[0]:.1%} to {ends[1]:.1%})" if ends else "")
