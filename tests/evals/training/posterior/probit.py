"""Made-up prompts whose true posterior is known: a probit model with correlated difficulties.

Tier t is right where x_t + z_t > 0. The estimator sees x_t and gives P(x_t + z > 0); the judge of
tier t sees z_t + noise and gives P(z_t > 0) of that, since it does not know x. The z of two tiers
are correlated, so a verdict of one also says something of the other.
"""

import itertools
from statistics import NormalDist

import numpy as np

from cascade.types import Verdict
from evals.training.posterior.rows import JudgedPrompt

NORMAL = NormalDist()


class World:
    """Two tiers, drawn once.

    Args:
        count: prompts.
        rho: correlation of the two tiers' z.
        noise: standard deviation of what the judge sees beside z; None: it sees nothing of z.
        seed: of the draws.
    """

    tiers = ("small", "large")

    def __init__(self, count, *, rho=0.5, noise=0.8, seed=0):
        rng = np.random.default_rng(seed)
        self.rho, self.noise = rho, noise
        self.x = rng.normal([0.0, 0.6], 0.7, size=(count, 2))
        self.z = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=count)
        spread = rng.normal(size=(count, 2))
        self.seen = spread if noise is None else self.z + noise * spread

    @property
    def told(self):
        """Share of z's variance that the judge sees."""
        return 0.0 if self.noise is None else 1.0 / (1.0 + self.noise**2)

    def rows(self, judged=("small", "large"), **fields):
        """As rows to fit on; each prompt a group of its own."""
        right = self.x + self.z > 0
        score = cdf(self.seen * self.told / np.sqrt(max(1e-9, 1 - self.told)))
        return [
            JudgedPrompt(
                prompt=f"p{at}",
                group=f"g{at}",
                right=dict(zip(self.tiers, right[at].tolist(), strict=True)),
                estimate=dict(zip(self.tiers, cdf(self.x[at]).tolist(), strict=True)),
                verdicts={
                    tier: Verdict(judge="j", score=float(score[at, column]))
                    for column, tier in enumerate(self.tiers)
                    if tier in judged
                },
                **{"split": "fit", **fields},
            )
            for at in range(len(self.x))
        ]

    def means(self, tried):
        """The true P(right) by prompt and tier, once these tiers were judged."""
        columns = [self.tiers.index(tier) for tier in tried]
        covariance = np.array([[1.0, self.rho], [self.rho, 1.0]])
        expected, variance = np.zeros_like(self.z), np.ones(2)
        if columns and self.noise is not None:
            inside = covariance[np.ix_(columns, columns)] + self.noise**2 * np.eye(len(columns))
            gain = covariance[:, columns] @ np.linalg.inv(inside)
            expected = self.seen[:, columns] @ gain.T
            variance = 1.0 - np.diag(gain @ covariance[columns, :])
        return cdf((self.x + expected) / np.sqrt(np.maximum(1e-9, variance)))

    def kappa(self, tried, judged, moved):
        """Covariance of what the verdict does to the two means, per root of v v."""
        before, after = self.means(tried), self.means([*tried, judged])
        i, j = self.tiers.index(judged), self.tiers.index(moved)
        covariance = np.mean((after - before)[:, i] * (after - before)[:, j])
        scale = np.sqrt(before * (1 - before))
        return float(covariance / np.mean(scale[:, i] * scale[:, j]))

    def kappas(self):
        """All there are, by (tried, judged, moved)."""
        sets = ([], ["small"], ["large"])
        return {
            (tuple(tried), judged, moved): self.kappa(tried, judged, moved)
            for tried, judged, moved in itertools.product(sets, self.tiers, self.tiers)
            if judged not in tried
        }


def cdf(values):
    """Of the standard normal distribution."""
    return np.vectorize(NORMAL.cdf)(values)
