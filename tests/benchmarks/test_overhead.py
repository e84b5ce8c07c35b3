import os
import sys
import threading
import time

import pytest

from benchmarks.overhead.cpu import Spent, spent, table

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


def test_the_time_of_a_request_is_that_which_the_process_worked() -> None:
    def load() -> int:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass
        return 10

    assert threading.current_thread() is threading.main_thread()
    found = spent(os.getpid(), load)
    assert found["main"] == pytest.approx(10_000, rel=0.5)


def test_a_line_for_each_thread_and_one_for_all() -> None:
    one = Spent(service="Cascade", how="whole", connections=16, threads={"main": 2.0, "a": 1.0})
    shown = table([one])
    assert list(shown.columns[3].cells) == ["all", "main", "a"]
    assert list(shown.columns[4].cells) == ["3", "2", "1"]
