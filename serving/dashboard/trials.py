"""An experiment for the page: what it is now, what overrides the file, and what its arms do."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cascade.experiments import Experiment
from cascade.terms import Terms, running
from serving.dashboard.formats import count, milliseconds, share, usd
from serving.overrides.store import EXPERIMENT, Override
from serving.results.arms import ArmReport
from serving.results.clauses import Clause
from serving.results.ratios import Difference
from serving.results.results import Results
from serving.results.verdict import Decision, decision, more, sentence

Cell = tuple[str, str]
"""A value, and what is said beside it."""

SHARE_RATES = {"escalation_rate": 0, "degraded_rate": -1, "error_rate": -1}
"""By name, the side on which an arm is better: to escalate more or less is neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmState:
    """One arm.

    Attributes:
        share: of those who are in.
        filed: its weight in the file.
    """

    name: str
    policy: str
    weight: float
    filed: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialState:
    """One experiment at a moment.

    Attributes:
        state: "running", "off", "waiting" for its start, or "over".
        terms: in force.
        filed: as the file has them.
        override: what is in force instead of the file; None when nothing is.
        version: what a change is made on; 0 for the file.
    """

    experiment: Experiment
    state: str
    terms: Terms
    filed: Terms
    override: Override | None
    version: int
    arms: Sequence[ArmState]


def trial_state(
    now_: Experiment, file: Experiment, held: Mapping[str, Override], version: int
) -> TrialState:
    """An experiment as it is.

    Args:
        now_: in force.
        file: as the file has it.
        held: the overrides in force.
        version: the newest of its subject.
    """
    terms, filed = now_.terms, file.terms
    total = sum(terms.weights.values())
    return TrialState(
        experiment=now_,
        state=_state(terms, time.time()),
        terms=terms,
        filed=filed,
        override=held.get(f"{EXPERIMENT}{now_.name}"),
        version=version,
        arms=[
            ArmState(
                name=str(arm.name),
                policy=arm.policy.name,
                weight=arm.weight,
                filed=filed.weights[str(arm.name)],
                share=arm.weight / total,
            )
            for arm in now_.arms
        ],
    )


def _state(terms: Terms, now: float) -> str:
    if running(terms, now):
        return "running"
    if not terms.enabled:
        return "off"
    return "waiting" if terms.start is not None and now < terms.start else "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What follows for one arm.

    Attributes:
        more: how many more units would decide; None where that cannot be said.
    """

    arm: str
    decision: Decision
    said: Clause
    more: Clause | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One difference from the control arm, with its place on a line from -reach to reach.

    Attributes:
        what: "cost", a share's name, or where a quality is from.
        relative: in per cent of the control's; otherwise in points.
        reach: the line's end.
        better: the side on which the arm is better: -1 for less, 1 for more, 0 for neither.
    """

    arm: str
    what: str
    difference: Difference
    relative: bool
    reach: float
    better: int

    def place(self, value: float) -> float:
        """Where a value is on the line, in per cent."""
        return 50.0 + 50.0 * max(-1.0, min(1.0, value / self.reach))

    @property
    def tone(self) -> str:
        """good, bad, or empty while it is not known."""
        found = self.difference.interval
        if found is None or not found.excludes_zero or not self.better:
            return ""
        return "good" if found.estimate * self.better > 0 else "bad"


def verdicts(found: Results) -> list[Verdict]:
    """Of each arm but the control."""
    return [
        Verdict(
            arm=each.arm,
            decision=decision(found, each),
            said=sentence(found, each),
            more=more(found, each),
        )
        for each in found.comparisons
    ]


def measures(found: Results) -> list[tuple[str, list[Cell]]]:
    """What is counted of the arms: by measure one cell for each."""
    arms = found.arms
    sources = sorted({source for arm in arms for source in arm.quality})
    return [
        ("units", [(count(arm.units), "") for arm in arms]),
        ("requests", [(count(arm.requests), "") for arm in arms]),
        *((source, [_quality(arm, source) for arm in arms]) for source in sources),
        ("each", [(usd(arm.dollars_a_request), "") for arm in arms]),
        ("dollars", [(usd(arm.dollars if arm.priced else None), "") for arm in arms]),
        ("baseline", [(usd(arm.baseline if arm.compared else None), "") for arm in arms]),
        ("saved", [(share(arm.saved_share), "") for arm in arms]),
        ("escalated", [_rate(arm.escalated, arm) for arm in arms]),
        ("degraded", [_rate(arm.degraded, arm) for arm in arms]),
        ("failed", [_rate(arm.failed, arm) for arm in arms]),
        ("first_token", [_times(arm.first_token) for arm in arms]),
        ("duration", [_times(arm.duration) for arm in arms]),
        ("cached", [(share(arm.cached_share), "") for arm in arms]),
        ("premium", [(usd(arm.cold_premium), "") for arm in arms]),
    ]


def _quality(arm: ArmReport, source: str) -> Cell:
    mean, units = arm.quality.get(source, (None, 0))
    return share(mean), f"/ {count(units)}" if units else ""


def _rate(number: int, arm: ArmReport) -> Cell:
    return share(number / arm.requests if arm.requests else None), ""


def _times(values: Sequence[float] | None) -> Cell:
    if not values:
        return milliseconds(None), ""
    return milliseconds(values[0]), ", ".join(milliseconds(each) for each in values[1:])


def rows(found: Results) -> list[Row]:
    """Every difference from the control, those of one kind on lines of one length."""
    made: list[tuple[str, str, Difference, bool, int]] = []
    for each in found.comparisons:
        made.append((each.arm, "cost", each.cost, True, -1))
        made += [(each.arm, source, d, False, 1) for source, d in sorted(each.quality.items())]
        made += [
            (each.arm, name, each.rates[name], False, side) for name, side in SHARE_RATES.items()
        ]
    reach = {kind: _reach([d for _, _, d, k, _ in made if k == kind]) for kind in (True, False)}
    return [
        Row(arm=arm, what=what, difference=d, relative=kind, reach=reach[kind], better=better)
        for arm, what, d, kind, better in made
    ]


def _reach(differences: Sequence[Difference]) -> float:
    known = [each.interval for each in differences if each.interval is not None]
    ends = [abs(bound) for each in known for bound in (each.low, each.high)]
    return max([min(max(ends, default=0.0), 1.0), 0.01])
