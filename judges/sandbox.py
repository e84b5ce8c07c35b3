"""Runs a model's Python where it can do little harm.

The program gets a process of its own with a Python that knows the standard library only, an empty
environment, nothing on standard input, a folder that vanishes afterwards, and limits on time,
memory and files. On Linux a system call filter refuses it sockets and new processes, and where the
kernel gives unprivileged namespaces (most machines, few containers) it can neither write outside
its folder nor see other processes. Elsewhere both are only refused inside Python, which is no
boundary: a program that means to gets around it.

It is a wall against accidents and clumsy attacks. The kernel is shared, files that the service's
user may read can be read, and a program can fool tests that run in its own interpreter.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

from cascade.errors import JudgeError
from cascade.types import FREE
from judges import sandbox_child as child

Isolation = Literal["best", "full"]

MAX_SOURCE_CHARACTERS: Final = 1_000_000
LAST_BYTES: Final = 500
_GRACE_SECONDS: Final = 2.0
_COMMAND: Final = ("-I", "-S", "-B", "-X", "utf8", child.__file__)
_ENDINGS: Final = {
    child.FAILED: "the program failed",
    child.FAILED_TESTS: "a test failed",
    child.OUT_OF_TIME: "it ran out of time",
    child.OUT_OF_CPU: "it ran out of CPU time",
    child.KILLED: "it was killed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a program ended.

    Attributes:
        ok: it ran to its end, and so did its tests, without an exception.
        output: what it printed, standard output and errors together, cut.
        why: one sentence; empty when ok.
    """

    ok: bool
    output: str
    why: str = ""


def run_python(
    source: str,
    *,
    tests: str = "",
    seconds: float = 5.0,
    memory_mib: int = 256,
    disk_mib: int = 8,
    output_characters: int = 4000,
    isolation: Isolation = "best",
) -> RunResult:
    """Run a program and wait for its end. Blocks; call it in a thread from asynchronous code.

    Args:
        source: the program.
        tests: a program that is run after it in the same namespace. The first then finds another
            `__name__` than "__main__", and fails when it exits of itself.
        seconds: of wall-clock time, and of CPU time rounded up.
        memory_mib: of address space.
        disk_mib: of its folder and of any one file.
        output_characters: kept of what it prints.
        isolation: "full" runs nothing where the kernel lacks namespaces or the filter; "best" takes
            what there is.

    Raises:
        JudgeError: it could not be run at all, which says nothing about the program.
    """
    if os.name != "posix":
        raise JudgeError("programs are only run on Linux and macOS", cost=FREE)
    if len(source) + len(tests) > MAX_SOURCE_CHARACTERS:
        return RunResult(ok=False, output="", why="the program is too long")
    job = {
        "source": source,
        "tests": tests,
        "seconds": seconds,
        "memory_mib": memory_mib,
        "disk_mib": disk_mib,
        "isolation": isolation,
    }
    with (
        tempfile.TemporaryDirectory(prefix="cascade-run-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as printed,
    ):
        ended = _ended(job, Path(folder), printed)
        too_much = printed.seek(0, os.SEEK_END) >= disk_mib << 20
        last = _text(printed, -LAST_BYTES, LAST_BYTES).strip().rpartition("\n")[2]
        output = _text(printed, 0, 4 * output_characters)[:output_characters]
    if ended == child.DONE:
        return RunResult(ok=True, output=output)
    return RunResult(ok=False, output=output, why=_why(ended, last, too_much=too_much))


def _text(printed: IO[bytes], start: int, size: int) -> str:
    end = printed.seek(0, os.SEEK_END)
    printed.seek(start if start >= 0 else max(0, end + start))
    return printed.read(size).decode(errors="replace")


def _why(ended: int, last: str, *, too_much: bool) -> str:
    why = _ENDINGS.get(ended, "it stopped before its end")
    if too_much:
        return f"{why}: it printed too much"
    if ended in {child.FAILED, child.FAILED_TESTS} and last:
        return f"{why}: {last[:200]}"
    return why


def _ended(job: dict[str, Any], folder: Path, printed: IO[bytes]) -> int:
    """The exit code, after everything that was started is gone.

    Raises:
        JudgeError: nothing was run.
    """
    try:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, *_COMMAND],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            cwd=folder,
            env={},
            start_new_session=True,
        )
    except OSError as error:
        raise JudgeError(f"no process could be started: {error}", cost=FREE) from error
    try:
        process.communicate(json.dumps(job).encode(), job["seconds"] + _GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return child.OUT_OF_TIME
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode == child.UNFIT:
        raise JudgeError(
            "programs cannot be run in full isolation: this kernel, or the container, gives no "
            'unprivileged namespaces; give them, or accept less with isolation "best"',
            cost=FREE,
        )
    return process.returncode
