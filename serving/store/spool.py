"""The folder where audit rows wait for the database: a journal that outlives the process.

A batch is one file of JSON lines, written under a temporary name and renamed, so a file under its
own name is whole. Nothing is synced to the disk: a killed process loses nothing that was written,
because the kernel holds it, and a power cut may take the last seconds, as it may with the
database's own settings (SQLite runs with synchronous = NORMAL).

Several processes may share a folder. A file is worked on by whoever holds its lock, which the
kernel releases when a process dies; and since rows are inserted at most once, a file that is worked
on twice does no harm.
"""

import contextlib
import fcntl
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

_SUFFIX = ".jsonl"
_POSTPONED = ".later"
_KEPT = frozenset({_SUFFIX, _POSTPONED, ".bad"})
_STALE_SECONDS = 60.0
_MOST_FILES = 200  # held open at once
_MERGE_AT = 100  # files
_MERGED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """A file of the spool; its name says when it was written, by whom and how many rows it has."""

    written_ns: int
    pid: int
    rows: int
    path: Path

    @classmethod
    def of(cls, path: Path) -> "Batch | None":
        """Read a file's name; None when it is not one of ours."""
        parts = path.name.removesuffix(_SUFFIX).split("-")
        if not path.name.endswith(_SUFFIX) or not all(part.isdecimal() for part in parts):
            return None
        try:
            written, pid, rows = map(int, parts)
        except ValueError:
            return None
        return cls(written, pid, rows, path)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for the database; oldest_ns is when the first of it was written, None if empty."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    oldest_ns: int | None = None

    @property
    def age(self) -> float:
        """Seconds that the oldest row has waited."""
        return 0.0 if self.oldest_ns is None else max(0.0, (time.time_ns() - self.oldest_ns) / 1e9)


@dataclass(frozen=True, slots=True)
class Claim:
    """Batches that are ours to work on, with their lines; and whether there were more."""

    batches: Sequence[Batch]
    lines: Sequence[bytes]
    more: bool = False


