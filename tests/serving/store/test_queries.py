from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import Engine

from cascade.audit import record
from cascade.errors import RequestError
from cascade.result import CascadeResult
from serving.store.feedback import Feedback
from serving.store.queries import Filters, feedback_on, show, tail
from serving.store.rows import decode, encode, insert
from tests.builders import escalated, request, result


def store(engine: Engine, results: Sequence[CascadeResult]) -> None:
    with engine.begin() as connection:
        insert(connection, [decode(encode(record(each))) for each in results])


def test_tail_gives_the_last_requests_with_their_attempts_latest_at_the_end(engine: Engine) -> None:
    given = [escalated(f"r{number}", started_at=100.0 + number) for number in range(5)]
    store(engine, [given[3], given[0], given[4], given[2], given[1]])
    assert tail(engine, 3) == [record(each) for each in given[2:]]


def test_tail_of_an_empty_log_is_empty(engine: Engine) -> None:
    assert tail(engine, 3) == []


def test_tail_after_a_time_leaves_out_what_began_then_or_before(engine: Engine) -> None:
    store(engine, [result(f"r{number}", started_at=100.0 + number) for number in range(5)])
    assert [each.id for each in tail(engine, 10, after=102.0)] == ["r3", "r4"]
    assert [each.id for each in tail(engine, 1, after=102.0)] == ["r4"]


def test_pages_go_back_without_a_gap_or_a_repetition(engine: Engine) -> None:
    # Three at a time began at the same moment.
    store(engine, [result(f"r{number}", started_at=100.0 + number // 3) for number in range(9)])
    seen, before = [], None
    while page := tail(engine, 2, before=before):
        seen = [each.id for each in page] + seen
        before = (page[0].created_at, page[0].id)
    assert seen == [f"r{number}" for number in range(9)]


def test_tail_can_be_narrowed_to_ids_that_begin_alike(engine: Engine) -> None:
    store(engine, [result("abc"), result("abd"), result("b"), result("ab%")])
    found = tail(engine, 10, filters=Filters(id_prefix="ab", tier="small"))
    assert {each.id for each in found} == {"abc", "abd", "ab%"}
    assert [each.id for each in tail(engine, 10, filters=Filters(id_prefix="ab%"))] == ["ab%"]
    assert len(tail(engine, 10, filters=Filters(id_prefix=""))) == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "degraded"),
        ("requested_model", "cascade"),
        ("policy", "always-large"),
        ("experiment", "other"),
        ("arm", "control"),
        ("tier", "large"),
        ("tenant", "acme"),
        ("session", "s-9"),
    ],
)
def test_tail_can_be_narrowed(engine: Engine, name: str, value: str) -> None:
    odd = {
        "status": result("odd", degraded=True),
        "tier": escalated("odd"),
        "tenant": result(request=request(id="odd", tenant="acme")),
        "session": result(request=request(id="odd", session="s-9")),
    }
    store(engine, [result("r0"), odd.get(name) or result("odd", **{name: value})])
    assert [each.id for each in tail(engine, 10, filters=Filters(**{name: value}))] == ["odd"]


def test_show_finds_a_request_by_the_beginning_of_its_id(engine: Engine) -> None:
    store(engine, [escalated("abc-1"), result("abd-2"), result("ABC-1"), result("ab")])
    assert show(engine, "abc") == record_of(engine, "abc-1")
    assert show(engine, "abd-2").id == "abd-2"
    assert len(show(engine, "abc").attempts) == 3


def record_of(engine: Engine, name: str) -> object:
    return next(each for each in tail(engine, 100) if each.id == name)


def test_an_exact_id_wins_over_longer_ones(engine: Engine) -> None:
    store(engine, [result("ab"), result("abc"), result("abd")])
    assert show(engine, "ab").id == "ab"


def test_a_beginning_that_several_share_names_them(engine: Engine) -> None:
    store(engine, [result("abc"), result("abd"), result("b")])
    with pytest.raises(RequestError, match="several requests begin with 'ab': abc, abd"):
        show(engine, "ab")


@pytest.mark.parametrize("prefix", ["zzz", "a%", "a_c", ""])
def test_an_id_that_is_not_there_is_said_to_be_missing(engine: Engine, prefix: str) -> None:
    store(engine, [result("abc")])
    with pytest.raises(RequestError, match="no request in the audit log"):
        show(engine, prefix)


def test_feedback_is_found_with_its_request_when_it_is_the_tenants_own(engine: Engine) -> None:
    given = [result("r1"), result("r2"), result("r3")]
    store(engine, given)
    first = Feedback(
        request_id="r1",
        tenant="default",
        source="b",
        given_at=1.0,
        score=1.0,
        label=None,
        correction=None,
        comment=None,
    )
    said = [
        first,
        replace(first, source="a", given_at=2.0),
        replace(first, request_id="r2", tenant="other"),
        replace(first, request_id="r3"),
        replace(first, request_id="r4"),
    ]
    with engine.begin() as connection:
        insert(connection, [decode(encode(each)) for each in said])
    found = feedback_on(engine, [record(each) for each in given[:2]])
    assert dict(found) == {"r1": said[:2]}
    assert feedback_on(engine, []) == {}
