"""What a source of model files is, and the nearest one: folders on this machine.

A source brings bytes and promises nothing about them; fetch.py checks size and sum before anything
uses them.
"""

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from serving.models.catalogue import Model

FOLDERS_VARIABLE = "CASCADE_MODELS_DIR"
"""Folders to look into first, separated as in PATH."""


class Progress(Protocol):
    """Is told how far a piece of work is; may be called from a worker thread."""

    def __call__(self, label: str, done_bytes: int, total_bytes: int) -> None:
        """Take note; `label` changes when the work does."""
        ...


def silent(label: str, done_bytes: int, total_bytes: int) -> None:
    """Progress for those who do not look."""


class SourceError(Exception):
    """This source cannot bring the file; the message says why, the next source is asked."""


class Source(Protocol):
    """Somewhere a model file can come from.

    Attributes:
        name: what messages call it.
    """

    name: str

    def space_bytes(self, model: Model, folder: Path) -> int:
        """Disk space that fetching into `folder` takes from here on."""
        ...

    def fetch(self, model: Model, folder: Path, progress: Progress) -> Path:
        """Bring the whole file into `folder` under a name of the source's own, and return that.

        What is left there by an interruption is taken up by the next call.

        Raises:
            SourceError: it is not to be had here.
        """
        ...


def size_of(path: Path) -> int:
    """Bytes of the file, 0 when there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class LocalFolders:
    """Folders of this machine; their files are linked, or copied from another disk."""

    name = "local folder"

    def __init__(self, folders: Sequence[Path] | None = None) -> None:
        if folders is None:
            named = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
            folders = [Path(name).expanduser() for name in named if name]
        self._folders = tuple(folders)

    def space_bytes(self, model: Model, folder: Path) -> int:
        """None where the file can be linked."""
        found = self._find(model)
        if found is None or found.stat().st_dev == folder.stat().st_dev:
            return 0
        return model.size_bytes

    def fetch(self, model: Model, folder: Path, progress: Progress) -> Path:
        """Link or copy; the original is never touched."""
        found = self._find(model)
        if found is None:
            where = ", ".join(map(str, self._folders))
            raise SourceError(
                f"no {model.file} in {where}" if where else f"{FOLDERS_VARIABLE} is not set"
            )
        staged = folder / f"{model.file}.local"
        staged.unlink(missing_ok=True)
        progress(f"{model.key}: from {found.parent}", 0, model.size_bytes)
        try:
            os.link(found.resolve(), staged)
        except OSError as error:
            if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
                raise
            shutil.copyfile(found, staged)
        progress(f"{model.key}: from {found.parent}", model.size_bytes, model.size_bytes)
        return staged

    def _find(self, model: Model) -> Path | None:
        found = (folder / model.file for folder in self._folders)
        return next((path for path in found if path.is_file()), None)
