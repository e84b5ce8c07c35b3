"""All that is known of an experiment: each arm as it was counted, and what it differs by."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine

from serving.results import calls, times
from serving.results.arms import ArmReport, report
from serving.results.comparisons import Comparison, Measured, checked, compare, measure
from serving.results.shares import Shares
from serving.results.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """An experiment over some time.

    Attributes:
        arms: the control first, then by name.
        comparisons: of the other arms with the control.
        crossed: units that were seen in two arms, and are left out of everything.
        shares: whether the arms got their share of units; None when no weights are known.
        acting: judges by whose word some arm acts, so that their scores say nothing here.
    """

    trial: Trial
    arms: Sequence[ArmReport]
    comparisons: Sequence[Comparison]
    crossed: int
    shares: Shares | None
    acting: Sequence[str]


def results(engine: Engine, trial: Trial, known: Measured | None = None) -> Results:
    """Everything there is to say of an experiment.

    Args:
        engine: of the audit database.
        trial: the experiment, and the time that counts.
        known: its sums, where they are known already.
    """
    measured = known or measure(engine, trial)
    with engine.connect() as connection:
        durations = times.of_requests(connection, trial)
        first_tokens = times.of_first_tokens(connection, trial)
        prompts = calls.of_arms(connection, trial)
    arms = sorted(measured.tallies, key=lambda arm: (arm != trial.control, arm))
    return Results(
        trial=trial,
        arms=[
            report(
                arm,
                measured.tallies[arm],
                dict(_means(arm, measured)),
                duration=durations.get(arm),
                first_token=first_tokens.get(arm),
                prompts=prompts.get(arm),
            )
            for arm in arms
        ],
        comparisons=[compare(arm, measured, trial) for arm in arms if arm != trial.control],
        crossed=measured.crossed,
        shares=checked(trial, measured),
        acting=sorted(measured.acting),
    )


def _means(arm: str, measured: Measured) -> Iterable[tuple[str, tuple[float, int]]]:
    for source, by_arm in measured.quality.items():
        if arm in by_arm and (mean := by_arm[arm].ratio) is not None:
            yield source, (mean, by_arm[arm].units)
