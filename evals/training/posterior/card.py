"""What a fitted posterior was fitted on and is worth, as tables: on the screen, and as its card."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cascade.posterior import Identity, Model
from evals.panel_report import Printed, as_markdown

PARTS: Mapping[str, str] = {
    "test": "test rows, which nothing was fitted or chosen on",
    "cross_validated": "fit rows, each told by heads that had not seen its group",
}
NOBODY = "nobody"


def card(model: Model, name: str) -> str:
    """The card in Markdown.

    Args:
        model: with its metrics.
        name: of its file.
    """
    parts: list[Printed | str] = []
    for part in (*_about(model), *report(model)):
        if isinstance(part, Printed) and part.title:
            parts.append(f"{part.title[0].upper()}{part.title[1:]}:")
        parts.append(part)
    return f"# Model card: {name}\n\n{as_markdown(parts)}\n"


def report(model: Model) -> list[Printed | str]:
    """All that was measured."""
    metrics = model.manifest.metrics
    parts: list[Printed | str] = []
    for part, title in PARTS.items():
        if found := metrics.get(part):
            parts.append(f"{found['n']} {title}; {found['groups']} groups.")
            parts += [
                _chosen(found, metrics["chosen"]),
                _measure(found, "log_loss", "log loss"),
                _measure(found, "brier", "Brier score"),
                _measure(found, "auc", "area under the ROC curve"),
                _gains(found),
                _kappas(found),
            ]
    return parts


def _about(model: Model) -> Iterator[Printed | str]:
    manifest = model.manifest
    yield (
        "Says how likely each tier's answer is acceptable once the answers of some tiers were "
        "judged, and how much a further verdict would move that. Written by `cascade train "
        "posterior`; what the numbers mean is in docs/posterior.md."
    )
    tiers = ", ".join(f"{t} ({m or 'model not stated'})" for t, m in manifest.models.items())
    facts = {
        "tiers, cheapest first": tiers,
        "judges": ", ".join(f"{t}: {_named(judge)}" for t, judge in manifest.judges.items()),
        "estimator": _named(manifest.estimator),
        "rows": ", ".join(f"{count} {split}" for split, count in manifest.rows.items()),
        "right on the fit rows": ", ".join(f"{t} {p:.3f}" for t, p in manifest.rates.items()),
        "hash of the fit rows": manifest.data,
        "fitted": manifest.fitted_at,
        "with": ", ".join(f"{package} {number}" for package, number in manifest.versions.items()),
    }
    yield Printed("", ("", ""), list(facts.items()))
    yield (
        'In the tables "prior" is the estimate as it was given, "verdict" the estimate with every '
        'verdict taken at its word, "model" this posterior. `chosen` is what the posterior does '
        "for that tier: the simplest that no other beat on groups it was not fitted on. In "
        "brackets are 95 % intervals, groups drawn together."
    )


def _named(who: Identity) -> str:
    return f"{who.name or NOBODY} {who.digest}".strip()


def _chosen(found: Mapping[str, Any], chosen: Sequence[Mapping[str, Any]]) -> Printed:
    names = {tuple(each["tried"]): each["heads"] for each in chosen}
    rows = [
        (
            _tried(each["tried"]),
            tier,
            str(each["n"]),
            str(each["groups"]),
            f"{of_tier['right']:.3f}",
            names[tuple(each["tried"])][tier],
        )
        for each, tier, of_tier in _lines(found)
    ]
    head = ("judged", "tier", "n", "groups", "right", "chosen")
    return Printed("what is believed of each tier", head, rows)


def _measure(found: Mapping[str, Any], key: str, title: str) -> Printed:
    with_ends = any("interval" in of_tier[key] for *_, of_tier in _lines(found))
    rows = [
        (
            _tried(each["tried"]),
            tier,
            *_three(of_tier[key]),
            *([_ends(of_tier[key]["interval"])] if with_ends else []),
        )
        for each, tier, of_tier in _lines(found)
    ]
    return Printed(title, ("judged", "tier", *_WAYS, *(["95 %"] if with_ends else [])), rows)


def _gains(found: Mapping[str, Any]) -> Printed:
    rows = [
        (
            _tried(each["tried"]),
            tier,
            *(_value(of_tier["gain_over"][way], sign="+") for way in ("prior", "verdict")),
        )
        for each, tier, of_tier in _lines(found)
    ]
    head = ("judged", "tier", "over prior", "over verdict")
    return Printed("log loss that the model saves", head, rows)


def _kappas(found: Mapping[str, Any]) -> Printed:
    rows = [
        (_tried(each["tried"]), each["judged"], each["moved"], _value(each["kappa"], sign="+"))
        for each in found["kappas"]
    ]
    return Printed("how much a verdict moves", ("judged", "next", "whose mean", "kappa"), rows)


_WAYS = ("prior", "verdict", "model")


def _lines(found: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    for each in found["sets"]:
        for tier, of_tier in each.get("tiers", {}).items():
            yield each, tier, of_tier


def _tried(tiers: Sequence[str]) -> str:
    return " and ".join(tiers) or NOBODY


def _three(values: Mapping[str, Any]) -> Iterator[str]:
    for way in _WAYS:
        yield "" if values[way] is None else f"{values[way]:.3f}"


def _value(values: Sequence[float | None], sign: str = "") -> str:
    middle, low, high = ("" if value is None else f"{value:{sign}.3f}" for value in values)
    return f"{middle} ({low} to {high})"


def _ends(values: Sequence[float | None]) -> str:
    low, high = ("" if value is None else f"{value:.3f}" for value in values)
    return f"{low} to {high}"
