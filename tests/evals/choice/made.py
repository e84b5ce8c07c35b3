"""Made-up outcomes of two tiers whose judge and predictions are right as probabilities."""

import json
from dataclasses import replace

from benchmarks.tuned import outcomes

SMALL, LARGE = TIERS = ("small", "large")


def made(count, seed=0, *, alike=1, **overrides):
    """A table: a fifth of the groups to fit on, two fifths to choose on, two to test on."""
    return replace(outcomes(count, seed, alike=alike), **overrides)


def lines(table):
    """The table as the JSON Lines that a command reads."""
    rows = []
    for at, name in enumerate(table.ids):
        row = {"id": str(name), "prompt": table.prompts[at], "split": str(table.splits[at])}
        row["group"] = str(table.groups[at])
        for place, tier in enumerate(table.tiers):
            row[tier] = table.quality[at, place]
            row[f"cost.{tier}"] = table.cost[at, place]
            row[f"predicted.{tier}"] = table.predicted[at, place]
        row["judged.small"] = table.judged[at, 0]
        rows.append(json.dumps(row))
    return "\n".join(rows)
