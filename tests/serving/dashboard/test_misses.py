from dataclasses import replace

import pytest

from cascade.prefix.segments import fingerprint
from cascade.types import Usage
from serving.dashboard.misses import read
from serving.store.database import engine_for
from serving.store.queries import show
from serving.store.sink import SqlAuditSink
from tests.builders import attempt, completion, request, result

SYSTEM = "You answer in one word. " * 200


@pytest.fixture
def stored(database, tmp_path):
    """Writes turns of a conversation, each by system prompt, asks and tokens read."""
    engine = engine_for(database.url)
    sink = SqlAuditSink(engine, tmp_path / "spool")
    sink.start()

    def write(*turns, session="s-1"):
        for number, (system, asks, cached) in enumerate(turns):
            messages = [{"role": "system", "content": system}]
            for i in range(asks):
                messages += [
                    {"role": "user", "content": f"ask {i} " * 40},
                    {"role": "assistant", "content": f"answer {i}"},
                ]
            asked = replace(request(session=session), messages=messages[:-1])
            asked = replace(asked, id=f"r{number}")
            tokens = Usage(input=1500 - cached, cache_read=cached, output=5)
            made = attempt(completion=completion(usage=tokens))
            sink.write(
                result(
                    request=asked,
                    attempts=(made,),
                    started_at=1_790_000_000.0 + 30 * number,
                    fingerprint=fingerprint(asked, tokens_per_byte=0.25),
                )
            )
        assert sink.flush(30)
        return engine

    yield write
    sink.close(5)
    engine.dispose()


def parts(reading):
    return {part.name: part.change for part in reading.parts}


def test_the_first_request_of_a_session_is_held_against_nothing(stored):
    engine = stored((SYSTEM, 1, 0))
    reading = read(engine, show(engine, "r0"), {})
    assert reading.before is None
    assert reading.misses == []
    assert set(parts(reading).values()) == {""}


def test_a_conversation_that_goes_on_and_is_read_lost_nothing(stored):
    engine = stored((SYSTEM, 1, 0), (SYSTEM, 2, 1400))
    reading = read(engine, show(engine, "r1"), {})
    assert reading.before == "r0"
    assert reading.misses == []
    assert parts(reading) == {"system": "same", "history": "same", "suffix": "new"}


def test_the_segment_that_changed_is_named_and_what_is_behind_it_is_cold(stored):
    engine = stored((SYSTEM + "2026-11-30 10:00", 1, 0), (SYSTEM + "2026-11-30 10:01", 2, 0))
    reading = read(engine, show(engine, "r1"), {})
    assert parts(reading)["system"] == "dates"
    assert [part.cold for part in reading.parts] == [True, True, True]
    [miss] = reading.misses
    assert miss.loss.cause.key == "system_dates"
    assert miss.loss.tokens > 1000


def test_later_requests_of_the_session_are_left_alone(stored):
    engine = stored((SYSTEM, 1, 0), (SYSTEM, 2, 1400), ("other " * 400, 3, 0))
    assert read(engine, show(engine, "r1"), {}).misses == []


def test_a_request_without_a_session_is_held_against_nothing(stored):
    engine = stored((SYSTEM, 1, 0), (SYSTEM, 2, 0), session="")
    assert read(engine, show(engine, "r1"), {}).before is None
