"""What a run was, for whoever reads its page later: models, prices, prompts, machine, spending."""

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from cascade.errors import CascadeError
from evals.files import write_whole
from serving.models.launch import usable_cores

NAME: Final = "run.json"


class RunError(CascadeError):
    """A run's folder cannot be used; says why."""

    code = "invalid_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run.

    Attributes:
        name: of the run.
        began: date and time, ISO 8601.
        seconds: that it took, in all goes that asked anything and came to their end.
        models: by tier, from the cheapest.
        prices: by tier, as the configuration states them.
        judge: whose scores the table holds.
        estimator: whose predictions.
        prompts: where they are from.
        compared: policies, as `cascade eval compare` takes them, to be held against each model.
        calls: that brought what the table holds, in whichever go.
        dollars: that these cost at the stated prices.
        machine: what it ran on.
        cascade: version of this package.
    """

    name: str
    began: str
    seconds: float
    models: Mapping[str, str]
    prices: Mapping[str, str]
    judge: str
    estimator: str
    prompts: str
    compared: Sequence[str]
    calls: int
    dollars: Decimal
    machine: str
    cascade: str


def machine() -> str:
    """This machine, in words."""
    return (
        f"{platform.machine()}, {usable_cores()} cores, {sys.platform}, "
        f"Python {platform.python_version()}"
    )


def package() -> str:
    """The version of this package."""
    return version("cascade-router")


def continued(record: RunRecord, folder: Path, *, asked: bool) -> RunRecord:
    """The record of a run that goes on where the folder's left off, with its time as well.

    Args:
        record: of this go.
        folder: the run's.
        asked: whether anything was asked in this go.
    """
    if not (folder / NAME).exists():
        return record
    before = read(folder)
    if before.models != record.models:
        return record
    return replace(
        record,
        began=before.began,
        seconds=round(before.seconds + (record.seconds if asked else 0.0), 1),
    )


def write(record: RunRecord, folder: Path) -> None:
    """Put the record into a run's folder.

    Raises:
        ResultFileError: it cannot be written.
    """
    content = {**asdict(record), "dollars": str(record.dollars)}
    write_whole(folder / NAME, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read(folder: Path) -> RunRecord:
    """The record of a run's folder.

    Raises:
        RunError: there is none, or it is no such record.
    """
    path = folder / NAME
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        return RunRecord(**{**found, "dollars": Decimal(found["dollars"])})
    except (OSError, ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise RunError(f"{path}: is no record of a run: {error}") from None
