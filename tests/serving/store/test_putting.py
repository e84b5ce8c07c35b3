from typing import Any

import pytest
from sqlalchemy import Engine, select

from cascade.audit import record
from serving.store.putting import put_new
from serving.store.rows import decode, encode
from serving.store.tables import attempts, requests
from tests.builders import escalated

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def rows(*names: str) -> tuple[list[Any], list[Any]]:
    entries = [decode(encode(record(escalated(name)))) for name in names]
    asked = [row for entry in entries for row in entry.requests]
    return asked, [row for entry in entries for row in entry.attempts]


def test_what_is_put_is_what_sqlalchemy_would_have_put(engine: Engine) -> None:
    names = [f"r{number:02d}" for number in range(40)]  # several statements, the last not full
    asked, made = rows(*names)
    with engine.begin() as connection:
        put_new(connection, requests, asked[:-1])
        put_new(connection, attempts, made[:-3])
        connection.execute(requests.insert(), asked[-1:])
        connection.execute(attempts.insert(), made[-3:])
    with engine.connect() as connection:
        stored = connection.execute(select(requests).order_by(requests.c.id)).mappings().all()
        calls = connection.execute(
            select(attempts).order_by(attempts.c.request_id, attempts.c.index)
        ).mappings()
        assert [dict(row) for row in stored] == asked
        assert [dict(row) for row in calls] == made


def test_what_is_there_stays_as_it_is(engine: Engine) -> None:
    asked, _ = rows("r1", "r2")
    with engine.begin() as connection:
        put_new(connection, requests, asked[:1])
        put_new(connection, requests, [{**asked[0], "tenant": "another"}, asked[1]])
    with engine.connect() as connection:
        found = connection.execute(select(requests.c.id, requests.c.tenant).order_by("id"))
        assert [tuple(row) for row in found] == [("r1", "default"), ("r2", "default")]
