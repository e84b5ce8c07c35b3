import dataclasses
import types
import typing

import pytest
from sqlalchemy import JSON, Table

from cascade.audit import AttemptRecord, AuditRecord
from serving.store.feedback import Feedback
from serving.store.tables import attempts, feedback, requests

PAIRS = [(AuditRecord, requests), (AttemptRecord, attempts), (Feedback, feedback)]


def fields(record: type) -> dict[str, typing.Any]:
    hints = typing.get_type_hints(record)
    names = [each.name for each in dataclasses.fields(record) if each.name != "attempts"]
    return {name: hints[name] for name in names}


@pytest.mark.parametrize(("record", "table"), PAIRS)
def test_columns_are_the_fields_of_the_record_in_order(record: type, table: Table) -> None:
    assert list(fields(record)) == [column.name for column in table.columns]


@pytest.mark.parametrize(("record", "table"), PAIRS)
def test_a_column_is_nullable_when_its_field_may_be_none(record: type, table: Table) -> None:
    optional = {n: types.NoneType in typing.get_args(hint) for n, hint in fields(record).items()}
    assert optional == {column.name: column.nullable for column in table.columns}


@pytest.mark.parametrize(("record", "table"), PAIRS)
def test_a_column_has_the_type_of_its_field(record: type, table: Table) -> None:
    for name, hint in fields(record).items():
        column = table.columns[name]
        plain = [kind for kind in (typing.get_args(hint) or (hint,)) if kind in {str, int, float}]
        if hint in {bool, bool | None}:
            assert column.type.python_type is bool
        elif typing.get_origin(hint) in {None, types.UnionType} and plain:
            assert column.type.python_type is plain[0], name
        else:
            assert isinstance(column.type, JSON), name
