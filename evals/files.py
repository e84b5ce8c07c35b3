"""Writes result files so that a reader never finds half of one."""

from pathlib import Path

from cascade.errors import CascadeError


class ResultFileError(CascadeError):
    """A result cannot be written where it should go."""

    code = "not_written"


def require_folder(path: Path) -> None:
    """Say now, before minutes of measuring, that the file's folder is missing.

    Raises:
        ResultFileError: it is.
    """
    if not path.absolute().parent.is_dir():
        raise ResultFileError(f"{path}: cannot be written: there is no folder {path.parent}")


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace the file's content at once: written beside it, then moved over it.

    Raises:
        ResultFileError: the folder is missing or may not be written to; the old file is untouched.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ResultFileError(f"{path}: cannot be written: {error.strerror or error}") from None
