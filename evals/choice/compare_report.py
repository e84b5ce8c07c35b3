"""What two policies differ in, in sentences that say only what was shown."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.markup import escape

from evals.choice.comparison import Apart, Compared, Side
from evals.choice.means import Spread
from evals.panel_report import Printed
from evals.tables import OutcomeTable

_SHOWN = 60


def report(found: Compared, test: OutcomeTable, limit: int) -> list[Printed | str]:
    """Both policies, their difference, and the prompts where it is largest."""
    parts: list[Printed | str] = [_sides(found), *sentences(found)]
    return [*parts, _prompts(found, test, limit)] if found.apart and limit else parts


def sentences(found: Compared) -> list[str]:
    """What can be said."""
    return [f"{_quality(found)}; {_cost(found)}.", *_rows(found)]


def plain(found: Compared, test: OutcomeTable, limit: int) -> dict[str, Any]:
    """The same for programs."""
    return {
        "source": found.source,
        "rows": found.rows,
        "groups": found.groups,
        "chosen_rows": found.chosen_rows,
        "policies": [_policy(side) for side in found.sides],
        "quality_difference": found.quality._asdict(),
        "cost_difference": found.cost._asdict(),
        "same_tier": found.same,
        "differ": len(found.apart),
        "prompts": [_values(each, test) for each in found.apart[:limit]],
        "sentences": sentences(found),
    }


def _sides(found: Compared) -> Printed:
    rows = [[str(s.policy), f"{s.quality:.3f}", f"{s.cost:.3g}"] for s in found.sides]
    apart = ["difference", _bounded(found.quality, "+.3f"), _bounded(found.cost, "+.3g")]
    return Printed(
        f"{found.source}: {found.rows} test prompts of {found.groups} groups",
        ["policy", "quality", "dollars a request"],
        [*rows, apart],
    )


def _quality(found: Compared) -> str:
    one, other = (str(side.policy) for side in found.sides)
    size = f"{abs(found.quality.value) * 100:.1f} points"
    ends = f"95 % interval {found.quality.low * 100:+.1f} to {found.quality.high * 100:+.1f}"
    if found.quality.low > 0.0:
        return f"{one} is better than {other} by {size} ({ends})"
    if found.quality.high < 0.0:
        return f"{one} is worse than {other} by {size} ({ends})"
    if found.quality.low == found.quality.high:
        return f"{one} is as good as {other} on every draw of these prompts"
    side = "above" if found.quality.value > 0 else "below"
    level = "level with it" if found.quality.value == 0 else f"{size} {side} it"
    return f"{one} cannot be told apart from {other} in quality: it is {level} ({ends})"


def _cost(found: Compared) -> str:
    one, other = found.sides
    ends = f"{found.cost.low:+.3g} to {found.cost.high:+.3g} dollars a request"
    if other.cost <= 0.0:
        return f"it costs {one.cost:.3g} dollars a request ({ends})"
    share = f"it costs {one.cost / other.cost:.0%} of {other.policy}'s price"
    if found.cost.low <= 0.0 <= found.cost.high and found.cost.low != found.cost.high:
        return f"{share}, which may be chance ({ends})"
    return f"{share} ({ends})"


def _rows(found: Compared) -> Iterator[str]:
    chosen = [str(side.policy) for side in found.sides if side.policy.chosen]
    if chosen:
        yield (
            f"The setting of {' and that of '.join(chosen)} was chosen on {found.chosen_rows} "
            "choose rows, none of which is among the test rows."
        )
    yield (
        f"On {found.same} of {found.rows} prompts the same tier answers; {len(found.apart)} differ "
        "in quality or cost."
    )


def _prompts(found: Compared, test: OutcomeTable, limit: int) -> Printed:
    one, other = (str(side.policy) for side in found.sides)
    rows = [
        [
            escape(str(test.ids[each.row])),
            *(f"{t} {q:g}" for t, q in zip(each.served, each.quality, strict=True)),
            f"{each.cost[0] - each.cost[1]:+.2g}",
            _head(test.prompts[each.row]),
        ]
        for each in found.apart[:limit]
    ]
    return Printed("where they differ most", ["id", one, other, "dollars", "prompt"], rows)


def _policy(side: Side) -> Mapping[str, Any]:
    return {
        "policy": side.policy.name,
        "setting": side.policy.at if side.policy.knob else None,
        "chosen": side.policy.chosen,
        "cost": side.cost,
        "quality": side.quality,
    }


def _values(each: Apart, test: OutcomeTable) -> Mapping[str, Any]:
    return {
        "id": str(test.ids[each.row]),
        "group": str(test.groups[each.row]),
        "prompt": test.prompts[each.row],
        "served": each.served,
        "quality": each.quality,
        "cost": each.cost,
    }


def _head(prompt: str) -> str:
    line = " ".join(prompt.split())
    return escape(line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}...")


def _bounded(found: Spread, form: str) -> str:
    return f"{found.value:{form}} ({found.low:{form}} to {found.high:{form}})"
