"""Beliefs where nothing was fitted: the same for each tier before, the judge's word after.

A calibrated score *is* the probability of the judged tier. Of the others a verdict speaks only if
its judge was fitted for that, jointly with the score: what makes the small model doubt an answer is
often what the large one fails at too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cascade.changing import changed
from cascade.types import Beliefs, Verdict

PRIOR = 0.5
"""What is believed of a tier that nothing is known about."""
KAPPA = 0.1
"""How much of an answer's Bernoulli variance a verdict is expected to explain where nothing was
fitted; 0 is a judge that says nothing, 1 one that is always right. It is what the panel that comes
with Cascade explains of the embedded small model's answers (docs/posterior.md)."""

Judged = Sequence[tuple[str, Verdict | None]]
"""Tiers that were tried, with what was said of their answers, in that order."""


def prior(tiers: Iterable[str], flag: str) -> Beliefs:
    """The same for each tier, flagged with why there is no estimate."""
    return Beliefs(mean=dict.fromkeys(tiers, PRIOR), flags=frozenset({flag}))


def update(beliefs: Beliefs, tier: str, verdict: Verdict | None) -> Beliefs:
    """Beliefs after the tier's answer was judged; unchanged when the judge cannot tell."""
    if verdict is None or verdict.score is None:
        return beliefs
    return changed(beliefs, mean={**beliefs.mean, **verdict.others, tier: verdict.score})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfitted:
    """What a policy uses without a fitted model: `update`, and a covariance by a constant.

    A tier that was not tried has variance kappa * mean * (1 - mean), and no verdict of it is
    expected to move another tier. See `Model` for what the covariance means.

    Attributes:
        kappa: in [0, 1].
    """

    kappa: float = KAPPA

    def before(self, beliefs: Beliefs) -> Beliefs:
        """An estimator's beliefs with the covariance filled in."""
        return self._spread(beliefs, ())

    def after(self, beliefs: Beliefs, judged: Judged) -> Beliefs:
        """Beliefs after these verdicts, from those that `before` gave."""
        for tier, verdict in judged:
            beliefs = update(beliefs, tier, verdict)
        return self._spread(beliefs, {tier for tier, _ in judged})

    def _spread(self, beliefs: Beliefs, tried: Collection[str]) -> Beliefs:
        covariance: Mapping[tuple[str, str], float] = {
            (tier, tier): self.kappa * mean * (1.0 - mean)
            for tier, mean in beliefs.mean.items()
            if tier not in tried
        }
        return changed(beliefs, covariance=covariance)
