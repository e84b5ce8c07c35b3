"""A growing file of outcomes that loses and repeats no row, however the writing ends.

Rows are appended whole and handed to the system at once. What a killed process left unfinished at
the end is cut off when the file is opened again, and the rows before it tell what need not be done
again.
"""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from evals.files import require_folder
from evals.outcomes import Answer, Key, Manifest, OutcomesError, Row
from evals.outcomes_lines import line_of, parse_manifest, parse_row

_CHUNK_BYTES = 1 << 16


class OutcomesFile:
    """Appends rows to a file that was begun now or earlier; a context manager.

    Args:
        path: ends in .jsonl; made where it does not exist.
        manifest: what the rows to come have in common.

    Raises:
        OutcomesError: another process writes the file, it was made with other prompts or models, or
            a line of it is no row.
        ResultFileError: its folder is missing.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        if path.suffix != ".jsonl":
            raise OutcomesError(f"{path}: outcomes are collected in a file that ends in .jsonl")
        require_folder(path)
        self._path = path
        self._file = open_alone(path)
        try:
            cut_unfinished(self._file)
            self.rows = self._take_up(manifest)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.fsync(self._file.fileno())
        self._file.close()

    def append(self, row: Row) -> None:
        """Add a row; it is there for good when this returns, short of a power cut."""
        if row.key in self.rows:
            raise OutcomesError(f"{self._path}: {' '.join(map(str, row.key))} is there already")
        self._write(row)
        self.rows[row.key] = row

    def answers(self, tier: str, prompts: Sequence[str]) -> list[Answer]:
        """The tier's stored answers to those prompts, in their order."""
        found = (self.rows.get((Answer.KIND, prompt, tier)) for prompt in prompts)
        return [row for row in found if isinstance(row, Answer)]

    def _take_up(self, manifest: Manifest) -> dict[Key, Row]:
        self._file.seek(0)
        lines = self._file.read().decode().split("\n")[:-1]
        if not lines:
            self._write(manifest)
            return {}
        if reasons := list(parse_manifest(f"{self._path}:1", lines[0]).differences(manifest)):
            raise OutcomesError(
                f"{self._path}: cannot be continued: {'; '.join(reasons)}. Choose another file, or "
                "move this one away"
            )
        rows = (
            parse_row(f"{self._path}:{number}", line) for number, line in enumerate(lines[1:], 2)
        )
        return {row.key: row for row in rows}

    def _write(self, row: Row | Manifest) -> None:
        self._file.write(line_of(row).encode())
        self._file.flush()


def open_alone(path: Path) -> IO[bytes]:
    """The file, to be read and appended to; nobody else gets it so until it is closed.

    Raises:
        OutcomesError: somebody has it, or it cannot be written.
    """
    try:
        file = path.open("a+b")
    except OSError as error:
        raise OutcomesError(f"{path}: cannot be written: {error.strerror or error}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise OutcomesError(f"{path}: another process is writing it; wait for its end") from None
    return file


def cut_unfinished(file: IO[bytes]) -> None:
    """Cut off what follows the last line end: a row that was being written when the end came."""
    end = file.seek(0, os.SEEK_END)
    place = end
    while place:
        start = max(0, place - _CHUNK_BYTES)
        file.seek(start)
        found = file.read(place - start).rfind(b"\n")
        if found >= 0:
            place = start + found + 1
            break
        place = start
    if place < end:
        file.truncate(place)
