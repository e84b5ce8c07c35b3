import math
from dataclasses import replace

import orjson
import pytest
from sqlalchemy import Engine, select

from cascade.audit import AuditRecord, record
from cascade.embedding import Embedding
from cascade.prefix import Fingerprint, Segment
from cascade.quote import Quote, Shared
from cascade.types import FREE, Beliefs
from serving.store.rows import decode, encode, insert
from serving.store.rows import record as from_rows
from serving.store.tables import attempts, requests
from tests.builders import (
    attempt,
    completion,
    cost,
    escalated,
    failed,
    request,
    result,
    usage,
    verdict,
)


def round_trip(engine: Engine, given: AuditRecord) -> AuditRecord:
    with engine.begin() as connection:
        insert(connection, [decode(encode(given))])
    with engine.connect() as connection:
        row = connection.execute(select(requests)).mappings().one()
        calls = connection.execute(select(attempts).order_by(attempts.c.index)).mappings().all()
    return from_rows(row, calls)


@pytest.mark.parametrize(
    "given",
    [
        escalated(),
        escalated(
            request=request(idempotency_key="k1"),
            baseline=cost("0.001"),
            attempts=(attempt(usage_estimated=True, completion=completion(tries=3)),),
        ),
        result(attempts=(failed(cost=None),), beliefs=None, experiment=None, arm=None),
        result(
            attempts=(
                attempt(
                    completion=completion(usage=usage(cache_write={"5m": 7, "1h": 9}), partial=True)
                ),
            ),
            beliefs=Beliefs(mean={"small": 0.5}, flags=frozenset({"fallback", "out_of_domain"})),
        ),
        result(attempts=(), completion=None, cost=FREE, cancelled=True),
    ],
    ids=["escalated", "estimated", "failed", "cache_writes", "nothing_was_called"],
)
def test_a_record_comes_back_as_it_went_in(engine: Engine, given: object) -> None:
    flat = record(given)  # type: ignore[arg-type]
    assert round_trip(engine, flat) == flat


def test_an_embedding_is_kept_only_where_that_is_asked_for(engine: Engine) -> None:
    vector = Embedding(model="m", vector=[0.5, -0.25])
    done = result(beliefs=Beliefs(mean={"small": 0.5}, embedding=vector))
    kept = round_trip(engine, record(done, embeddings=True)).embedding
    assert kept == {"model": "m", "float16": "ADgAtA=="}
    assert record(done).embedding is None


def test_a_prompt_is_kept_as_hashes_and_a_quote_beside_what_came_of_it(engine: Engine) -> None:
    quote = Quote(
        tier="small",
        warm_tokens=1200,
        cold_tokens=300,
        expected_output_tokens=256,
        shared=Shared(credit=0.000003),
    )
    system = Segment(
        name="system", tokens=900, raw="0a" * 8, masked={"dates": "0b" * 8}, parts=["c1d2e3f4"]
    )
    suffix = Segment(name="suffix", tokens=40, raw="0d" * 8)
    given = record(
        result(
            attempts=(attempt(quote=quote), attempt(1, quote=None)),
            fingerprint=Fingerprint(segments=(system, suffix)),
        )
    )
    kept = round_trip(engine, given)
    assert kept == given
    assert kept.segments == [
        {
            "name": "system",
            "tokens": 900,
            "raw": "0a" * 8,
            "masked": {"dates": "0b" * 8},
            "parts": ["c1d2e3f4"],
        },
        {"name": "suffix", "tokens": 40, "raw": "0d" * 8, "masked": {}, "parts": []},
    ]
    quoted, unquoted = kept.attempts
    assert (quoted.warm_tokens, quoted.cold_tokens, quoted.expected_output_tokens) == (
        1200,
        300,
        256,
    )
    assert quoted.credit_pico == 3_000_000
    assert (unquoted.warm_tokens, unquoted.credit_pico) == (None, None)


def test_whose_a_request_is_and_what_was_in_force_are_kept(engine: Engine) -> None:
    asked = request(user="kim", key_id="a1b2c3d4e5f6")
    kept = round_trip(
        engine, record(result(request=asked, prices_version="p1", experiment_version=7))
    )
    assert (kept.end_user, kept.key_id) == ("kim", "a1b2c3d4e5f6")
    assert (kept.prices_version, kept.experiment_version) == ("p1", 7)
    unknown = record(result())
    assert (unknown.end_user, unknown.key_id, unknown.prices_version) == (None, None, None)


@pytest.mark.parametrize(
    ("beliefs", "difficulty"),
    [
        (Beliefs(mean={"large": 0.75, "small": 0.25}), 0.75),
        (Beliefs(mean={"small": 0.25}, flags=frozenset({"out_of_domain"})), 0.75),
        (Beliefs(mean={"small": 0.25}, flags=frozenset({"fallback"})), None),
        (Beliefs(mean={"small": 0.5}, flags=frozenset({"no_estimator"})), None),
        (Beliefs(mean={}), None),
        (None, None),
    ],
)
def test_a_request_is_as_difficult_as_the_tier_least_likely_to_do_is_unlikely_to(
    beliefs: Beliefs | None, difficulty: float | None
) -> None:
    assert record(result(beliefs=beliefs)).difficulty == difficulty


def test_a_row_that_is_there_already_stays_as_it_is(engine: Engine) -> None:
    first = record(escalated("same"))
    second = replace(first, reason="another")
    with engine.begin() as connection:
        insert(connection, [decode(encode(first)), decode(encode(first))])
        insert(connection, [decode(encode(second))])
        assert connection.scalars(select(requests.c.reason)).all() == [first.reason]
        assert len(connection.execute(select(attempts)).all()) == 3


def test_text_that_no_database_takes_is_made_storable(engine: Engine) -> None:
    odd = "nul \0 and half a pair \ud83d"
    stored = round_trip(engine, record(result(request=request(session=odd, tags={odd: odd}))))
    assert stored.session == "nul \ufffd and half a pair ?"
    assert stored.tags == {stored.session: stored.session}


def test_the_six_characters_of_an_escaped_nul_are_kept(engine: Engine) -> None:
    stored = round_trip(engine, record(result(request=request(session=r"\u0000"))))
    assert stored.session == r"\u0000"


def test_a_number_that_is_none_is_stored_as_null(engine: Engine) -> None:
    judged = attempt(verdict=verdict(features={"mean_logprob": math.nan, "n": 3.0}))
    stored = round_trip(engine, record(result(attempts=(judged,))))
    assert stored.attempts[0].features == {"mean_logprob": None, "n": 3.0}


def test_a_column_the_line_does_not_know_is_left_empty_and_a_stranger_is_left_out() -> None:
    line = orjson.loads(encode(record(result())))
    del line["experiment"]
    entry = decode(orjson.dumps({**line, "colour": "red"}))
    assert entry.requests[0]["experiment"] is None
    assert "colour" not in entry.requests[0]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "unexpected end"),
        (b"[]", "not an audit record"),
        (b'{"id": "a"}', "not an audit record"),
        (b'{"id": 7, "attempts": []}', r"requests\.id holds a int"),
        (b'{"id": "a", "answers": true, "attempts": []}', r"requests\.answers holds a bool"),
        (b'{"id": "a", "tags": "b", "attempts": []}', r"requests\.tags holds a str"),
        (b'{"id": "a", "attempts": [{"tier": []}]}', r"attempts\.tier holds a list"),
        (b'{"id": "a", "attempts": [3]}', "attempts is no object"),
    ],
)
def test_a_line_that_is_no_record_says_what_is_wrong(line: bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        decode(line)
