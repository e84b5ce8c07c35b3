import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

from cascade.audit import record
from cascade.errors import RequestError
from serving.store import export as parquet
from serving.store.database import WRITES
from serving.store.export import export
from serving.store.feedback import Feedback
from serving.store.queries import show
from serving.store.ranges import Range
from serving.store.rows import decode, encode, insert
from serving.store.tables import attempts, requests
from tests.builders import escalated


@pytest.fixture
def log(engine: Engine) -> Engine:
    """Nine requests, three at a time at the same moment, and a word on each third."""
    given = [
        replace(record(escalated(f"r{n}")), created_at=1_790_000_000.25 + n // 3) for n in range(9)
    ]
    said = [
        Feedback(
            request_id=f"r{n}",
            tenant=tenant,
            source="",
            given_at=1_790_000_100.5,
            score=0.25,
            label=None,
            correction="43",
            comment=None,
        )
        for n in range(0, 9, 3)
        for tenant in ("default", "another")
    ]
    with engine.execution_options(**WRITES).begin() as connection:
        insert(connection, [decode(encode(each)) for each in (*given, *said)])
    return engine


@pytest.mark.parametrize("page", [2, 3, 100])
def test_a_folder_gets_a_file_a_table(log: Engine, tmp_path: Path, page: int) -> None:
    told = []
    made = export(log, tmp_path / "out", Range(), page=page, written=told.append)
    assert [path.name for path in made.files] == [
        *("requests.parquet", "attempts.parquet", "feedback.parquet")
    ]
    assert made.requests == sum(told) == 9
    asked, calls, said = (pq.read_table(path).to_pylist() for path in made.files)
    assert [row["id"] for row in asked] == [f"r{n}" for n in range(9)]
    assert [(row["request_id"], row["index"]) for row in calls] == [
        (f"r{n}", i) for n in range(9) for i in range(3)
    ]
    assert [(row["request_id"], row["tenant"]) for row in said] == [
        (f"r{n}", "default") for n in (0, 3, 6)
    ]


def test_values_are_those_of_the_log(log: Engine, tmp_path: Path) -> None:
    export(log, tmp_path, Range())
    asked = pq.read_table(tmp_path / "requests.parquet").to_pylist()[0]
    row = show(log, "r0")
    assert list(asked) == [column.name for column in requests.columns]
    assert asked["created_at"] == datetime.fromtimestamp(1_790_000_000.25, UTC)
    assert asked["cost_pico"] == row.cost_pico
    assert json.loads(asked["beliefs"]) == row.beliefs
    assert asked["segments"] is None
    call = pq.read_table(tmp_path / "attempts.parquet").to_pylist()[0]
    assert list(call) == [column.name for column in attempts.columns]
    assert call["score"] == row.attempts[0].score
    assert json.loads(call["features"]) == row.attempts[0].features


def test_a_file_holds_attempts_and_feedback_within_each_request(
    log: Engine, tmp_path: Path
) -> None:
    made = export(log, tmp_path / "log.parquet", Range(), page=4)
    rows = pq.read_table(made.files[0]).to_pylist()
    assert [row["id"] for row in rows] == [f"r{n}" for n in range(9)]
    assert [len(row["attempts"]) for row in rows] == [3] * 9
    assert [len(row["feedback"]) for row in rows] == [1, 0, 0] * 3
    assert rows[0]["feedback"][0]["correction"] == "43"


def test_only_requests_of_the_range_are_written(log: Engine, tmp_path: Path) -> None:
    span = Range(since=1_790_000_001.25, until=1_790_000_002.0)
    assert parquet.count(log, span) == 3
    made = export(log, tmp_path / "log.parquet", span)
    assert [row["id"] for row in pq.read_table(made.files[0]).to_pylist()] == ["r3", "r4", "r5"]


def test_an_empty_range_makes_files_without_rows(log: Engine, tmp_path: Path) -> None:
    made = export(log, tmp_path, Range(since=1e12))
    assert [pq.read_table(path).num_rows for path in made.files] == [0, 0, 0]


def test_what_is_there_already_is_not_replaced(log: Engine, tmp_path: Path) -> None:
    (tmp_path / "attempts.parquet").write_text("mine")
    with pytest.raises(RequestError, match=r"attempts\.parquet is there already"):
        export(log, tmp_path, Range())
    assert [path.name for path in tmp_path.iterdir() if "parquet" in path.name] == [
        "attempts.parquet"
    ]


def test_an_export_that_breaks_off_leaves_nothing(log: Engine, tmp_path: Path) -> None:
    def breaks_off(_number: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(log, tmp_path / "out", Range(), page=2, written=breaks_off)
    assert list((tmp_path / "out").iterdir()) == []
