"""Brings a model file into the home folder: from the first source that has it, checked before use.

A file counts only once its size and sha256 are right. A stamp beside it then says so, with the
file's size and time, so that later starts need not read a gigabyte to know. A lock keeps two
processes from fetching the same file at once.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cascade.errors import ConfigError
from serving.models.catalogue import Model, lookup
from serving.models.home import models_folder
from serving.models.hub import Hub
from serving.models.sources import (
    FOLDERS_VARIABLE,
    LocalFolders,
    Progress,
    Source,
    SourceError,
    silent,
    size_of,
)
from serving.models.wheels import Wheels

_CHUNK_BYTES = 1 << 20

logger = logging.getLogger(__name__)


def free_bytes(folder: Path) -> int:
    """Disk space left where the folder lies."""
    return shutil.disk_usage(folder).free


def locate(model: str, home: Path, progress: Progress = silent) -> Path:
    """The file of a catalogue key, fetched where needed, or of a path that ends in .gguf.

    A file given by path is taken as it is: there is no sum to hold it against. Blocks.

    Raises:
        ConfigError: no such key or file, or the file cannot be had.
    """
    if not model.endswith(".gguf"):
        return ensure(lookup(model), home, progress)
    path = Path(model).expanduser().absolute()
    if not path.is_file():
        raise ConfigError(f"there is no model file {path}")
    return path


def ensure(
    model: Model,
    home: Path,
    progress: Progress = silent,
    *,
    sources: Sequence[Source] | None = None,
    free: Callable[[Path], int] = free_bytes,
) -> Path:
    """The verified model file; blocks, for minutes where it must be fetched.

    Args:
        model: which.
        home: the home folder; the file lies in its `models`.
        progress: told of bytes as they come.
        sources: asked in order; None for local folders, the hub, PyPI.
        free: says how many bytes a folder has room for.

    Raises:
        ConfigError: no source has it; the message lists each with its reason.
    """
    target = models_folder(home) / model.file
    if is_verified(target, model):
        return target
    with _lock(target, progress, model):
        if not _is_good(target, model, progress):
            asked = (LocalFolders(), Hub(), Wheels()) if sources is None else sources
            _fetch(model, target, asked, progress, free)
    return target


def is_verified(path: Path, model: Model) -> bool:
    """Whether the file's sum was found right, and the file has not changed since."""
    try:
        stamp = json.loads(_stamp(path).read_bytes())
    except (OSError, ValueError):
        return False
    return path.is_file() and stamp == _facts(path, model)


def _fetch(
    model: Model,
    target: Path,
    sources: Sequence[Source],
    progress: Progress,
    free: Callable[[Path], int],
) -> None:
    failures: list[str] = []
    for source in sources:
        try:
            _require_space(source.space_bytes(model, target.parent), target.parent, free)
            staged = source.fetch(model, target.parent, progress)
            _verify(staged, model, progress)
        except (SourceError, OSError) as error:
            logger.info("%s cannot be had from %s: %s", model.key, source.name, error)
            failures.append(f"  {source.name}: {error}")
            continue
        staged.replace(target)
        _write_stamp(target, model)
        _clear(target)
        logger.info("%s fetched from %s", model.key, source.name)
        return
    raise ConfigError(_nowhere(model, failures))


def _nowhere(model: Model, failures: Sequence[str]) -> str:
    advice = (
        f"Either give this machine a network with one of these, or put {model.file} into a "
        f"folder and name that folder in {FOLDERS_VARIABLE}."
    )
    title = f"the model {model.key} ({model.size_bytes / 1e9:.1f} GB) cannot be had:"
    return "\n".join((title, *failures, advice))


def _require_space(needed: int, folder: Path, free: Callable[[Path], int]) -> None:
    left = free(folder)
    if needed > left:
        raise SourceError(
            f"needs {needed / 1e9:.2f} GB of disk space in {folder}, {left / 1e9:.2f} GB are free"
        )


def _verify(staged: Path, model: Model, progress: Progress) -> None:
    """Delete the file and complain unless size and sum are the publisher's."""
    size = size_of(staged)
    found = _sha256(staged, model, progress) if size == model.size_bytes else ""
    if found == model.sha256:
        return
    staged.unlink(missing_ok=True)
    wrong = f"sha256 {found}" if found else f"{size} bytes"
    right = model.sha256 if found else f"{model.size_bytes}"
    raise SourceError(f"what came is not the model ({wrong}, not {right}); deleted")


def _is_good(target: Path, model: Model, progress: Progress) -> bool:
    """Whether the file that is there will do; stamps it, or deletes it, accordingly."""
    if is_verified(target, model):
        return True
    if not target.exists():
        return False
    try:
        _verify(target, model, progress)
    except SourceError as error:
        logger.warning("%s: %s", target, error)
        return False
    _write_stamp(target, model)
    return True


def _sha256(path: Path, model: Model, progress: Progress) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            progress(f"{model.key}: checking", file.tell(), model.size_bytes)
    return digest.hexdigest()


def _stamp(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")


def _facts(path: Path, model: Model) -> dict[str, str | int]:
    found = path.stat()
    return {"sha256": model.sha256, "size": found.st_size, "mtime_ns": found.st_mtime_ns}


def _write_stamp(path: Path, model: Model) -> None:
    stamp = _stamp(path)
    draft = stamp.with_name(f"{stamp.name}.{os.getpid()}")
    draft.write_text(json.dumps(_facts(path, model)))
    draft.replace(stamp)


def _lock_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _clear(target: Path) -> None:
    """Remove what sources that failed have left."""
    for path in target.parent.glob(f"{target.name}.*"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path not in {_stamp(target), _lock_file(target)}:
            path.unlink()


@contextlib.contextmanager
def _lock(target: Path, progress: Progress, model: Model) -> Iterator[None]:
    """Hold the file's lock; the system releases it whatever becomes of this process."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = _lock_file(target).open("w")
    except OSError as error:
        raise ConfigError(f"{error}; name a folder that can be written in CASCADE_HOME") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"{model.key}: another process is fetching it", 0, model.size_bytes)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
