"""What is said of a frontier: sentences first, then tables, and the same for machines."""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from rich.markup import escape

from evals.frontier.choosing import TARGETS
from evals.frontier.figures import Measured, Result, Setting
from evals.frontier.headroom import Headroom
from evals.frontier.measure import Frontier
from evals.frontier.metrics import DEFINITIONS
from evals.frontier.policies import RANDOM
from evals.panel_report import Printed

_DIGITS: Final = 6
_FEW: Final = 3
"""Tiers whose shares stand side by side."""
_FEW_GROUPS: Final = 20
"""Intervals of 95 % hold a mean in about 92 of 100 cases with so many, and in 83 with five."""


def report(frontier: Frontier) -> list[Printed | str]:
    """All of it, the headroom first."""
    return [
        _rows(frontier),
        singles(frontier),
        *room(frontier),
        verdict(frontier),
        cheapest(frontier),
        metrics(frontier),
        savings(frontier),
        settings(frontier),
        *_notes(frontier),
    ]


def room(frontier: Frontier) -> list[str]:
    """What there is to gain at all."""
    head = frontier.headroom
    low, best = head.singles[head.cheapest], head.singles[head.best]
    cheap, top = escape(head.cheapest), escape(head.best)
    apart = (
        f"Best single: {top}, {best.quality:.1%} for {_usd(best.cost)}. An oracle has "
        f"{head.oracle.quality:.1%} for {_usd(head.oracle.cost)}"
    )
    apart += f"; as good as {top} it costs {head.oracle_cost:.1%} of it." if best.cost else "."
    hard = (
        f"Prompts: every tier is right on {head.all_right:.1%} and none on {head.all_wrong:.1%}; "
        f"{cheap} fails and another is right on {head.only_dearer:.1%}."
    )
    if head.best != head.cheapest:
        times = f" for {best.cost / low.cost:.3g} times the price" if low.cost else ""
        gap = 100.0 * (best.quality - low.quality)
        apart += f" {top} is {gap:+.1f} points above {cheap}{times}."
        hard += f" On {head.only_cheapest:.1%} {cheap} is right and {top} fails."
    return [apart, hard, *_misplaced(head)]


def _misplaced(head: Headroom) -> Iterator[str]:
    """That another tier costs less than the first one, which policies take for the cheapest."""
    name, least = min(head.singles.items(), key=lambda each: each[1].cost)
    if least.cost < head.singles[head.cheapest].cost:
        yield (
            f"{escape(head.cheapest)} stands first and is taken for the cheapest tier, but "
            f"{escape(name)} costs less: name the tiers from the cheapest."
        )


def pays(frontier: Frontier) -> bool:
    """Whether routing is shown to beat mixing at random, by what led on the choose rows."""
    head, leader = frontier.headroom, frontier.results.get(frontier.leader)
    if _one_for_all(head) or leader is None:
        return False
    return leader.metrics["lead"].interval.low > 0.0


def verdict(frontier: Frontier) -> str:
    """Whether routing pays on these rows, in a sentence or two."""
    head, leader = frontier.headroom, frontier.results.get(frontier.leader)
    if _one_for_all(head):
        return (
            f"Routing does not pay here: {escape(head.best)} is the best tier, and none is "
            "cheaper. Send everything there."
        )
    if leader is None:
        return "No policy could be played: there are no lengths, kinds, predictions or judgements."
    lead = leader.metrics["lead"]
    if math.isnan(lead.value):
        return (
            f"Whether routing pays cannot be told: {escape(head.cheapest)}, which stands first as "
            "the cheapest tier, costs as much as any."
        )
    if frontier.groups == 1:
        return (
            f"Whether routing pays cannot be told: {leader.name} is {lead.value:+.4f} in mean "
            "quality over mixing at random, but all test rows are of one group, and nothing says "
            "how far another would differ."
        )
    over = f"{lead.value:+.4f} ({_ends(lead, '+.4f')}) in mean quality over mixing at random"
    rows = f"{frontier.rows['test']:,} test rows"
    if pays(frontier):
        return f"Routing pays: {leader.name}, which led on the choose rows, is {over} on {rows}."
    return (
        f"Routing does not pay here, as far as {rows} can tell: {leader.name}, which led on the "
        f"choose rows, is {over}."
    )


def _one_for_all(head: Headroom) -> bool:
    """Whether the best tier costs no more than any other."""
    return head.singles[head.best].cost <= min(each.cost for each in head.singles.values())


