import io

from rich.console import Console

from evals.commands.progress import LINE_SECONDS, counting
from tests.guards import Clock


def test_a_log_gets_a_line_now_and_then_with_the_time_left_and_one_at_each_end():
    shown, clock = io.StringIO(), Clock()
    with counting(Console(file=shown, width=100), ["small"] * 6 + ["large"], clock) as done:
        for _ in range(6):
            clock.pass_(LINE_SECONDS / 2)
            done("small")
        done("large")
    assert shown.getvalue().splitlines() == [
        "small 2/6, 2 min left; large 0/1",
        "small 4/6, 1 min left; large 0/1",
        "small 6/6; large 0/1",
        "small 6/6; large 1/1",
    ]


def test_a_terminal_gets_bars():
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    with counting(console, ["small", "small"]) as done:
        done("small")
        done("small")
    assert "small" in shown.getvalue()
    assert "2/2" in shown.getvalue()
