"""The log file of a model server: written by the server itself, kept short by its supervisor."""

import logging
import shutil
from pathlib import Path

from serving.models.sources import size_of

_LIMIT_BYTES = 5_000_000
_TAIL_BYTES = 4096

logger = logging.getLogger(__name__)


def bound(log: Path, limit_bytes: int = _LIMIT_BYTES) -> None:
    """Move what a log too long holds to `<log>.1`; who appends to it goes on at its start.

    The server keeps the file open, so the file must stay and only its content can go.
    """
    try:
        if size_of(log) > limit_bytes:
            shutil.copyfile(log, log.with_name(f"{log.name}.1"))
            with log.open("r+b") as file:
                file.truncate()
    except OSError as error:
        logger.warning("%s cannot be shortened: %s", log, error)


def tail(log: Path, start: int = 0, lines: int = 15) -> str:
    """The last lines written since the file had `start` bytes; empty when there are none."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(start if start <= size else 0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
