"""A fitted posterior as a file: JSON to be read by people, checked field by field when it is read.

Nothing in it can run code, and reading it takes the standard library alone.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cascade.errors import ConfigError
from cascade.posterior.heads import Head, Input, Rule, Source
from cascade.posterior.model import Identity, Manifest, Model, Pair, Tried, sets_of

KIND = "posterior_model"


def load(path: Path) -> Model:
    """Read what `cascade train posterior` wrote.

    Raises:
        ConfigError: the file is missing or damaged; says which field is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such artifact; `cascade train posterior` makes one"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from None
    try:
        return parse(content)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}") from None


def parse(content: Any) -> Model:
    """The model of an artifact's content.

    Raises:
        ConfigError: it is none; says which field is wrong.
    """
    if not isinstance(content, Mapping) or content.get("kind") != KIND:
        raise ConfigError(f'"kind" is not "{KIND}"')
    manifest = _manifest(_object(content, "manifest", ""))
    heads: dict[Tried, Mapping[str, Head]] = {}
    kappas: dict[Tried, Mapping[Pair, float]] = {}
    for at, each in enumerate(_list(content, "sets", "")):
        where = f"sets.{at}."
        tried = _tried(_list(each, "tried", where), manifest, where)
        heads[tried] = _heads(_object(each, "heads", where), manifest, f"{where}heads.")
        kappas[tried] = dict(_kappas(_list(each, "kappas", where), manifest, f"{where}kappas."))
    _complete(heads)
    digest = hashlib.blake2b(_decisive(content).encode(), digest_size=8).hexdigest()
    return Model(manifest=manifest, heads=heads, kappas=kappas, digest=digest)


def content_of(model: Model) -> dict[str, Any]:
    """What is to be written of a model: the inverse of `parse`."""
    order = list(model.manifest.models)
    return {
        "kind": KIND,
        "manifest": asdict(model.manifest),
        "sets": [
            {
                "tried": sorted(tried, key=order.index),
                "heads": {
                    tier: {**asdict(head), "inputs": [asdict(each) for each in head.inputs]}
                    for tier, head in heads.items()
                },
                "kappas": [
                    {"judged": judged, "moved": moved, "kappa": kappa}
                    for (judged, moved), kappa in model.kappas.get(tried, {}).items()
                ],
            }
            for tried, heads in model.heads.items()
        ],
    }


def _manifest(found: Mapping[str, Any]) -> Manifest:
    where = "manifest."
    models = _object(found, "models", where)
    rates = _object(found, "rates", where)
    judges = _object(found, "judges", where)
    if not models:
        raise ConfigError(f"{where}models: there must be at least one tier")
    if rates.keys() != models.keys():
        raise ConfigError(f"{where}rates: names other tiers than {where}models")
    return Manifest(
        models={tier: _text(models, tier, f"{where}models.") for tier in models},
        judges={
            _known(tier, models, f"{where}judges"): _identity(judges, tier, f"{where}judges.")
            for tier in judges
        },
        estimator=_identity(found, "estimator", where),
        rates={t: _number(rates, t, f"{where}rates.", low=0.0, high=1.0) for t in models},
        data=_text(found, "data", where),
        rows=_object(found, "rows", where),
        versions=_object(found, "versions", where),
        fitted_at=_text(found, "fitted_at", where),
        metrics=_object(found, "metrics", where),
    )


def _identity(found: Mapping[str, Any], key: str, where: str) -> Identity:
    here = f"{where}{key}."
    each = _object(found, key, where)
    return Identity(name=_text(each, "name", here), digest=_text(each, "digest", here))


def _heads(found: Mapping[str, Any], manifest: Manifest, where: str) -> Mapping[str, Head]:
    if found.keys() != manifest.models.keys():
        raise ConfigError(f"{where[:-1]}: must have one of each tier in manifest.models")
    return {t: _head(_object(found, t, where), manifest, f"{where}{t}.") for t in manifest.models}


def _head(found: Mapping[str, Any], manifest: Manifest, where: str) -> Head:
    inputs = enumerate(_list(found, "inputs", where))
    return Head(
        rule=Rule(_one_of(found, "rule", where, list(Rule))),
        intercept=_number(found, "intercept", where),
        inputs=tuple(_input(each, manifest, f"{where}inputs.{at}.") for at, each in inputs),
    )


def _input(found: Any, manifest: Manifest, where: str) -> Input:
    return Input(
        source=Source(_one_of(found, "source", where, list(Source))),
        tier=_one_of(found, "tier", where, list(manifest.models)),
        name=_text(found, "name", where),
        weight=_number(found, "weight", where),
        absent=_number(found, "absent", where),
    )


def _kappas(found: Sequence[Any], manifest: Manifest, where: str) -> Iterator[tuple[Pair, float]]:
    tiers = list(manifest.models)
    for at, each in enumerate(found):
        here = f"{where}{at}."
        pair = (_one_of(each, "judged", here, tiers), _one_of(each, "moved", here, tiers))
        low = 0.0 if pair[0] == pair[1] else -1.0
        yield pair, _number(each, "kappa", here, low=low, high=1.0)


def _tried(found: Sequence[Any], manifest: Manifest, where: str) -> Tried:
    return frozenset(_known(each, manifest.models, f"{where}tried") for each in found)


def _known(tier: Any, models: Mapping[str, Any], where: str) -> str:
    if not isinstance(tier, str) or tier not in models:
        raise ConfigError(f"{where}: {tier!r} is not in manifest.models")
    return tier


def _complete(heads: Mapping[Tried, Any]) -> None:
    """A request may meet any set of the tiers that were judged."""
    judged: Tried = frozenset().union(*heads)
    for tried in sets_of(sorted(judged)):
        if tried not in heads:
            raise ConfigError(f"sets: there is none for [{', '.join(sorted(tried))}]")


def _decisive(content: Mapping[str, Any]) -> str:
    """All that can change what is believed: what was measured cannot."""
    kept = {**content["manifest"], "metrics": {}, "fitted_at": "", "versions": {}}
    return json.dumps([kept, content["sets"]], sort_keys=True)


def _field(found: Any, key: str, where: str) -> Any:
    if not isinstance(found, Mapping):
        raise ConfigError(f"{where[:-1]}: must be an object")
    if key not in found:
        raise ConfigError(f"{where}{key}: is missing")
    return found[key]


def _object(found: Any, key: str, where: str) -> Mapping[str, Any]:
    value = _field(found, key, where)
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}{key}: must be an object")
    return value


def _list(found: Any, key: str, where: str) -> Sequence[Any]:
    value = _field(found, key, where)
    if not isinstance(value, list):
        raise ConfigError(f"{where}{key}: must be a list")
    return value


def _text(found: Any, key: str, where: str) -> str:
    value = _field(found, key, where)
    if not isinstance(value, str):
        raise ConfigError(f"{where}{key}: must be a text, not {value!r}")
    return value


def _one_of(found: Any, key: str, where: str, known: Sequence[str]) -> str:
    value = _text(found, key, where)
    if value not in known:
        raise ConfigError(f"{where}{key}: must be one of {', '.join(known)}, not {value!r}")
    return value


def _number(
    found: Any, key: str, where: str, *, low: float = -math.inf, high: float = math.inf
) -> float:
    value = _field(found, key, where)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{where}{key}: must be a finite number, not {value!r}")
    if not low <= value <= high:
        raise ConfigError(f"{where}{key}: must lie in [{low:g}, {high:g}], not {value!r}")
    return float(value)
