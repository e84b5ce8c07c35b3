"""Redacts in a process of its own: a line of JSON in, the same without what identifies people out.

What finds these things holds Python's lock for milliseconds at a time, and takes seconds and
hundreds of megabytes to load. The process that answers requests is spared both.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

_SECONDS = 30.0
_BYTES_A_SECOND = 8_000  # of the worst text, with somebody else at work on the same core
_END_SECONDS = 5.0
_FAILURES = 3
_REST_SECONDS = 60.0


class Redacting:
    """The other end of such a process, which is started at once and again when it has ended.

    Args:
        seconds: what it may take to start and for a short text; a long one has more time.
        rest_seconds: for which it is left alone after failing three times in a row. Rows wait for
            it, and one that never works must not hold them up until there is no room for more.
    """

    def __init__(self, seconds: float = _SECONDS, rest_seconds: float = _REST_SECONDS) -> None:
        self._seconds = seconds
        self._rest_seconds = rest_seconds
        self._failures = 0
        self._resting_until = float("-inf")
        self._lock = threading.Lock()
        self._process = self._start()

    def value(self, value: Any) -> Any:
        """A JSON value without what identifies somebody.

        Raises:
            RuntimeError: the process ended, or took too long and was ended, now or lately.
            OSError: it cannot be started.
        """
        line = json.dumps(value).encode() + b"\n"
        with self._lock:
            if time.monotonic() < self._resting_until:
                raise RuntimeError("what redacts texts has failed time and again, and rests")
            try:
                if self._process.poll() is not None:
                    self._process = self._start()
                answer = self._answer(self._process, line)
            except (RuntimeError, OSError):
                self._failures += 1
                if self._failures >= _FAILURES:
                    self._resting_until = time.monotonic() + self._rest_seconds
                raise
            self._failures = 0
            return json.loads(answer)

    def _answer(self, process: "subprocess.Popen[bytes]", line: bytes) -> bytes:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("it was started with pipes")
        patience = threading.Timer(self._seconds + len(line) / _BYTES_A_SECOND, process.kill)
        patience.start()
        try:
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        finally:
            patience.cancel()
        if not answer.endswith(b"\n"):
            process.kill()
            raise RuntimeError("what redacts texts ended, or took too long for one")
        return answer

    def _start(self) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # it may say what it reads
            start_new_session=True,  # Ctrl-C is for the service, which has texts left to redact
        )
        weakref.finalize(self, _end, process)
        return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what it did not read any more
                pipe.close()  # at the end of its input it ends by itself
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    """Redact until there is no more input."""
    # What libraries print must not get in between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    from serving.store.redaction import Redactor  # noqa: PLC0415 - seconds, and only here

    redactor = Redactor()
    for line in sys.stdin.buffer:
        answers.write(json.dumps(redactor.value(json.loads(line))).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
