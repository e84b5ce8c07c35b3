"""Made-up traffic for tests of what is replayed: any number of tiers, judges and predictions."""

import numpy as np

from tests.evals.tables.tables import table

TIERS = ("small", "middle", "large")


def world(rows=300, tiers=2, seed=0, *, judged=(0,), graded=False, unsure=0.0, grid=None):
    """Prompts of any difficulty; dearer tiers fail less, and judges and predictions see some of it.

    Args:
        judged: tiers whose answers are judged.
        graded: qualities are shares rather than right and wrong.
        unsure: share of the verdicts in which the judge cannot tell.
        grid: scores and predictions are rounded to this part of 1, so that there are ties.
    """
    rng = np.random.default_rng(seed)
    hard = rng.normal(size=rows)
    skill = np.linspace(-0.3, 1.0, tiers)
    chance = 1.0 / (1.0 + np.exp(2.0 * (hard[:, None] - skill)))
    quality = (rng.random((rows, tiers)) < chance).astype(float)
    said = np.clip(0.25 + 0.5 * quality + rng.normal(scale=0.2, size=quality.shape), 0.0, 1.0)
    predicted = np.clip(chance + rng.normal(scale=0.1, size=chance.shape), 0.0, 1.0)
    if graded:
        quality = np.clip(quality * 0.6 + rng.random(quality.shape) * 0.4, 0.0, 1.0)
    if grid:
        said, predicted = np.round(said * grid) / grid, np.round(predicted * grid) / grid
    mute = np.array([tier not in judged for tier in range(tiers)])
    said[:, mute] = np.nan
    said[rng.random(said.shape) < unsure] = np.nan
    prompts = ["x" * (1 + int(length)) for length in np.exp(rng.normal(4.0 + 0.3 * hard))]
    names = [TIERS[0], *TIERS[1:-1][: tiers - 2], TIERS[-1]] if tiers <= len(TIERS) else None
    return table(
        quality,
        tiers=names or [f"t{at}" for at in range(tiers)],
        cost=0.001 * 4.0 ** np.arange(tiers) * rng.uniform(0.5, 1.5, size=(rows, tiers)),
        judged=said,
        judge_cost=np.where(np.isnan(said), 0.0, 0.0002),
        predicted=predicted,
        prompts=prompts,
        kinds=[f"k{int(at)}" for at in np.digitize(hard, [-1.0, 0.0, 1.0])],
        groups=[f"g{at // 2}" for at in range(rows)],
        splits=[("fit", "choose", "test")[at // 2 % 3] for at in range(rows)],
    )
