"""Answers that are recorded while they are given, so that a repetition gets the same bytes.

The work runs in a task of its own: a client that leaves does not end it, because its repetition
will want what it brings. Whoever asks, the first client included, is a reader of the recording.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import Message, Send

logger = logging.getLogger(__name__)

REPLAY = (b"x-cascade-idempotent-replay", b"true")
_OVERHEAD_BYTES = 2000  # of a recording, beside its body
_SWEEP_SECONDS = 60.0
_FAILED = 400

Name = tuple[str, str]
"""Whose recording it is, and what that tenant calls it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingLimits:
    """How long and how much of what was answered is kept in memory; what is under way is besides.

    Attributes:
        seconds: since the answer was whole.
        bytes: of all recordings; the least recently asked for go first.
    """

    seconds: float = 24 * 3600.0
    bytes: int = 64 << 20


class Recording:
    """One answer's status, headers and body, as far as they are there.

    Attributes:
        digest: of the request it answers.
    """

    def __init__(self, digest: bytes) -> None:
        self.digest = digest
        self._start: Message | None = None
        self._body = bytearray()
        self._whole = self._ended = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()

    @property
    def size(self) -> int:
        """Bytes of memory, roughly."""
        return len(self._body) + _OVERHEAD_BYTES

    @property
    def good(self) -> bool:
        """It is whole, and its status is no error's."""
        return self._whole and self._start is not None and self._start["status"] < _FAILED

    async def send(self, message: Message) -> None:
        """Take a part of the answer; an ASGI send."""
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            self._whole = not message.get("more_body", False)
        self._tell()

    def end(self, error: Exception | None = None) -> None:
        """Nothing more will come."""
        self._ended, self._error = True, error
        self._tell()

    async def play(self, send: Send, *, again: bool) -> None:
        """Send it from its beginning, then as it comes.

        Args:
            send: an ASGI send.
            again: say that it is a repetition.

        Raises:
            Exception: what the work failed with before it was whole.
        """
        begun, at = False, 0
        while not (begun and self._whole and at == len(self._body)):
            changed = self._changed
            if self._start is not None and not begun:
                begun = True
                await send(_as_replay(self._start) if again else self._start)
            elif begun and (at < len(self._body) or self._whole):
                piece = bytes(self._body[at:])
                at, last = at + len(piece), self._whole
                await send({"type": "http.response.body", "body": piece, "more_body": not last})
                if last:
                    return
            elif self._ended:
                raise self._error or RuntimeError("the answer was broken off")
            else:
                await changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Recordings:
    """What is being recorded, and what was.

    Args:
        limits: see RecordingLimits.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        limits: RecordingLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits or RecordingLimits()
        self._clock = clock
        self._running = dict[Name, Recording]()
        self._kept = OrderedDict[Name, tuple[float, Recording]]()
        self._bytes = 0
        self._swept = clock()
        self._tasks = set[asyncio.Task[None]]()

    def find(self, name: Name) -> Recording | None:
        """The recording of that name, if it is under way or still kept."""
        if name in self._running:
            return self._running[name]
        until, recording = self._kept.get(name, (0.0, None))
        if recording is None:
            return None
        if until <= self._clock():
            self._drop(name)
            return None
        self._kept.move_to_end(name)
        return recording

    def record(
        self,
        name: Name,
        digest: bytes,
        work: Callable[[Send], Awaitable[None]],
        answered: Callable[[], bool],
    ) -> Recording:
        """Begin to record.

        Args:
            name: of which nothing is recorded yet.
            digest: of the request.
            work: gives the answer to an ASGI send.
            answered: asked at the end, whether it is an answer and no failure. A failure is
                forgotten, so that a repetition tries again.
        """
        recording = self._running[name] = Recording(digest)
        task = asyncio.create_task(self._run(name, recording, work, answered))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return recording

    async def drain(self, seconds: float) -> None:
        """Wait so many seconds for what is under way, then cancel it and wait until it has ended.

        What is cancelled is audited as such.
        """
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            logger.warning("%d answers that nobody waited for were broken off", len(late))
            await asyncio.wait(late)

    async def _run(
        self,
        name: Name,
        recording: Recording,
        work: Callable[[Send], Awaitable[None]],
        answered: Callable[[], bool],
    ) -> None:
        error: Exception | None = None
        try:
            await work(recording.send)
        except Exception as fault:
            # Its readers raise it as well, but there may be none.
            logger.exception("failed while an answer was recorded")
            error = fault
        finally:
            del self._running[name]
            recording.end(error)
        if error is None and recording.good and answered():
            self._keep(name, recording)

    def _keep(self, name: Name, recording: Recording) -> None:
        now = self._clock()
        self._kept[name] = now + self._limits.seconds, recording
        self._bytes += recording.size
        if now - self._swept >= _SWEEP_SECONDS:
            self._swept = now
            for old in [each for each, (until, _) in self._kept.items() if until <= now]:
                self._drop(old)
        while self._bytes > self._limits.bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, name: Name) -> None:
        _, recording = self._kept.pop(name)
        self._bytes -= recording.size


def _as_replay(start: Message) -> Message:
    return {**start, "headers": [*start["headers"], REPLAY]}
