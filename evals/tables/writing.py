"""Outcome tables as Parquet files of one documented form.

Columns: id, group, split, and where there are any prompt, kind and session (texts); for each tier
`quality.TIER`, and where they are known `cost.TIER`, `judged.TIER`, `judge_cost.TIER` and
`predicted.TIER` (doubles, null where one is not known). Where the answers' texts are kept, they are
`text.TIER`. The file's metadata says the tiers in their order, as `cascade.tiers`, and the form's
number, as `cascade.table`.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from evals.files import write_whole
from evals.tables.columns import MEASURES
from evals.tables.outcome_table import Matrix, OutcomeTable
from evals.tables.reading import pyarrow_missing, read
from evals.tables.tiers import TIERS_NOTE

FORM_NOTE: Final = "cascade.table"
FORM: Final = 1
TEXT: Final = "text."


def write(
    table: OutcomeTable,
    path: Path,
    answers: Mapping[str, Sequence[str | None]] | None = None,
) -> None:
    """Replace the file's content at once.

    Args:
        table: what is written.
        path: where.
        answers: the texts by tier, in the order of the rows; None where there is none.

    Raises:
        TableError: pyarrow is not installed.
        ResultFileError: the file cannot be written; an old one is untouched.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - only this needs it
        from pyarrow.parquet import write_table  # noqa: PLC0415
    except ModuleNotFoundError:
        raise pyarrow_missing(path) from None
    columns = {name: pa.array(_sound(values)) for name, values in _texts(table).items()}
    for name in MEASURES:
        found: Matrix = getattr(table, name)
        if name == "judge_cost" and not found.any():
            continue
        for at, tier in enumerate(table.tiers):
            # A verdict's cost that nobody says is null; a column that is left out would be 0.
            if name in {"quality", "judge_cost"} or not np.isnan(found[:, at]).all():
                columns[f"{name}.{tier}"] = pa.array(found[:, at], mask=np.isnan(found[:, at]))
    columns |= {f"{TEXT}{tier}": pa.array(_sound(texts)) for tier, texts in (answers or {}).items()}
    notes = {TIERS_NOTE: json.dumps(table.tiers), FORM_NOTE: str(FORM)}
    sink = pa.BufferOutputStream()
    write_table(pa.table(columns).replace_schema_metadata(notes), sink, compression="zstd")
    write_whole(path, sink.getvalue().to_pybytes())


def answers_in(path: Path) -> dict[str, list[str | None]]:
    """The answers' texts that a file keeps, by tier, in the order of its rows.

    Raises:
        TableError: it cannot be read.
    """
    return {
        name.removeprefix(TEXT): list(values)
        for name, values in read(path).columns.items()
        if name.startswith(TEXT)
    }


def _sound(texts: Sequence[str | None]) -> list[str | None]:
    """The texts, with a mark for half a surrogate pair, which Parquet has no place for."""
    return [
        text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()
        for text in texts
    ]


def _texts(table: OutcomeTable) -> dict[str, Any]:
    columns = {"id": table.ids, "group": table.groups, "split": table.splits}
    found: dict[str, Any] = {name: values.tolist() for name, values in columns.items()}
    if any(table.prompts):
        found["prompt"] = table.prompts
    for name, values in (("kind", table.kinds), ("session", table.sessions)):
        if (values != "").any():
            found[name] = values.tolist()
    return found
