import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cascade.errors import JudgeError
from judges import sandbox_child
from judges.sandbox import run_python

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def isolated():
    try:
        return run_python("pass", isolation="full").ok
    except JudgeError:
        return False


FULL = pytest.mark.skipif(not isolated(), reason="this kernel gives no unprivileged namespaces")


def test_a_program_that_ends_well_is_ok_and_what_it_printed_is_kept():
    run = run_python("import sys; print('out'); print('err', file=sys.stderr)")
    assert (run.ok, run.why) == (True, "")
    assert sorted(run.output.split()) == ["err", "out"]


def test_tests_see_what_the_program_defined():
    assert run_python("def double(x): return 2 * x", tests="assert double(2) == 4").ok
    run = run_python("def double(x): return x", tests="assert double(2) == 4, 'two twice'")
    assert not run.ok
    assert run.why == "a test failed: AssertionError: two twice"


def test_the_main_part_of_a_program_does_not_run_before_its_tests():
    source = "x = 1\nif __name__ == '__main__': x = input()"
    assert run_python(source, tests="assert x == 1").ok


def test_a_test_program_may_be_a_unittest():
    case = "class T(unittest.TestCase):\n  def test(self): self.assertEqual(x, {})\nunittest.main()"
    assert run_python("x = 1", tests="import unittest\n" + case.format(1)).ok
    assert not run_python("x = 1", tests="import unittest\n" + case.format(2)).ok


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit",
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "import os; os.abort()",
    ],
)
def test_a_program_that_leaves_before_its_tests_fails(source):
    assert not run_python(source, tests="assert False").ok


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def f(:", "SyntaxError"),
        ("x = [0] * 10**9", "MemoryError"),
        ("open('big', 'wb').write(b'x' * (20 << 20))", "OSError"),
        ("while True: print('x' * 1000)", "printed too much"),
        ("input()", "EOFError"),
        ("import numpy_or_whatever_is_installed", "ModuleNotFoundError"),
        ("import aiohttp", "ModuleNotFoundError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_what_goes_wrong_is_named(source, why):
    run = run_python(source)
    assert not run.ok
    assert why in run.why
    assert len(run.output) <= 4000


@pytest.mark.parametrize("source", ["while True: pass", "import time; time.sleep(60)"])
def test_a_program_that_does_not_end_is_ended(source):
    began = time.monotonic()
    run = run_python(source, seconds=0.5)
    assert "ran out of" in run.why
    assert time.monotonic() - began < 5


def test_it_knows_nothing_of_the_environment_it_was_started_from(monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "hunter2")
    assert "SECRET_OF_OURS" not in run_python("import os; print(dict(os.environ))").output


def test_its_folder_is_empty_before_and_gone_afterwards():
    source = "import os; assert os.listdir() == []; open('f', 'w').write('x'); print(os.getcwd())"
    run = run_python(source)
    assert run.ok
    assert not Path(run.output.strip()).exists()


CONNECT = "import socket; socket.create_connection(('127.0.0.1', {port}), 2)"


@LINUX
def test_there_is_no_network_not_even_to_this_machine():
    with socket.create_server(("127.0.0.1", 0)) as server:
        run = run_python(CONNECT.format(port=server.getsockname()[1]))
    assert not run.ok


@LINUX
@pytest.mark.parametrize(
    "source",
    [
        "import os; os.fork()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        "import multiprocessing as m; p = m.Process(target=int); p.start(); p.join()",
    ],
)
def test_it_starts_no_process(source):
    assert not run_python(source).ok


def test_threads_and_event_loops_work():
    source = (
        "import asyncio, threading\n"
        "thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()\n"
        "asyncio.run(asyncio.sleep(0.01))"
    )
    assert run_python(source).ok


@FULL
def test_in_full_isolation_nothing_outside_its_folder_can_be_written(tmp_path):
    tmp_path.chmod(0o777)
    run = run_python(f"open({str(tmp_path / 'x')!r}, 'w')", isolation="full")
    assert "Read-only" in run.why
    assert list(tmp_path.iterdir()) == []


UNDO = """
import ctypes
libc = ctypes.CDLL(None)
writable = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
libc.unshare(0x10020000)
libc.syscall(442, -100, b"/", 0x8000, ctypes.byref(writable), ctypes.c_size_t(32))
libc.umount2(b"/proc", 2)
"""


@FULL
def test_in_full_isolation_the_walls_cannot_be_taken_down_from_inside(tmp_path):
    tmp_path.chmod(0o777)
    run = run_python(UNDO + f"open({str(tmp_path / 'x')!r}, 'w')", isolation="full")
    assert "Read-only" in run.why


@FULL
def test_in_full_isolation_other_processes_cannot_be_seen_or_stopped():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert not run_python(f"import os; os.kill({other.pid}, 0)", isolation="full").ok
        environment = f"open('/proc/{other.pid}/environ').read()"
        assert not run_python(environment, isolation="full").ok
        run_python("import os, signal; os.kill(-1, signal.SIGKILL)", isolation="full")
        assert other.poll() is None
        other.communicate(b"\n")


@FULL
def test_in_full_isolation_the_supervisor_cannot_be_reached():
    source = "import os, signal; os.kill(0, signal.SIGTERM); os.kill(os.getppid(), signal.SIGKILL)"
    assert run_python(source, isolation="full").ok


WITHOUT_NAMESPACES = """
import ctypes, struct, sys
from judges import sandbox_child as child
from judges.sandbox import run_python
from cascade.errors import JudgeError
arch, _, refused = child.SYSTEM_CALLS[__import__("platform").machine()]
unshare = {"x86_64": 272, "aarch64": 97}[__import__("platform").machine()]
program = child.filter_program(arch, 0xFFFFFFF, (unshare,))
buffer = ctypes.create_string_buffer(program)
header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.c_char_p(header), 0, 0) == 0
try:
    run_python("pass", isolation="full")
except JudgeError as error:
    print("refused:", error.message)
print("ok:", run_python("print(1)").ok)
print("network:", run_python("import socket; socket.socket()").ok)
print("process:", run_python("import os; os.fork()").ok)
print("time:", run_python("while 1: pass", seconds=0.3).why)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine not in sandbox_child.SYSTEM_CALLS,
    reason="needs Linux on a machine whose system calls are known",
)
def test_without_namespaces_the_filter_and_the_limits_still_hold():
    root = Path(__file__).parents[2]
    shown = subprocess.run(
        [sys.executable, "-c", WITHOUT_NAMESPACES],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "refused: programs cannot be run in full isolation" in shown
    assert "ok: True" in shown
    assert "network: False" in shown
    assert "process: False" in shown
    assert "time: it ran out of time" in shown


def test_a_program_that_is_too_long_is_not_run():
    assert run_python("x" * 1_000_001).why == "the program is too long"
