import pytest

from cascade.audit import record
from cascade.types import Kind
from serving.dashboard.waterfall import NARROWEST, waterfall
from tests.builders import attempt, escalated, result


def test_bars_lie_where_the_row_says_that_the_attempts_were():
    row = record(escalated("r1"))
    fall = waterfall(row)
    assert fall.line_ms == pytest.approx(810.0)
    for bar, each in zip(fall.bars, row.attempts, strict=True):
        assert bar.attempt is each
        assert bar.left * fall.line_ms / 100 == pytest.approx(each.started_ms, abs=0.05)
        long = max(each.duration_ms, NARROWEST * fall.line_ms / 100)
        assert bar.width * fall.line_ms / 100 == pytest.approx(long)


def test_a_bar_stays_on_the_line_however_short_and_late_it_is():
    late = attempt(1, started=0.2099, seconds=0.0001)
    fall = waterfall(record(result("r1", attempts=(attempt(), late))))
    for bar in fall.bars:
        assert bar.left >= 0
        assert bar.left + bar.width <= 100 + 1e-9


def test_the_line_goes_on_to_the_end_of_what_was_done_after_the_answer():
    shadow = attempt(1, kind=Kind.SHADOW, started=0.3, seconds=0.7)
    fall = waterfall(record(result("r1", attempts=(attempt(), shadow))))
    assert fall.line_ms == pytest.approx(1000.0)
    assert fall.answer == pytest.approx(21.0)


def test_a_quote_is_held_against_what_was_paid():
    fall = waterfall(record(escalated("r1")))
    first, judge, last = fall.bars
    assert first.error == 1_720_000 - 2_000_000
    assert judge.error is None
    assert last.error == 34_400_000 - 2_000_000
    assert (fall.quoted_pico, fall.paid_pico) == (4_000_000, 36_120_000)


def test_what_is_not_known_is_not_added_up():
    unknown = attempt(0, cost=None)
    fall = waterfall(record(result("r1", attempts=(unknown,))))
    assert fall.paid_pico is None
    assert fall.bars[0].error is None
    assert waterfall(record(result("r1", attempts=()))).quoted_pico is None


@pytest.mark.parametrize("seconds", [0.0, 0.0004, 0.21, 3.0, 900.0])
def test_the_line_has_a_few_round_marks(seconds):
    fall = waterfall(record(result("r1", attempts=(), seconds=seconds)))
    assert 1 <= len(fall.ticks) <= 6
    assert all(0 <= place <= 100.0001 for place, _ in fall.ticks)
