"""From memory to the spool: the thread that keeps the audit log away from the event loop.

`append` costs a request about a microsecond. Flattening the result, JSON and the file happen here,
once a flush interval, and that interval is what a SIGKILL can lose. What is urgent is written at
once.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cascade import audit
from cascade.audit import HASHED, Prompts
from cascade.result import CascadeResult
from serving.store.breathing import breathing
from serving.store.feedback import Feedback
from serving.store.late import Late
from serving.store.rows import encode
from serving.store.spool import Spool

logger = logging.getLogger(__name__)

_MOST_ROWS = 1000  # in one batch

Item = CascadeResult | Feedback | Late


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long rows may stay in memory, and how many may wait where.

    Attributes:
        flush_interval: seconds that rows stay in memory at most; what SIGKILL can lose.
        queue_rows: results and feedback in memory. They get there only while the spool is full or
            cannot be written, and /readyz has turned traffic away by then.
        spool_bytes: size of the spool above which it takes no more.
    """

    flush_interval: float = 0.2
    queue_rows: int = 100_000
    spool_bytes: int = 1 << 30


class Journal:
    """Takes results and feedback without waiting and writes them to the spool in batches.

    Args:
        spool: where batches go.
        limits: see Limits.
        written: called after each batch.
        hurry: called when a batch has something in it that is urgent.
        embeddings: keep those of what was classified.
        prompts: what to keep of the texts.
    """

    def __init__(
        self,
        spool: Spool,
        limits: Limits,
        written: Callable[[], None],
        hurry: Callable[[], None],
        *,
        embeddings: bool = False,
        prompts: Prompts = HASHED,
    ) -> None:
        self.dropped = 0
        self.error: str | None = None
        self._spool = spool
        self._limits = limits
        self._written = written
        self._hurry = hurry
        self._embeddings = embeddings
        self._prompts = prompts
        self._queue = deque[Item]()
        self._lines = list[bytes]()  # encoded and not yet written
        self._taken = self._done = 0
        self._progress = threading.Condition()
        self._wake = threading.Event()
        self._urgent = threading.Event()
        self._stopping = threading.Event()
        self._deadline = float("inf")
        self._complained = 0.0
        self._thread = threading.Thread(target=self._run, name="audit-journal", daemon=True)

    @property
    def queued(self) -> int:
        """Results that are in memory and nowhere else."""
        return len(self._queue) + self._taken - self._done

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def append(self, item: Item, *, urgent: bool = False) -> bool:
        """Take it; when there is no room at all, count it as dropped, say so and return False.

        Args:
            item: what to write.
            urgent: write it now, not at the end of the flush interval, and have it inserted.
        """
        size = len(self._queue)
        if size >= self._limits.queue_rows or self._stopping.is_set():
            self._drop(item)
            return False
        self._queue.append(item)
        if urgent:
            self._urgent.set()
        if urgent or size == _MOST_ROWS:
            self._wake.set()
        return True

    def settle(self, timeout: float) -> bool:
        """Wait until everything appended before is in the spool; False when it takes longer."""
        with self._progress:
            goal = self._taken + len(self._queue)
            self._wake.set()
            return self._progress.wait_for(lambda: self._done >= goal, timeout)

    def stop(self, timeout: float) -> None:
        """Write what is left, also above the spool's limit, and end."""
        if self._stopping.is_set():
            return
        self._deadline = time.monotonic() + timeout
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        if left := self._taken - self._done + len(self._queue):
            logger.error("%d audit rows are lost: %s", left, self.error or "no time was left")

    def _run(self) -> None:
        while True:
            self._wake.wait(self._limits.flush_interval)
            self._wake.clear()
            stopping = self._stopping.is_set()
            if urgent := self._urgent.is_set():
                self._urgent.clear()
            try:
                while self._write_batch(stopping=stopping):
                    pass
                if urgent:
                    self._hurry()
            except OSError as error:
                self._fail(f"the audit spool cannot be written: {error}")
            if stopping and (self.error is None or time.monotonic() > self._deadline):
                return

    def _write_batch(self, *, stopping: bool) -> bool:
        """Write one batch; False when there is nothing to write or no room for it."""
        if not self._lines and not self._queue:
            self.error = None
            return False
        if not stopping and self._spool.backlog().bytes >= self._limits.spool_bytes:
            self._fail(f"the audit spool holds its limit of {self._limits.spool_bytes} bytes")
            return False
        if not self._lines:
            self._take()
        if self._lines:
            self._spool.put(self._lines)
        self._lines = []
        with self._progress:
            self._done = self._taken
            self._progress.notify_all()
        self._written()
        return True

    def _take(self) -> None:
        with self._progress:
            taken = [self._queue.popleft() for _ in range(min(len(self._queue), _MOST_ROWS))]
            self._taken += len(taken)
        for item in breathing(taken):
            try:
                self._lines.append(self._line(item))
            except Exception:
                # A fault in one of them must not end the thread that all others depend on.
                self.dropped += 1
                logger.exception("request %s cannot be audited", _about(item))

    def _line(self, item: Item) -> bytes:
        if isinstance(item, Feedback | Late):
            return encode(item)
        row = audit.record(item, embeddings=self._embeddings, prompts=self._prompts)
        return encode(row)

    def _drop(self, item: Item) -> None:
        self.dropped += 1
        if time.monotonic() - self._complained >= 1.0:
            self._complained = time.monotonic()
            logger.error(
                "the audit queue has no room for request %s; %d dropped so far: %s",
                _about(item),
                self.dropped,
                self.error or "the journal is closed",
            )

    def _fail(self, error: str) -> None:
        if error != self.error:
            logger.error("%s", error)
        self.error = error


def _about(item: Item) -> str:
    return item.request.id if isinstance(item, CascadeResult) else item.request_id
