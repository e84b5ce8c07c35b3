"""The model card: what a model was fitted on and what it is worth, for whoever is to trust it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from classifiers.artifact import Manifest

_BASELINES: Mapping[str, str] = {
    "random": "at random",
    "length": "by length alone",
    "kind": "by a table of the kinds",
    "model": "by this model",
    "oracle": "by an oracle",
}
_PARTS: Mapping[str, str] = {
    "test": "rows that nothing was fitted on",
    "cross_validated": "cross-validation, groups kept together",
}


def card(manifest: Manifest, name: str) -> str:
    """The card in Markdown.

    Args:
        manifest: of the artifact.
        name: of its file.
    """
    return "\n".join(_lines(manifest, name)) + "\n"


def _lines(manifest: Manifest, name: str) -> Iterator[str]:
    origin = manifest.origin
    yield f"# Model card: {name}"
    yield ""
    yield (
        "Says before any call how likely each tier's answer is acceptable. Written by "
        "`cascade train`; with the same data, options and versions, on the same machine, it writes "
        "this card and the arrays again, to the byte. The date of the fit is in the manifest alone."
    )
    yield ""
    yield from _facts(manifest)
    for part, title in _PARTS.items():
        if part in origin.metrics:
            yield from _measured(origin.metrics[part], title)
    yield from _limits(manifest)


def _facts(manifest: Manifest) -> Iterator[str]:
    origin, recipe = manifest.origin, manifest.origin.recipe
    rows = ", ".join(f"{count} {split}" for split, count in origin.rows.items())
    tiers = ", ".join(f"{t} ({m or 'model not stated'})" for t, m in manifest.models.items())
    embedding = manifest.embedding
    facts = {
        "tiers, cheapest first": tiers,
        "head, target": f"{recipe.get('head')}, {manifest.target}",
        "embedding": f"{embedding.model}, {embedding.dimensions} dimensions, "
        f"{recipe.get('components') or 'all'} axes kept"
        if embedding
        else "none",
        "cheap features": str(len(manifest.features)),
        "looked at of a request": _extraction(manifest.extraction),
        "rows": rows,
        "hash of the rows": origin.data,
        "with": ", ".join(f"{package} {number}" for package, number in origin.versions.items()),
        "prior": ", ".join(f"{tier} {value:.3f}" for tier, value in manifest.prior.items()),
    }
    yield from _table(("", ""), list(facts.items()))


def _extraction(found: Mapping[str, Any]) -> str:
    if not found:
        return "the defaults"
    counted = {n: len(v) if isinstance(v, list) else v for n, v in found.items()}
    return ", ".join(f"{name} {number}" for name, number in counted.items())


def _measured(found: Mapping[str, Any], title: str) -> Iterator[str]:
    yield f"## Measured: {title} (n = {found['n']})"
    yield ""
    if "apgr" in found:
        yield (
            "Requests sent up first, by what; APGR is the mean share of the gap between the "
            "cheapest and the best tier that is won back. In brackets 95 % intervals."
        )
        yield ""
        apgr = found["apgr"]
        rows = [(label, _value(apgr[key])) for key, label in _BASELINES.items() if key in apgr]
        yield from _table(("sent up", "APGR"), rows)
        yield (
            f'AUC of "the cheapest is wrong" {_value(found["auc_weak_wrong"])}, of "the cheapest '
            f'is wrong and the best is right" {_value(found["auc_gain"])}.'
        )
        yield ""
    tiers = [
        (
            tier,
            *(_value(each.get(key)) for key in ("n", "right", "auc", "brier", "calibration_error")),
        )
        for tier, each in found["tiers"].items()
    ]
    yield from _table(("tier", "n", "right", "AUC", "Brier", "calibration error"), tiers)
    yield f"Out of the domain: {found['out_of_domain']:.1%} of these rows."
    yield ""
    yield from _kinds(found.get("kinds") or {})


def _kinds(kinds: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if len(kinds) < 2:  # noqa: PLR2004 - one kind is everything
        return
    tiers = list(next(iter(kinds.values()))["right"])
    heads = [f"{tier} {what}" for tier in tiers for what in ("right", "expected")]
    rows = [
        (
            kind,
            str(each["n"]),
            *(_value(each[what][tier]) for tier in tiers for what in ("right", "expected")),
            _value(each["apgr"]),
        )
        for kind, each in kinds.items()
    ]
    yield from _table(("kind", "n", *heads, "APGR"), rows)


def _limits(manifest: Manifest) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield (
        "It knows requests like those it was fitted on and the models named above. In a domain "
        "that it has not seen, a learned router is often no better than chance."
    )
    if manifest.domain:
        yield (
            f"Requests further from its rows than {manifest.domain.quantile:.0%} of those are from "
            "rows of other groups, by embedding and shape together, get the prior instead, and the "
            'flag "out_of_domain".'
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def _value(value: Any) -> str:
    """A number, or one with the ends of its interval."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        middle, low, high = map(_value, value)
        return f"{middle} ({low} to {high})"
    return str(value) if isinstance(value, int) else f"{value:.3f}"
