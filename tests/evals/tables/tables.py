"""Made-up outcome tables for tests of what is computed from them."""

import numpy as np

from evals.tables import OutcomeTable


def table(quality, *, tiers=("small", "large"), **columns):
    """A table of the given qualities; what is not given is as in a table that says nothing more."""
    found = np.asarray(quality, dtype=np.float64)
    count = len(found)

    def matrix(name, empty):
        given = columns.pop(name, None)
        if given is None:
            return np.full(found.shape, empty)
        return np.broadcast_to(np.asarray(given, dtype=np.float64), found.shape).copy()

    def texts(name, empty):
        given = columns.pop(name, None)
        return np.array(empty if given is None else given, dtype=np.str_)

    matrices = {
        "cost": matrix("cost", np.nan),
        "judged": matrix("judged", np.nan),
        "judge_cost": matrix("judge_cost", 0.0),
        "predicted": matrix("predicted", np.nan),
    }
    numbered = [str(at) for at in range(1, count + 1)]
    prompts = columns.pop("prompts", [""] * count)
    made = OutcomeTable(
        tiers=tuple(tiers),
        ids=texts("ids", numbered),
        groups=texts("groups", numbered),
        kinds=texts("kinds", [""] * count),
        sessions=texts("sessions", [""] * count),
        splits=texts("splits", ["test"] * count),
        quality=found,
        lengths=np.array([len(p) if p else np.nan for p in prompts], np.float64),
        prompts=list(prompts),
        source="made-up",
        **matrices,
    )
    assert not columns, f"no such columns: {columns}"
    return made
