import random
import threading
from dataclasses import replace

import pytest
from sqlalchemy import Engine, delete, insert, select

from cascade.audit import record
from cascade.types import Kind, Step
from serving.store.adding import catch_up, raw_sums
from serving.store.database import WRITES, engine_for
from serving.store.feedback import Feedback
from serving.store.late import Late
from serving.store.ranges import Range, read_exactly, waiting
from serving.store.rows import Entry, decode, encode
from serving.store.rows import insert as insert_entries
from serving.store.sums import DAY, HOUR, TABLES, counters_of, keys_of
from serving.store.tables import requests, uncounted
from tests.builders import attempt, cost, escalated, request, result, verdict
from tests.databases import Database
from tests.serving.store.conftest import SinkFactory
from tests.serving.store.waiting import eventually

START = 1_790_000_000.0


def traffic(number: int, seed: int = 1) -> list[Entry]:
    """Requests, feedback that comes before or after, twice or for nobody, and late calls."""
    draw = random.Random(seed)  # noqa: S311 - the same ones each time
    lines = []
    for n in range(number):
        name = f"r{n:05d}"
        asked = request(id=name, tenant=draw.choice(["a", "b"]), session=f"s{n % 5}", model="auto")
        step = Step(tier="small", judge="logprob")
        sure = attempt(step=step, verdict=verdict(draw.random()), threshold=0.7)
        made = draw.choice(
            [
                result(request=asked, attempts=(sure,), baseline=cost("0.001")),
                escalated(request=asked),
                result(request=asked, cancelled=True, completion=None),
            ]
        )
        at = START + draw.random() * 4 * DAY
        lines.append(replace(record(made), created_at=at, duration_ms=draw.lognormvariate(6, 1)))
        lines += [heard(draw, name, asked.tenant) for _ in range(draw.choice([0, 0, 1, 3]))]
    draw.shuffle(lines)
    entries = [decode(encode(each)) for each in lines]
    shadow = attempt(7, kind=Kind.SHADOW, tier="large", propensity=0.5)
    late = [Late(request_id=f"r{n:05d}", attempts=(shadow,), at=1.0) for n in range(0, number, 7)]
    return entries + [decode(encode(each)) for each in late]


def heard(draw: random.Random, name: str, tenant: str) -> Feedback:
    return Feedback(
        request_id=draw.choice([name, name, "nobody's"]),
        tenant=draw.choice([tenant, tenant, tenant, "c"]),
        source=draw.choice(["", "ci"]),
        given_at=draw.random(),
        score=draw.choice([None, 0.0, 0.25, 1.0]),
        label="so-so",
        correction=None,
        comment=None,
    )


def store(engine: Engine, entries: list[Entry], size: int = 1) -> None:
    for first in range(0, len(entries), size):
        with engine.execution_options(**WRITES).begin() as connection:
            insert_entries(connection, entries[first : first + size])


def stored_sums(engine: Engine) -> dict[str, list[tuple[object, ...]]]:
    with engine.connect() as connection:
        return {
            table.name: sorted(
                tuple(row.values())
                for row in connection.execute(select(table)).mappings()
                if any(row[name] for name in counters_of(table))
            )
            for table in TABLES
        }


def sums_of_rows(engine: Engine) -> dict[str, list[tuple[object, ...]]]:
    """What the tables must hold, from the rows as they are."""
    with engine.connect() as connection:
        raw = raw_sums(connection, 0.0, 1e12)
    return {table.name: sorted(tuple(row.values()) for row in raw.rows(table)) for table in TABLES}


@pytest.mark.parametrize("size", [1, 13, 1000])
def test_sums_are_those_of_the_rows_in_whatever_order_these_came(engine: Engine, size: int) -> None:
    store(engine, traffic(60), size)
    assert stored_sums(engine) == sums_of_rows(engine)
    assert stored_sums(engine)["judge_sums"]


def test_what_comes_twice_is_added_once(engine: Engine) -> None:
    entries = traffic(30)
    store(engine, [*entries, *entries], 1000)
    store(engine, entries, 7)
    assert stored_sums(engine) == sums_of_rows(engine)
    with engine.connect() as connection:
        totals, _ = read_exactly(connection, Range())
        assert sum(each.of["requests"] for each in totals[TABLES[0]]) == 30


