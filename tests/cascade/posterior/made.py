"""A fitted posterior made by hand, as the content of its file."""

FLAT = {"rule": "prior", "intercept": 0.0, "inputs": []}


def looked(source, tier, weight, name="", absent=0.0):
    return {"source": source, "tier": tier, "name": name, "weight": weight, "absent": absent}


def logistic(intercept, *inputs):
    return {"rule": "logistic", "intercept": intercept, "inputs": list(inputs)}


def one_set(tried, heads, kappas):
    return {
        "tried": tried,
        "heads": heads,
        "kappas": [
            {"judged": judged, "moved": moved, "kappa": kappa}
            for (judged, moved), kappa in kappas.items()
        ],
    }


def content():
    """Small is judged; its verdict also moves large. Nothing is known of verdicts on large."""
    before = {"small": logistic(0.5), "large": FLAT}
    after = {
        "small": {"rule": "verdict", "intercept": 0.0, "inputs": []},
        "large": logistic(
            0.25,
            looked("prior", "large", 0.5),
            looked("score", "small", 1.0),
            looked("feature", "small", 2.0, "margin", absent=0.125),
        ),
    }
    moves = {("small", "small"): 0.25, ("small", "large"): -0.1}
    return {
        "kind": "posterior_model",
        "manifest": {
            "models": {"small": "tiny-1", "large": ""},
            "judges": {"small": {"name": "sound", "digest": "ab"}},
            "estimator": {"name": "looks", "digest": "cd"},
            "rates": {"small": 0.4, "large": 0.8},
            "data": "ef",
            "rows": {"fit": 100},
            "versions": {},
            "fitted_at": "2031-01-01T00:00:00+00:00",
            "metrics": {},
        },
        "sets": [one_set([], before, moves), one_set(["small"], after, {})],
    }
