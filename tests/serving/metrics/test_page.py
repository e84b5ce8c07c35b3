"""docs/metrics.md has every metric that is told, with its labels, and no other."""

import re
from pathlib import Path

import pytest

from serving.store.sink import AuditState
from serving.store.spool import Backlog
from tests.builders import attempt, escalated, result
from tests.metrics import Read, metrics

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| `(cascade_\w+)(?:\{([\w,]+)\})?` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE
)
ROWS = {row[0]: row[1:] for row in ROW.findall(PAGE)}


def declared():
    """The labels of every metric, by the name that a query uses."""
    made = metrics()
    backlog = Backlog(files=0, bytes=0, oldest_ns=None)
    state = AuditState(status="ok", reason="", backlog=backlog, queued=0, dropped=0, refused=0)
    found = Read(made.told([], state)).families.values()
    return {f"{f.name}_total" if f.type == "counter" else f.name: f for f in found}


def test_the_page_has_what_is_told_and_nothing_else():
    assert declared().keys() == ROWS.keys()


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_metric_has_its_unit_what_it_is_and_what_to_do(name):
    _, unit, what, when = ROWS[name]
    assert all(text.strip() for text in (unit, what, when))
    if name.endswith("_ms"):
        assert unit == "milliseconds"
    if "_tokens" in name:
        assert unit == "tokens"


def test_the_labels_are_those_of_the_page():
    made = metrics(kv_bytes_per_token={"small": 1})
    for each in (escalated(), result(attempts=(attempt(cost=None, queued_seconds=0.0),))):
        made.note(each)
    labelled = {}
    for name, labels in Read(made.told([], None)).samples:
        base = re.sub("_(bucket|sum|count)$", "", name)
        keys = {key for key, _ in labels} - {"le"}
        if base in ROWS:
            labelled[base] = labelled.get(base, set()) | keys
    for name, keys in labelled.items():
        told = ROWS[name][0]
        assert keys == set(told.split(",") if told else ()), name
    assert len(labelled) > 12


def test_the_bounds_are_those_of_the_code():
    from serving.doctor.losses import SLACK_TOKENS
    from serving.metrics.families import BUCKETS_MS
    from serving.metrics.prefixes import LATELY_SECONDS, MAX_PREFIXES, MAX_TENANTS

    assert f"set of the {MAX_PREFIXES:,} used last" in PAGE
    assert f"the {MAX_TENANTS:,} tenants heard of last" in PAGE
    assert f"at least {SLACK_TOKENS} tokens less" in PAGE
    assert (LATELY_SECONDS, BUCKETS_MS[0], BUCKETS_MS[-1]) == (3600, 1, 30 * 60 * 1000)
