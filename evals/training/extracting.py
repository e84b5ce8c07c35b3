"""What of a request a model is to look at: as the options of training say it, or as a log was read.

Rows of the audit log hold what was looked at when the requests came. Nothing else can be learned
from them, so the artifact must say what that was.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cascade.errors import ConfigError
from classifiers.artifact import read_manifest
from classifiers.text import DEFAULT, Extraction
from evals.training.rows import TrainingError
from serving.config import ConfigFile

LISTS = ("markers", "wrappers", "notices")
"""Fields that hold several texts: each is given by itself."""


def stated(pairs: Sequence[str]) -> Extraction:
    """What texts such as "turns=4" and "markers=note" stand for; an empty value is an empty list.

    Raises:
        TrainingError: one is no such text, names no field or holds what the field cannot.
    """
    given: dict[str, Any] = {}
    for pair in pairs:
        name, is_pair, value = pair.partition("=")
        if not name or not is_pair:
            raise TrainingError(f"--text {pair!r} is not NAME=VALUE, as turns=4 or markers=note")
        if name in LISTS:
            given.setdefault(name, []).extend([value] if value else [])
        elif name in given:
            raise TrainingError(f"--text {name} is given twice")
        else:
            given[name] = int(value) if value.isdecimal() else value
    try:
        return Extraction.of(given, "--text")
    except ConfigError as error:
        raise TrainingError(f"{error.param}: {error.message}") from None


def of_log(file: ConfigFile) -> Extraction:
    """What the rows of a configuration's audit log were read from: as its artifacts say.

    Raises:
        TrainingError: its estimators of type `learned` read different things.
        ConfigError: an artifact cannot be read.
    """
    named: dict[str, list[str]] = defaultdict(list)
    found: Extraction = DEFAULT
    for name, entry in file.config.estimators.items():
        if entry.type == "learned":
            found = _of_artifact(file, name, entry.options)
            named[repr(found)].append(name)
    if len(named) > 1:
        one, other, *_ = named.values()
        raise TrainingError(
            f"{file.path}: the estimators {one[0]} and {other[0]} look at different parts of a "
            "request, so the rows of the log are not alike; keep one of them in the configuration "
            "that is learned from"
        )
    return found


def _of_artifact(file: ConfigFile, name: str, options: Mapping[str, Any]) -> Extraction:
    where = f"estimators.{name}.artifact"
    try:
        manifest = read_manifest(file.path.parent / str(options.get("artifact", "")))
        return Extraction.of(manifest.extraction, "extraction")
    except ConfigError as error:
        raise file.explain(ConfigError(error.message, param=where)) from None
