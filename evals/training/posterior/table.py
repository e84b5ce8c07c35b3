"""Tables of estimates, verdicts and grades of any origin: JSON Lines, each fault by its line.

    {"prompt": "p-1", "group": "sums", "split": "test", "right": {"small": false, "large": true},
     "estimate": {"small": 0.6, "large": 0.8},
     "verdicts": {"small": {"score": 0.2, "others": {"large": 0.7}, "features": {"margin": 1.5}}}}

Estimates and scores must come from models that were not fitted on the row. "group", "split" and
"prompt" may be missing; so may "others", "features" and "final" of a verdict, and verdicts of tiers
whose answer the judge cannot tell of.
"""

import gzip
import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cascade.types import Verdict
from evals.training.posterior.rows import JudgedPrompt
from evals.training.rows import TrainingError

SPLITS = ("fit", "calibrate", "test")
KNOWN = ("prompt", "group", "kind", "split", "right", "estimate", "verdicts")


def read_judged(path: Path, judge: str) -> tuple[list[JudgedPrompt], list[str]]:
    """The rows of a table, and its tiers in the order of the first row's `right`.

    Args:
        path: ends in .jsonl or .jsonl.gz.
        judge: the name of whoever gave the verdicts.

    Raises:
        TrainingError: it cannot be read, or a row is not what it must be; says which line and
            field.
    """
    if ".jsonl" not in path.suffixes[-2:]:
        raise TrainingError(f"{path}: a table of verdicts ends in .jsonl or .jsonl.gz")
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = data.decode("utf-8-sig").split("\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise TrainingError(f"{path}: cannot be read: {error}") from None
    rows: list[JudgedPrompt] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            tiers = list(rows[0].right) if rows else None
            rows.append(_row(f"{path}:{number}", line, tiers, judge))
    if not rows:
        raise TrainingError(f"{path}: holds no rows")
    return rows, list(rows[0].right)


def _row(place: str, line: str, tiers: list[str] | None, judge: str) -> JudgedPrompt:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise TrainingError(f"{place}: not JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise TrainingError(f"{place}: a line must be a JSON object")
    if unknown := [key for key in found if key not in KNOWN]:
        raise TrainingError(f"{place}: {unknown[0]}: no such field; there are {', '.join(KNOWN)}")
    right = {t: _right(place, t, value) for t, value in _object(place, found, "right").items()}
    tiers = tiers or list(right)
    if len(tiers) < 2 or right.keys() != set(tiers):  # noqa: PLR2004 - one leaves nothing to choose
        raise TrainingError(f"{place}: right: must name two tiers or more, the same on every line")
    given = _object(place, found, "estimate")
    if lacking := [tier for tier in tiers if tier not in given]:
        raise TrainingError(f"{place}: estimate.{lacking[0]}: is missing")
    verdicts = found.get("verdicts") or {}
    if not isinstance(verdicts, dict) or verdicts.keys() - set(tiers):
        raise TrainingError(f"{place}: verdicts: must be an object of verdicts by tier")
    said = {tier: _verdict(place, tier, verdict, judge) for tier, verdict in verdicts.items()}
    prompt = _text(place, found, "prompt") or place
    return JudgedPrompt(
        prompt=prompt,
        group=_text(place, found, "group") or prompt,
        split=_split(place, found),
        right={tier: right[tier] for tier in tiers},
        estimate={tier: _chance(place, f"estimate.{tier}", given[tier]) for tier in tiers},
        verdicts={tier: verdict for tier, verdict in said.items() if verdict is not None},
    )


def _verdict(place: str, tier: str, found: Any, judge: str) -> Verdict | None:
    """What it says; None where it cannot tell."""
    where = f"verdicts.{tier}"
    if found is None:
        return None
    if not isinstance(found, dict):
        raise TrainingError(f"{place}: {where}: must be an object")
    if unknown := found.keys() - {"score", "others", "features", "final"}:
        raise TrainingError(f"{place}: {where}.{min(unknown)}: no such field")
    if found.get("score") is None:
        return None
    others = _object(place, found, "others", f"{where}.", optional=True)
    features = _object(place, found, "features", f"{where}.", optional=True)
    final = found.get("final", False)
    if not isinstance(final, bool):
        raise TrainingError(f"{place}: {where}.final: must be true or false, not {final!r}")
    return Verdict(
        judge=judge,
        score=_chance(place, f"{where}.score", found["score"]),
        others={t: _chance(place, f"{where}.others.{t}", p) for t, p in others.items()},
        features={n: _number(place, f"{where}.features.{n}", x) for n, x in features.items()},
        final=final,
    )


def _object(
    place: str, found: Mapping[str, Any], key: str, where: str = "", *, optional: bool = False
) -> Mapping[str, Any]:
    value = found.get(key)
    if value is None and optional:
        return {}
    if not isinstance(value, dict):
        raise TrainingError(f"{place}: {where}{key}: must be an object")
    return value


def _text(place: str, found: Mapping[str, Any], key: str) -> str:
    value = found.get(key) or ""
    if not isinstance(value, str):
        raise TrainingError(f"{place}: {key}: must be a text, not {value!r}")
    return value


def _split(place: str, found: Mapping[str, Any]) -> str:
    value = found.get("split") or "fit"
    if value not in SPLITS:
        raise TrainingError(f"{place}: split: must be one of {', '.join(SPLITS)}, not {value!r}")
    return str(value)


def _right(place: str, tier: str, value: Any) -> bool:
    if value not in (True, False):
        raise TrainingError(f"{place}: right.{tier}: must be true or false, not {value!r}")
    return bool(value)


def _chance(place: str, where: str, value: Any) -> float:
    number = _number(place, where, value)
    if not 0.0 <= number <= 1.0:
        raise TrainingError(f"{place}: {where}: must lie in [0, 1], not {value!r}")
    return number


def _number(place: str, where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TrainingError(f"{place}: {where}: must be a finite number, not {value!r}")
    return float(value)
