"""What was tuned, in a table, in sentences that say only what was shown, and for programs."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from evals.choice.block import MARK
from evals.choice.means import Spread
from evals.choice.tuned import Tuned
from evals.panel_report import Printed

WIDTH: Final = 90


def report(found: Tuned, tiers: Sequence[str]) -> list[Printed | str]:
    """The setting, what it does and what can be said of it."""
    return [_table(found, tiers), *sentences(found)]


def sentences(found: Tuned) -> list[str]:
    """What can be said."""
    return [*_said(found), *_room(found), _paid(found)]


def refusal(found: Tuned) -> str:
    """Why the goal's claim cannot be made, and what would do; empty where it is met."""
    claim, tested = found.claim, found.tested
    if claim.met:
        return ""
    start = (
        f"{tested.rows} test rows of {tested.groups} groups cannot show, with probability "
        f"{1.0 - found.goal.delta:g}, that {_goal(found)}"
    )
    if claim.needed is None:
        return f"{start}: there {found.policy} is not that good, so no number of rows will"
    more, share = claim.needed - tested.rows, tested.rows / (tested.rows + found.chosen_rows)
    stricter = "" if found.candidates > 1 else ", or let --candidates 8 try stricter settings"
    return (
        f"{start}; about {claim.needed:,} test rows like these would, {more:,} more, which at this "
        f"split is {claim.needed / share:,.0f} to choose and test on. Or ask for less{stricter}"
    )


def remarks(found: Tuned, source: str) -> list[str]:
    """What stands above the block in the configuration."""
    tested = found.tested
    said = (
        f"chosen on {found.chosen_rows} rows of {source}, tested on {tested.rows} others: quality "
        f"{_bounded(tested.quality, '.3f')}, ${tested.cost.value:.3g} a request. "
        f"{sentences(found)[0]}"
    )
    return [f"{MARK} {line}" for line in textwrap.wrap(said, WIDTH - len(MARK))]


def plain(found: Tuned, tiers: Sequence[str]) -> dict[str, Any]:
    """The same for programs."""
    values = asdict(found)
    values["tested"]["shares"] = dict(zip(tiers, found.tested.shares, strict=True))
    for name in ("cost", "quality", "share"):
        values["tested"][name] = getattr(found.tested, name)._asdict()
    return {**values, "sentences": sentences(found), "refusal": refusal(found)}


def _table(found: Tuned, tiers: Sequence[str]) -> Printed:
    tested, chosen = found.tested, found.chosen
    shares = [f"{share:.0%}" for share in tested.shares]
    blank = [""] * len(tiers)
    other = [f"{tested.other_cost:.3g}", f"{tested.other_quality:.3f}"]
    alone = ["100%" if tier == found.best else "" for tier in tiers]
    return Printed(
        f"{found.policy}: {found.knob} {chosen.knob:g}" if found.knob else found.policy,
        ["rows", "dollars a request", "quality", *tiers],
        [
            [f"choose, {found.chosen_rows}", f"{chosen.cost:.3g}", f"{chosen.quality:.3f}", *blank],
            [
                f"test, {tested.rows}",
                _bounded(tested.cost, ".3g"),
                _bounded(tested.quality, ".3f"),
                *shares,
            ],
            [f"always:{found.best}, test", *other, *alone],
        ],
    )


def _said(found: Tuned) -> Iterator[str]:
    claim, sure = found.claim, f"With probability {1.0 - found.goal.delta:g}"
    if claim.quality is None:
        if claim.met:
            yield f"{sure} {_goal(found)}."
        return
    beside = f", and at least {_share(claim.share)} of always:{found.best}'s" if claim.share else ""
    yield f"{sure} the quality is at least {claim.quality:.3f}{beside}."
    if claim.met and found.goal.kind != "budget":
        yield f"So {_goal(found)}."


def _goal(found: Tuned) -> str:
    """What was asked for, as a sentence."""
    best, value = f"always:{found.best}", found.goal.value
    if found.goal.kind == "regret":
        return f"the quality is at most {value:g} less than that of {best}"
    return f"the quality is at least {value:g} of that of {best}"


def _room(found: Tuned) -> Iterator[str]:
    """What the plain choice would have been; or where a budget was missed."""
    if found.just is not None and found.just.knob != found.chosen.knob:
        yield (
            f"The cheapest setting that just meets the goal on the choose rows is "
            f"{found.just.knob:g} at ${found.just.cost:.3g}; it leaves no room, and such a setting "
            "misses the goal about every other time."
        )
    if found.goal.kind == "budget" and found.tested.cost.low > found.goal.value:
        yield (
            f"On the test rows it costs more than the budget of {found.goal.value:.3g}: chance "
            "made the choose rows cheap."
        )
    if found.claim.tried > 1:
        yield (
            f"{found.claim.tried} settings were tried on the test rows, from the strictest on; "
            "the figures of this one are a little flattered by that, and the claim is not."
        )


def _paid(found: Tuned) -> str:
    cost, other = found.tested.cost.value, found.tested.other_cost
    if cost >= other:
        return (
            f"It costs no less than always:{found.best} (${other:.3g} a request): at this goal "
            "routing saves nothing."
        )
    return f"It costs {cost / other:.0%} of always:{found.best}."


def _share(share: float) -> str:
    return f"{share:.3f}"


def _bounded(found: Spread, form: str) -> str:
    return f"{found.value:{form}} ({found.low:{form}} to {found.high:{form}})"