def singles(frontier: Frontier) -> Printed:
    """Each tier alone."""
    lines = [
        (escape(tier), _with(each["quality"], ".1%"), _usd_with(each["cost"]))
        for tier, each in frontier.singles.items()
    ]
    return Printed("each tier alone", ("tier", "quality", "dollars an answer"), lines)


def cheapest(frontier: Frontier) -> Printed:
    """What to run for each target: the cheapest policy on the choose rows, on the test rows."""
    head = ("for", "policy", "setting", "quality, of the best", "saves")
    lines = []
    for target, name in frontier.cheapest.items():
        setting = next(s for s in frontier.results[name].settings if s.target == target)
        knob, measured = f"{frontier.results[name].knob} {setting.knob:.4g}", setting.measured
        ends = (_with(measured["relative"], ".1%"), _with(measured["savings"], ".1%"))
        lines.append((f"{target:.0%}", name, knob, *ends))
    title = "the cheapest for a share of the best tier's quality, by the choose rows"
    return Printed(title, head, lines)


def metrics(frontier: Frontier) -> Printed:
    """Whole curves."""
    head = ("policy", "APGR", "CPT50", "CPT80", "AIQ", "AUC", "AUC over random")
    lines = [
        (
            name,
            _with(each.metrics["APGR"], ".3f"),
            *(_one(each.metrics[metric], ".3f") for metric in ("CPT50", "CPT80", "AIQ", "AUC")),
            "" if name == RANDOM else _with(each.metrics["lead"], "+.4f"),
        )
        for name, each in frontier.results.items()
    ]
    return Printed("all settings of each policy", head, lines)


def savings(frontier: Frontier) -> Printed:
    """What each policy saves, set for each target on the choose rows."""
    head = ("policy", *(f"{target:.0%}" for target in TARGETS))
    lines = [
        (
            name,
            *(
                _with(setting.measured["savings"], ".1%") if setting.measured else "not reached"
                for setting in each.settings
            ),
        )
        for name, each in frontier.results.items()
    ]
    return Printed("saved, set for a share of the best tier's quality", head, lines)


def settings(frontier: Frontier) -> Printed:
    """What was chosen for each target, as it does on the test rows."""
    climbs, few = _climbs(frontier), len(frontier.tiers) <= _FEW
    head = ("policy", "for", "setting", "quality", "dollars", "IBC lift")
    lines = []
    for name, each in frontier.results.items():
        some = [setting for setting in each.settings if setting.measured]
        for setting in some:
            shown = "" if setting is not some[0] else name
            shares = _shares(setting.shares, () if few else frontier.tiers)
            cells = _cells(setting, climbs=climbs)
            lines.append((shown, f"{setting.target:.0%}", *cells, shares))
    tiers = escape("/".join(frontier.tiers)) if few else "answered by"
    more = ("expected", tiers) if climbs else (tiers,)
    return Printed("settings chosen on the choose rows", (*head, *more), lines)


def _cells(setting: Setting, *, climbs: bool) -> Sequence[str]:
    measured = setting.measured
    expected = "" if setting.expected is None else _usd(setting.expected)
    return (
        f"{setting.knob:.4g}",
        _with(measured["quality"], ".1%"),
        _usd(measured["cost"].value),
        _one(measured["IBC lift"], "+.2f"),
        *((expected,) if climbs else ()),
    )


def _shares(shares: Sequence[float], tiers: Sequence[str]) -> str:
    """Who answered: in the order of the tiers, or by name where there are many."""
    if not tiers:
        return "/".join(f"{share:.0%}" for share in shares)
    named = zip(shares, tiers, strict=True)
    return ", ".join(f"{share:.0%} {escape(tier)}" for share, tier in named if share > 0.0)


def _rows(frontier: Frontier) -> str:
    rows = frontier.rows
    out = frontier.left_out
    left = f"; {out:,} rows lack a quality or a cost" if out else ""
    cold = " Costs count cold caches." if frontier.cold else ""
    source = escape(frontier.source)
    sure = (
        "All test rows are of one group, so that nothing has an interval."
        if frontier.groups == 1
        else f"Intervals are of 95 %, by {frontier.resamples:,} resamples of "
        f"{frontier.groups:,} groups."
    )
    if 1 < frontier.groups < _FEW_GROUPS:
        sure += " Of so few groups they come out too narrow."
    return (
        f"{source} ({frontier.digest}): fitted on {rows['fit']:,} rows, settings chosen "
        f"on {rows['choose']:,}, measured on {rows['test']:,}{left}. {sure}{cold}"
    )


