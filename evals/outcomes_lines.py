"""Outcomes as lines of JSON: written, and read again with every mistake named by its place."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from cascade.types import Usage
from evals.outcomes import FORMAT, ROWS, Key, Manifest, ModelIdentity, Outcomes, OutcomesError, Row


def read(path: Path) -> Outcomes:
    """The outcomes of a file, plain or .gz.

    Raises:
        OutcomesError: it cannot be read, or a line is no row; says which line and field.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = content.decode().split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise OutcomesError(f"{path}: cannot be read: {error}") from None
    if not lines[0]:
        raise OutcomesError(f"{path}: holds no outcomes: the first line must be the manifest")
    manifest = parse_manifest(f"{path}:1", lines[0])
    rows: dict[Key, Row] = {}
    for number, line in enumerate(lines[1:], 2):
        if line:
            row = parse_row(f"{path}:{number}", line)
            if rows.setdefault(row.key, row) is not row:
                raise OutcomesError(
                    f"{path}:{number}: {' '.join(map(str, row.key))} is there twice"
                )
    return Outcomes(manifest=manifest, rows=rows)


def parse_manifest(place: str, line: str) -> Manifest:
    """The manifest of a file's first line.

    Raises:
        OutcomesError: it is none, or one of another format.
    """
    found = _object(place, line)
    if found.pop("kind", None) != "manifest":
        raise OutcomesError(f"{place}: kind: the first line must be the manifest")
    if found.get("format") != FORMAT:
        raise OutcomesError(
            f"{place}: format: {found.get('format')!r} is not {FORMAT}; collect the outcomes again"
        )
    _require(place, Manifest, found)
    try:
        tiers = {name: ModelIdentity(**identity) for name, identity in found["tiers"].items()}
    except (AttributeError, TypeError):
        raise OutcomesError(f"{place}: tiers: must be an object of models by tier") from None
    return Manifest(**{**found, "tiers": tiers})


def parse_row(place: str, line: str) -> Row:
    """The row of one line.

    Raises:
        OutcomesError: it is none; names the field.
    """
    found = _object(place, line)
    kind = found.pop("kind", None)
    if kind not in ROWS:
        raise OutcomesError(f"{place}: kind: must be one of {', '.join(ROWS)}, not {kind!r}")
    _require(place, ROWS[kind], found)
    for name, must in _faults(found):
        raise OutcomesError(f"{place}: {name}: must be {must}, not {found[name]!r}")
    if "usage" in found:
        found["usage"] = _usage(place, found["usage"])
    return ROWS[kind](**found)


def line_of(row: Row | Manifest) -> str:
    """The row or manifest as a line, its end included."""
    kind = "manifest" if isinstance(row, Manifest) else row.KIND
    content = asdict(row)
    if "usage" in content:
        content["usage"] = {name: n for name, n in content["usage"].items() if n is not None}
    return json.dumps({"kind": kind, **content}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _object(place: str, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise OutcomesError(f"{place}:{error.colno}: not JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise OutcomesError(f"{place}: a line must be a JSON object")
    return found


def _require(place: str, kind: type, found: Mapping[str, Any]) -> None:
    """Refuse a line that lacks a field of its kind, or has one that the kind does not know."""
    known = {one.name: one for one in fields(kind)}
    if unknown := found.keys() - known.keys():
        raise OutcomesError(f"{place}: {min(unknown)}: no such field")
    optional = {"features", "reason", "error"}
    if missing := known.keys() - found.keys() - optional:
        raise OutcomesError(f"{place}: {min(missing)}: missing")


def _faults(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields of a row that are not of their type, and what each must be."""
    musts: dict[str, tuple[str, type | tuple[type, ...]]] = {
        **dict.fromkeys(("prompt", "tier", "judge", "by", "asked", "text"), ("a text", str)),
        **dict.fromkeys(("seconds",), ("a number", (int, float))),
        **dict.fromkeys(
            ("score", "first_token_seconds"), ("a number or null", (int, float, type(None)))
        ),
        **dict.fromkeys(("usage", "params", "features"), ("an object", dict)),
        "index": ("a whole number", int),
        "right": ("true or false", bool),
        "logprobs": ("a list or null", (list, type(None))),
    }
    for name, (must, kinds) in musts.items():
        if name in found and not isinstance(found[name], kinds):
            yield name, must
    if found.get("score") is not None and not 0 <= found["score"] <= 1:
        yield "score", "in [0, 1]"


def _usage(place: str, found: Mapping[str, Any]) -> Usage:
    try:
        return Usage(**found)
    except TypeError:
        raise OutcomesError(f"{place}: usage: has a field that is no count of tokens") from None
