"""Each tier's probability of an acceptable answer, before any call and after each verdict.

A calibrated score *is* the probability of the judged tier. Of the others a verdict speaks only if
its judge was fitted for that, jointly with the score: what makes the small model doubt an answer is
often what the large one fails at too.
"""

from collections.abc import Iterable
from dataclasses import replace

from cascade.types import Beliefs, Verdict

PRIOR = 0.5
"""What is believed of a tier that nothing is known about."""


def prior(tiers: Iterable[str], flag: str) -> Beliefs:
    """The same for each tier, flagged with why there is no estimate."""
    return Beliefs(mean=dict.fromkeys(tiers, PRIOR), flags=frozenset({flag}))


def update(beliefs: Beliefs, tier: str, verdict: Verdict | None) -> Beliefs:
    """Beliefs after the tier's answer was judged; unchanged when the judge cannot tell."""
    if verdict is None or verdict.score is None:
        return beliefs
    return replace(beliefs, mean={**beliefs.mean, **verdict.others, tier: verdict.score})