def _notes(frontier: Frontier) -> Iterator[str]:
    for why in dict.fromkeys(frontier.missing.values()):
        names = [name for name, each in frontier.missing.items() if each == why]
        yield f"Not played, as {why}: {', '.join(names)}."
    for name, text in DEFINITIONS.items():
        yield f"{name}: {text}."
    if _climbs(frontier):
        yield (
            "expected: of a cascade, c_small + (1 - p) c_large with p the share that is accepted: "
            "its cost if the prompts that go up cost as much as any."
        )


def _climbs(frontier: Frontier) -> bool:
    """Whether a cascade is among the policies."""
    chosen = [setting for each in frontier.results.values() for setting in each.settings]
    return any(setting.expected is not None for setting in chosen)


def record(frontier: Frontier) -> dict[str, Any]:
    """The same in plain values; None for what cannot be told, and for the end of a knob."""
    head = frontier.headroom
    return {
        "source": frontier.source,
        "digest": frontier.digest,
        "tiers": list(frontier.tiers),
        "rows": dict(frontier.rows),
        "left_out": frontier.left_out,
        "groups": frontier.groups,
        "resamples": frontier.resamples,
        "seed": frontier.seed,
        "cold_caches": frontier.cold,
        "headroom": {
            "best": head.best,
            "cheapest": head.cheapest,
            "oracle": {
                "quality": _short(head.oracle.quality),
                "cost": _short(head.oracle.cost),
                "share_of_best_cost": _short(head.oracle_cost),
            },
            "all_right": _short(head.all_right),
            "all_wrong": _short(head.all_wrong),
            "only_dearer": _short(head.only_dearer),
            "only_cheapest": _short(head.only_cheapest),
        },
        "singles": {tier: _values(each) for tier, each in frontier.singles.items()},
        "pays": pays(frontier),
        "verdict": verdict(frontier),
        "leader": frontier.leader or None,
        "cheapest": {f"{target:g}": name for target, name in frontier.cheapest.items()},
        "policies": {name: _policy(each, frontier) for name, each in frontier.results.items()},
        "missing": dict(frontier.missing),
        "definitions": dict(DEFINITIONS),
    }


def rows_of_settings(frontier: Frontier) -> str:
    """Every setting of every policy on the test rows, as CSV."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    shares = [f"share.{tier}" for tier in frontier.tiers]
    rows.writerow(["policy", "knob", "cost", "quality", *shares])
    for name, each in frontier.results.items():
        curve = each.curve
        columns = np.column_stack([curve.knob, curve.cost, curve.quality, curve.shares])
        rows.writerows([name, *map("{:.9g}".format, row)] for row in columns.tolist())
    return text.getvalue()


def _policy(each: Result, frontier: Frontier) -> dict[str, Any]:
    return {
        "knob": each.knob,
        "settings": len(each.curve),
        "sound_settings": each.sound,
        "metrics": _values(each.metrics),
        "chosen": [
            {
                "target": setting.target,
                "knob": None if setting.knob is None else _short(setting.knob),
                "reached": setting.knob is not None,
                **_values(setting.measured),
                "expected_cost": None if setting.expected is None else _short(setting.expected),
                "shares": dict(zip(frontier.tiers, map(_short, setting.shares), strict=False)),
            }
            for setting in each.settings
        ],
    }


def _values(some: Mapping[str, Measured]) -> dict[str, Any]:
    return {
        name: {"value": _short(each.value), "interval": [*map(_short, each.interval)]}
        for name, each in some.items()
    }


def _short(value: float) -> float | None:
    """Six digits, which are more than any of it is sure of."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _with(each: Measured, form: str) -> str:
    if math.isnan(each.value) or math.isnan(each.interval.low):
        return _one(each, form)
    return f"{_one(each, form)} ({_ends(each, form)})"


def _ends(each: Measured, form: str) -> str:
    """An interval; what is per cent says so once, before it."""
    return " to ".join(_signless(end, form).removesuffix("%") for end in each.interval)


def _one(each: Measured, form: str) -> str:
    return "?" if math.isnan(each.value) else _signless(each.value, form)


def _signless(value: float, form: str) -> str:
    """A number; what rounds to zero has no minus."""
    return f"{value:z{form}}" if form.startswith(".") else f"{value:+z{form[1:]}}"


def _usd_with(each: Measured) -> str:
    if math.isnan(each.interval.low):
        return _usd(each.value)
    return f"{_usd(each.value)} ({_usd(each.interval.low)} to {_usd(each.interval.high)})"


def _usd(dollars: float) -> str:
    return f"${dollars:.4g}"
