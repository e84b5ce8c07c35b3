"""Puts new rows into SQLite, many with one statement.

The driver lets other threads in at every statement, and where they are busy it waits for
milliseconds until it may go on: with a statement for each row, most of the writing is that.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table

from serving.store.sums import Row

_AT_ONCE: Final = 16
"""Rows; some builds of SQLite take no more than 999 values in a statement."""


def put_new(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows into a table of an SQLite database; what is there stays as it is."""
    dialect = connection.dialect
    columns = [
        (str(column.name), column.type.dialect_impl(dialect).bind_processor(dialect))
        for column in table.columns
    ]
    quoted = ", ".join(dialect.identifier_preparer.quote(name) for name, _ in columns)
    one = f"({', '.join('?' * len(columns))})"
    for some in _batches(rows):
        values: list[Any] = [
            row[name] if bound is None else bound(row[name])
            for row in some
            for name, bound in columns
        ]
        many = ", ".join([one] * len(some))
        connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({quoted}) VALUES {many} ON CONFLICT DO NOTHING",  # noqa: S608
            tuple(values),
        )


def _batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]