def test_a_transaction_that_is_rolled_back_adds_nothing(engine: Engine) -> None:
    entries = traffic(20)
    with engine.begin() as connection:
        insert_entries(connection, entries)
        connection.rollback()
    assert all(not rows for rows in stored_sums(engine).values())
    store(engine, entries, 5)
    assert stored_sums(engine) == sums_of_rows(engine)


def test_writers_that_work_at_once_miss_nothing_of_each_other(
    engine: Engine, database: Database
) -> None:
    patient = engine_for(database.url.replace("?timeout=0.5", ""))  # SQLite's turns are not fair
    late = [each for each in traffic(80) if each.late_since is not None]
    entries = [each for each in traffic(80) if each.late_since is None]
    asked = [each for each in entries if each.requests]
    words = [each for each in entries if each.feedback]
    threads = [
        threading.Thread(target=store, args=(patient, part, 3)) for part in (asked, words, asked)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store(patient, late)
    patient.dispose()
    assert stored_sums(engine) == sums_of_rows(engine)


def test_rows_of_an_older_version_are_caught_up_with(engine: Engine) -> None:
    entries = traffic(50)
    store(engine, entries, 100)
    right = stored_sums(engine)
    with engine.begin() as connection:
        for table in TABLES:
            connection.execute(delete(table))
        connection.execute(insert(uncounted).from_select(["request_id"], select(requests.c.id)))
    with engine.connect() as connection:
        assert waiting(connection) == 50
    assert catch_up(engine, most=20) == 20
    # What is said of one that waits is counted when its turn comes, and of the others at once.
    store(engine, [decode(encode(heard_again(f"r{n:05d}"))) for n in range(50)])
    while catch_up(engine, most=20):
        pass
    assert stored_sums(engine) == sums_of_rows(engine)
    assert stored_sums(engine)["call_sums"] == right["call_sums"]
    with engine.connect() as connection:
        assert waiting(connection) == 0


def heard_again(name: str) -> Feedback:
    word = heard(random.Random(3), name, "a")  # noqa: S311
    return replace(word, request_id=name, tenant="a", given_at=9.0, score=0.75)


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (None, None),
        (START + 1000, None),
        (START + 1000, START + 1500),
        (START + 5000, START + 3 * DAY + 777),
        (START + HOUR / 2, START + 2 * DAY),
        (None, START + DAY / 3),
        (1_789_999_200, 1_789_999_200 + HOUR),
    ],
)
def test_a_range_holds_what_began_in_it_and_nothing_else(
    engine: Engine, since: float | None, until: float | None
) -> None:
    store(engine, traffic(60), 1000)
    span = Range.of(since, until)
    with engine.connect() as connection:
        found, times = read_exactly(connection, span)
        raw = raw_sums(connection, max(span.since, 0.0), min(span.until, 1e12))
    for table, sums in found.items():
        by_key: dict[tuple[object, ...], list[int]] = {}
        for key, numbers in raw.of[table].items():
            there = by_key.setdefault(key[1:], [0] * len(numbers))
            by_key[key[1:]] = [a + b for a, b in zip(there, numbers, strict=True)]
        seen: dict[tuple[object, ...], list[int]] = {}
        for each in sums:
            key = tuple(each.key[name] for name in keys_of(table))
            numbers = [each.of[name] for name in counters_of(table)]
            there = seen.setdefault(key, [0] * len(numbers))
            seen[key] = [a + b for a, b in zip(there, numbers, strict=True)]
        kept = {key: numbers for key, numbers in seen.items() if any(numbers)}
        assert kept == {key: numbers for key, numbers in by_key.items() if any(numbers)}
    number = sum(each.of["requests"] for each in found[TABLES[0]])
    assert times["duration"].total() == number


def test_a_service_catches_up_with_an_older_log_by_itself(
    engine: Engine, open_sink: SinkFactory
) -> None:
    store(engine, traffic(20), 100)
    right = stored_sums(engine)
    with engine.begin() as connection:
        for table in TABLES:
            connection.execute(delete(table))
        connection.execute(insert(uncounted).from_select(["request_id"], select(requests.c.id)))
    open_sink()
    eventually(lambda: stored_sums(engine) == right)
