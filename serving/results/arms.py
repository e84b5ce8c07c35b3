"""One arm as it was counted."""

from collections.abc import Mapping
from dataclasses import dataclass

from serving.results.calls import Prompts
from serving.results.times import Times

QUANTILES = (0.5, 0.95, 0.99)
Milliseconds = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmReport:
    """Counts and sums of one arm, its units' requests only. Dollars are where they are known.

    Attributes:
        priced: requests whose cost is known.
        compared: requests of which both the cost and that of the dearest tier alone are known.
        baseline: what the dearest tier alone would have cost for those.
        saved: that, less what they did cost.
        quality: by source, the mean and how many units it rests on.
        duration: milliseconds from arrival to the end, that `QUANTILES` of the requests take; this
            and what follows of the latest requests.
        first_token: milliseconds until the answer could begin to be read, likewise.
        cached_share: of the prompt tokens of calls that reported it, those read from a cache.
        cold_premium: dollars a request more than with every prompt warm, where that is known.
    """

    arm: str
    units: int
    requests: int
    escalated: int
    degraded: int
    failed: int
    dollars: float
    priced: int
    compared: int
    baseline: float
    saved: float
    quality: Mapping[str, tuple[float, int]]
    duration: Milliseconds | None
    first_token: Milliseconds | None
    cached_share: float | None
    cold_premium: float | None

    @property
    def dollars_a_request(self) -> float | None:
        """In the mean; None when no cost is known."""
        return self.dollars / self.priced if self.priced else None

    @property
    def saved_share(self) -> float | None:
        """Of what the dearest tier alone would have cost."""
        return self.saved / self.baseline if self.baseline else None


def report(
    arm: str,
    tally: Mapping[str, float],
    quality: Mapping[str, tuple[float, int]],
    *,
    duration: Times | None,
    first_token: Times | None,
    prompts: Prompts | None,
) -> ArmReport:
    """Put one arm's numbers together."""
    counts = ("units", "requests", "escalated", "degraded", "failed", "priced", "compared")
    return ArmReport(
        arm=arm,
        **{name: int(tally[name]) for name in counts},
        dollars=tally["dollars"],
        baseline=tally["baseline"],
        saved=tally["baseline"] - tally["compared_dollars"],
        quality=quality,
        duration=_quantiles(duration),
        first_token=_quantiles(first_token),
        cached_share=prompts.cached_share if prompts else None,
        cold_premium=prompts.cold_premium if prompts else None,
    )


def _quantiles(times: Times | None) -> Milliseconds | None:
    if times is None:
        return None
    found = [times.quantile(share) for share in QUANTILES]
    return tuple(value for value in found if value is not None) or None
