"""A cascade beside its two models alone and beside the random mix of them that costs the same.

The mix is the honest rival: whoever can pay for the large model on some prompts can pick these with
a coin. Prices are recomputed here, so that one run answers for several price ratios.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from cascade.errors import CascadeError
from cascade.pricing import PriceCard, Rates
from cascade.types import Usage
from evals.collect import Outcome
from evals.metrics import Interval, Point, bootstrap, mean, mix_quality, mix_share, wilson

EVERYTHING = "all"

LARGE_RATES = Rates(input=Decimal("0.20"), cache_read=Decimal("0.02"), output=Decimal("0.40"))
"""Dollars per million tokens. An example, like the prices of the default configuration."""


class ComparisonError(CascadeError):
    """The outcomes at hand cannot be compared."""

    code = "not_comparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One prompt under the three policies.

    Attributes:
        small: usage of the small model's answer; the ladder's first call is the same one.
        large: usage of the large model's answer; the same that the ladder escalates to.
        escalated: whether the ladder's answer came from the large model.
    """

    prompt_id: str
    kind: str
    small_right: bool
    large_right: bool
    ladder_right: bool
    escalated: bool
    small: Usage
    large: Usage


class Priced(NamedTuple):
    """A trial's answers as 0 or 1 and its dollars, ready to be resampled."""

    small: Point
    large: Point
    ladder: Point


class Finding(StrEnum):
    """What an interval of a difference says."""

    BETTER = "better"
    WORSE = "worse"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One policy on one kind: right answers with their interval, dollars per answer."""

    accuracy: float
    interval: Interval
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The policies on one kind of prompts at one price ratio.

    Attributes:
        escalated: share of prompts that the ladder took to the large model.
        in_vain: how many of those the large model answers wrong.
        needless: how many of those the small model had answered right.
        mix_share: share of prompts that the mix of equal cost sends to the large model.
        mix_accuracy: its expected share of right answers.
        difference: ladder's accuracy minus the mix's.
        interval: of the difference, by resampling prompts; the mix is refitted each time.
    """

    kind: str
    total: int
    small: Standing
    large: Standing
    ladder: Standing
    escalated: float
    in_vain: int
    needless: int
    mix_share: float
    mix_accuracy: float
    difference: float
    interval: Interval

    @property
    def finding(self) -> Finding:
        """Better or worse only if the whole interval is on that side of zero."""
        if self.interval.low > 0:
            return Finding.BETTER
        return Finding.WORSE if self.interval.high < 0 else Finding.OPEN


def pair(
    small: Sequence[Outcome], large: Sequence[Outcome], ladder: Sequence[Outcome]
) -> tuple[list[Trial], dict[str, str]]:
    """Trials of the prompts that all three have answered, and why the others were left out.

    A stand-in's answer is not the policy's, so a degraded one counts as no answer.

    Raises:
        ComparisonError: no prompt has three answers.
    """
    trials, left_out = [], {}
    for row in zip(small, large, ladder, strict=True):
        faults = [f"{one.model}: {fault}" for one in row if (fault := _fault(one))]
        if faults:
            left_out[row[0].prompt.id] = "; ".join(faults)
        else:
            trials.append(_trial(*row))
    if not trials:
        raise ComparisonError(
            f"no prompt was answered by all three: {next(iter(left_out.values()))}"
        )
    return trials, left_out


def compare(
    trials: Sequence[Trial], *, ratio: Decimal, large_rates: Rates = LARGE_RATES, seed: int = 0
) -> list[Comparison]:
    """One comparison over all trials and one a kind, in order of appearance.

    Args:
        trials: at least one.
        ratio: the small model's price over the large one's, the same for every bucket; below 1.
        large_rates: dollars per million tokens of the large model.
        seed: of the intervals.
    """
    cards = (PriceCard(rates=scaled(large_rates, ratio)), PriceCard(rates=large_rates))
    groups: dict[str, list[Trial]] = {EVERYTHING: list(trials)}
    for trial in trials:
        groups.setdefault(trial.kind, []).append(trial)
    return [_comparison(kind, group, cards, seed) for kind, group in groups.items()]


def scaled(rates: Rates, ratio: Decimal) -> Rates:
    """All rates times the ratio; unknown stays unknown."""

    def times(rate: Decimal | None) -> Decimal | None:
        return None if rate is None else rate * ratio

    writes: Mapping[str, Decimal] = {ttl: rate * ratio for ttl, rate in rates.cache_write.items()}
    return Rates(
        input=times(rates.input),
        cache_read=times(rates.cache_read),
        cache_write=writes,
        output=times(rates.output),
    )


def uncached_dollars(card: PriceCard, usage: Usage) -> float:
    """What the call costs when no prompt token is read from a cache.

    What was warm in a run depends on the order of the runs, which is not the policies' doing.

    Raises:
        ComparisonError: the usage was not reported, or the card lacks a rate.
    """
    output = None if usage.output is None else usage.output + (usage.reasoning or 0)
    cost = card.price(Usage(input=usage.prompt, output=output))
    if cost is None:
        raise ComparisonError("an answer cannot be priced: its usage or a rate is missing")
    return float(cost.total)


def _fault(outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error
    if outcome.degraded:
        return f"{outcome.tier} stood in"
    return "" if outcome.usage.prompt is not None else "usage was not reported"


def _trial(small: Outcome, large: Outcome, ladder: Outcome) -> Trial:
    return Trial(
        prompt_id=small.prompt.id,
        kind=small.prompt.kind,
        small_right=small.right,
        large_right=large.right,
        ladder_right=ladder.right,
        escalated=ladder.tier == large.tier,
        small=small.usage,
        large=large.usage,
    )


def _comparison(
    kind: str, trials: Sequence[Trial], cards: tuple[PriceCard, PriceCard], seed: int
) -> Comparison:
    rows = [_priced(trial, cards) for trial in trials]
    small, large, ladder = _means(rows)
    return Comparison(
        kind=kind,
        total=len(rows),
        small=_standing([row.small for row in rows]),
        large=_standing([row.large for row in rows]),
        ladder=_standing([row.ladder for row in rows]),
        escalated=mean([trial.escalated for trial in trials]),
        in_vain=sum(trial.escalated and not trial.large_right for trial in trials),
        needless=sum(trial.escalated and trial.small_right for trial in trials),
        mix_share=mix_share(small, large, ladder.cost),
        mix_accuracy=mix_quality(small, large, ladder.cost),
        difference=_difference(rows),
        interval=bootstrap(rows, _difference, seed=seed),
    )


def _priced(trial: Trial, cards: tuple[PriceCard, PriceCard]) -> Priced:
    small, large = (
        uncached_dollars(cards[0], trial.small),
        uncached_dollars(cards[1], trial.large),
    )
    return Priced(
        small=Point(small, trial.small_right),
        large=Point(large, trial.large_right),
        ladder=Point(small + large * trial.escalated, trial.ladder_right),
    )


def _means(rows: Sequence[Priced]) -> list[Point]:
    return [
        Point(mean([point.cost for point in points]), mean([point.quality for point in points]))
        for points in zip(*rows, strict=True)
    ]


def _difference(rows: Sequence[Priced]) -> float:
    small, large, ladder = _means(rows)
    return ladder.quality - mix_quality(small, large, ladder.cost)


def _standing(points: Sequence[Point]) -> Standing:
    right = sum(bool(point.quality) for point in points)
    return Standing(
        accuracy=right / len(points),
        interval=wilson(right, len(points)),
        cost=mean([point.cost for point in points]),
    )
