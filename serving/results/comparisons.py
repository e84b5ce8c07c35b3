"""What an arm differs by from the control arm, and the sums that this rests on."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from sqlalchemy import Engine

from serving.results import quality, tallies
from serving.results.covariates import adjusted
from serving.results.ratios import NOTHING, Difference, Sums, difference, from_level
from serving.results.sequences import ALPHA
from serving.results.shares import Shares, shares
from serving.results.trial import Trial

FEEDBACK = "feedback"
PREFERENCE = "preference"
JUDGE = "judge:"
"""In front of the name of a judge that no arm acts on."""

INDIFFERENT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Sums by arm, and what they are of.

    Attributes:
        tallies: counts and dollars.
        crossed: units that were seen in two arms, and are in none of the sums.
        ratios: by name, what can be said of every request.
        quality: by source, what is known of some.
        preferred: how often an arm's answer was preferred to one of the control.
        acting: judges by whose word some arm acts, which are none of the sources.
    """

    tallies: Mapping[str, Mapping[str, float]]
    crossed: int
    ratios: Mapping[str, Mapping[str, Sums]]
    quality: Mapping[str, Mapping[str, Sums]]
    preferred: Mapping[str, Sums]
    acting: AbstractSet[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One arm against the control arm.

    Attributes:
        cost: of a request, relative.
        quality: by source, in [-1, 1]; of the preference, how far it is from one half.
        rates: by name, shares of the requests.
    """

    arm: str
    cost: Difference
    quality: Mapping[str, Difference]
    rates: Mapping[str, Difference]

    @property
    def source(self) -> str | None:
        """Where the quality that decides is from; None while none is known well enough.

        A judge's sample stands for all answers, and feedback for those that somebody spoke of, so a
        sample goes first; of several judges that with most units.
        """
        able = {name: each for name, each in self.quality.items() if each.interval is not None}
        judges = [name for name in able if name.startswith(JUDGE)]
        if judges:
            return max(judges, key=lambda name: able[name].units)
        return FEEDBACK if FEEDBACK in able else None


def measure(engine: Engine, trial: Trial) -> Measured:
    """Ask the database for the sums of all arms."""
    with engine.connect() as connection:
        by_arm, crossed = tallies.of_requests(connection, trial)
        ratios = {
            name: {arm: tallies.sums_of(tally, name) for arm, tally in by_arm.items()}
            for name in tallies.RATIOS
        }
        acting = quality.acting_judges(connection, trial)
        judged = quality.of_judges(connection, trial, acting)
        return Measured(
            tallies=by_arm,
            crossed=crossed,
            ratios={**ratios, "cost": adjusted(ratios["cost"], by_arm)},
            quality={
                FEEDBACK: quality.of_feedback(connection, trial),
                **{f"{JUDGE}{name}": arms for name, arms in judged.items()},
            },
            preferred=quality.of_comparisons(connection, trial),
            acting=acting,
        )


def compare(arm: str, measured: Measured, trial: Trial, *, alpha: float = ALPHA) -> Comparison:
    """One arm against the control arm.

    Args:
        arm: its name.
        measured: the sums.
        trial: says which arm is the control.
        alpha: the chance that the truth is ever outside one of the intervals; of each of them.
    """

    def against(by_arm: Mapping[str, Sums], *, bounded: bool = True) -> Difference:
        pair = (by_arm.get(arm, NOTHING), by_arm.get(trial.control, NOTHING))
        return difference(*pair, bounded=bounded, alpha=alpha, as_ratio=not bounded)

    known = {name: against(by_arm) for name, by_arm in measured.quality.items() if by_arm}
    if arm in measured.preferred:
        known[PREFERENCE] = from_level(measured.preferred[arm], INDIFFERENT, alpha=alpha)
    rates = {name: against(sums) for name, sums in measured.ratios.items() if name != "cost"}
    return Comparison(
        arm=arm,
        cost=against(measured.ratios["cost"], bounded=False),
        quality=known,
        rates=rates,
    )


def checked(trial: Trial, measured: Measured) -> Shares | None:
    """Whether the arms got their share of units; None when no weights are known."""
    if not any(trial.weights.values()):
        return None
    counted = {arm: int(tally["units"]) for arm, tally in measured.tallies.items()}
    return shares(trial.weights, counted)
