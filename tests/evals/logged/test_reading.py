"""On both databases: requests come in order, each once, with their calls and labels."""

from dataclasses import replace

import pytest

from cascade.audit import record
from evals.logged.reading import judges_of_draws, logged, output_tokens
from serving.store.database import engine_for
from serving.store.feedback import Feedback
from serving.store.rows import decode, encode, insert
from tests.builders import escalated, request, result
from tests.databases import database, postgres, template
from tests.evals.logged.logs import START, truth, wired, write

__all__ = ["database", "postgres", "template"]


@pytest.fixture
def engine(database):
    made = engine_for(database.url)
    yield made
    made.dispose()


def store(engine, *items):
    with engine.begin() as connection:
        insert(connection, [decode(encode(item)) for item in items])


def said(name, score=None, label=None, *, tenant="default", source="", given_at=1.0, **fields):
    return Feedback(
        **fields,
        request_id=name,
        tenant=tenant,
        source=source,
        given_at=given_at,
        score=score,
        label=label,
        correction=None,
        comment=None,
    )


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_requests_come_in_the_order_of_time_each_once(engine, batch):
    at = {"a": 5.0, "b": 2.0, "c": 2.0, "d": 9.0, "e": 2.0, "f": 2.0}
    store(engine, *(record(result(name, started_at=when)) for name, when in at.items()))
    assert [each.record.id for each in logged(engine, batch=batch)] == [
        "b",
        "c",
        "e",
        "f",
        "a",
        "d",
    ]
    assert [each.record.id for each in logged(engine, 5.0, batch=batch)] == ["a", "d"]


def test_a_request_has_its_calls_and_what_was_said_of_it(engine):
    store(engine, record(escalated("a")), record(result("b")))
    store(engine, said("a", 0.5), said("a", label="Good", source="x"), said("b", 1.0, tenant="z"))
    first, second = sorted(logged(engine), key=lambda each: each.record.id)
    assert [call.index for call in first.record.attempts] == [0, 1, 2]
    assert (first.label, second.label) == (0.75, None)


def test_a_word_that_comes_weeks_later_counts_and_of_one_source_the_last_one_does(engine):
    store(engine, record(result("a", started_at=100.0)))
    assert [each.label for each in logged(engine)] == [None]
    store(engine, said("a", 0.0, given_at=3e6))
    assert [each.label for each in logged(engine)] == [0.0]
    store(engine, said("a", 1.0, given_at=4e6), said("a", 0.25, given_at=2e6))
    assert [each.label for each in logged(engine)] == [1.0]


def test_comparisons_of_answers_to_one_prompt_tell_of_both_and_are_no_labels(engine):
    other = request(id="d", messages=[{"role": "user", "content": "something else"}])
    store(engine, *(record(result(name)) for name in "abc"), record(result(request=other)))
    store(
        engine,
        said("b", compared_to="a", preferred="this"),
        said("c", 0.5, compared_to="a", preferred="other"),
        said("a", compared_to="d", preferred="this"),
        said("b", compared_to="c", preferred="this", tenant="z"),
    )
    found = {each.record.id: (each.label, each.compared) for each in logged(engine)}
    # Of a: the lesser of two of which nothing is known, and better than one that is worth 1/2.
    assert found == {
        "a": (None, pytest.approx((1 / 3 + 3 / 4) / 2)),
        "b": (None, pytest.approx(2 / 3)),
        "c": (0.5, pytest.approx(1 / 3)),
        "d": (None, None),
    }


def test_what_was_sent_ahead_to_warm_a_cache_is_no_clients_request(engine):
    store(engine, record(replace(result("a"), policy="prewarm")), record(result("b")))
    assert [each.record.id for each in logged(engine)] == ["b"]


def test_it_is_known_how_long_answers_are_and_who_judged_draws(engine):
    write(engine, truth(30), share=0.5)
    assert output_tokens(engine) == {"small": 110.0, "large": 110.0}
    assert output_tokens(engine, START + 100) == {}
    assert judges_of_draws(engine) == judges_of_draws(engine, START) == ["quality"]
    assert judges_of_draws(engine, START + 100) == []


def test_a_log_can_be_replayed_on_either_database(engine, tmp_path):
    from evals.logged.replay import replay

    write(engine, real := truth(300), share=0.5)
    found = replay(engine, wired(tmp_path), "always-large")
    cost, worth = real.always("large")
    assert found.cost.after.low < cost < found.cost.after.high
    assert found.quality.after.low < worth < found.quality.after.high