class Spool:
    """Batches of lines in a folder, oldest first.

    Attributes:
        last_ns: when the last batch was written, by this process or before it opened the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last_ns = 0
        self._unreadable = set[Path]()
        self._naming = threading.Lock()

    def open(self) -> None:
        """Create the folder, and take up what a dead process was still writing.

        Raises:
            OSError: the folder cannot be made or written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self.folder.glob(f"*{_SUFFIX}.tmp"):
            if _is_stale(path):
                with contextlib.suppress(FileNotFoundError):
                    path.rename(path.with_suffix(""))
        self.last_ns = max((batch.written_ns for batch in self.batches()), default=0)

    def put(self, lines: Sequence[bytes]) -> None:
        """Write a batch.

        Raises:
            OSError: it could not be written; nothing of it is left behind under a batch's name.
        """
        with self._naming:
            # Later batches sort behind earlier ones, also when the clock is set back.
            self.last_ns = max(time.time_ns(), self.last_ns + 1)
            name = _name(self.last_ns, os.getpid(), len(lines))
        self._write(name, b"\n".join(lines) + b"\n")

    def set_aside(self, lines: Sequence[bytes]) -> Path:
        """Keep lines that no database takes, in a file that is not read again, and name it."""
        name = f"{time.time_ns():020d}-{os.getpid()}-{len(lines)}.bad"
        return self._write(name, b"\n".join(lines) + b"\n")

    def postpone(self, lines: Sequence[bytes]) -> None:
        """Keep lines whose time has not come in a file that `resume` makes a batch again."""
        name = _name(time.time_ns(), os.getpid(), len(lines)).removesuffix(_SUFFIX)
        self._write(f"{name}{_POSTPONED}", b"\n".join(lines) + b"\n")

    def resume(self, after_seconds: float) -> None:
        """Make batches again of what was postponed so long ago, by whichever process."""
        for path in self.folder.glob(f"*{_POSTPONED}"):
            batch = Batch.of(path.with_suffix(_SUFFIX))
            if batch is not None and time.time_ns() - batch.written_ns > after_seconds * 1e9:
                with contextlib.suppress(FileNotFoundError):
                    path.rename(batch.path)

    def batches(self) -> list[Batch]:
        """What waits, oldest first."""
        try:
            found = [Batch.of(path) for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(batch for batch in found if batch is not None)

    def lines(self) -> Iterator[bytes]:
        """What waits, only to be looked at; what another process takes meanwhile is left out."""
        for batch in self.batches():
            with contextlib.suppress(OSError):
                yield from batch.path.read_bytes().splitlines()

    def sift(self, keep: Callable[[bytes], bool]) -> int:
        """Take lines out for good, of what waits, is postponed or set aside, or was being written.

        A file that somebody works on at the moment is left as it is: its lines are on their way
        into the database.

        Args:
            keep: whether a line stays.

        Returns:
            How many lines were taken out.

        Raises:
            OSError: a file cannot be written anew; it is as it was.
        """
        gone, took = 0, 1
        while took:  # again: what was postponed may have become a batch meanwhile
            took = 0
            for path in [path for path in self.folder.glob("*") if _is_kept(path)]:
                with contextlib.ExitStack() as held:
                    content = self._lock_and_read(path, held)
                    took += self._without(path, content, keep) if content else 0
            gone += took
        return gone

    def _without(self, path: Path, content: bytes, keep: Callable[[bytes], bool]) -> int:
        lines = content.splitlines()
        kept = [line for line in lines if keep(line)]
        if len(kept) == len(lines):
            return 0
        name = path.name
        if (batch := Batch.of(path.with_suffix(_SUFFIX))) is not None:
            named = _name(batch.written_ns, batch.pid, len(kept))
            name = f"{named.removesuffix(_SUFFIX)}{path.suffix}"
        if kept:
            self._write(name, b"\n".join(kept) + b"\n")
        if not kept or name != path.name:
            path.unlink(missing_ok=True)
        return len(lines) - len(kept)

    def backlog(self) -> Backlog:
        """How much waits."""
        batches = self.batches()
        size = 0
        for batch in batches:
            with contextlib.suppress(FileNotFoundError):
                size += batch.path.stat().st_size
        return Backlog(
            files=len(batches),
            rows=sum(batch.rows for batch in batches),
            bytes=size,
            oldest_ns=batches[0].written_ns if batches else None,
        )

    @contextlib.contextmanager
    def claim(self, most_rows: int) -> Iterator[Claim]:
        """Lock the oldest batches that nobody else works on, and read them.

        Args:
            most_rows: stop before there are more; one batch is taken however large it is.
        """
        with contextlib.ExitStack() as held:
            claimed, lines, rows, more = list[Batch](), list[bytes](), 0, False
            for batch in self.batches():
                more = bool(claimed) and (
                    rows + batch.rows > most_rows or len(claimed) == _MOST_FILES
                )
                if more:
                    break
                content = self._lock_and_read(batch.path, held)
                if content is not None:
                    claimed.append(batch)
                    rows += batch.rows
                    lines += content.splitlines()
            yield Claim(claimed, lines, more)

    def remove(self, claim: Claim) -> None:
        """The claimed batches are done with."""
        for batch in claim.batches:
            batch.path.unlink(missing_ok=True)

    def merge(self) -> None:
        """Make few files of many small ones, so that a long wait stays quick to look through.

        Should the process die half-way, some lines are there twice, which inserting forgives.
        """
        small = [b for b in self.batches() if _size(b.path) < _MERGED_BYTES // 2]
        if len(small) < _MERGE_AT:
            return
        with contextlib.ExitStack() as held:
            merged, content = list[Batch](), b""
            for batch in itertools.islice(small, _MOST_FILES):
                piece = self._lock_and_read(batch.path, held)
                if piece is None:
                    continue
                merged.append(batch)
                content += piece if piece.endswith(b"\n") else piece + b"\n"
                if len(content) > _MERGED_BYTES:
                    break
            if len(merged) > 1:
                first, rows = merged[0], sum(batch.rows for batch in merged)
                self._write(_name(first.written_ns, first.pid, rows), content)
                self.remove(Claim(merged, ()))

    def _lock_and_read(self, path: Path, held: contextlib.ExitStack) -> bytes | None:
        """The content, locked until `held` closes; None when it is gone, another's or unreadable.

        A file that cannot be read stays where it is and does not keep the others from being read.
        """
        try:
            file = held.enter_context(path.open("rb"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking, its last owner may have removed or replaced it.
            same = os.path.samestat(os.fstat(file.fileno()), path.stat())
            return file.read() if same else None
        except (FileNotFoundError, BlockingIOError):
            return None
        except OSError as error:
            self._report(path, error)
            return None

    def _report(self, path: Path, error: OSError) -> None:
        if path not in self._unreadable:
            self._unreadable.add(path)
            logger.error("audit rows in %s cannot be read: %s", path, error)

    def _write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        temporary = path.with_name(f"{name}.tmp")
        try:
            temporary.write_bytes(content)
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        return path


def _name(written_ns: int, pid: int, rows: int) -> str:
    return f"{written_ns:020d}-{pid}-{rows}{_SUFFIX}"


def _is_kept(path: Path) -> bool:
    return path.suffix in _KEPT or (path.suffix == ".tmp" and _is_stale(path))


def _is_stale(path: Path) -> bool:
    """Whether nobody writes it any more: who began to is dead."""
    with contextlib.suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime > _STALE_SECONDS
    return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
