import os
import sys
from pathlib import Path

import pytest

from cascade.errors import ConfigError
from serving.models.launch import Launch, quota, share_threads, usable_cores


def launches(*threads: int | None) -> list[Launch]:
    return [Launch(tier=f"t{n}", model="m", threads=own) for n, own in enumerate(threads)]


def test_a_launch_becomes_a_command():
    launch = Launch(tier="small", model="qwen2.5-coder-0.5b", context=4096, slots=3)
    command = launch.command(Path("/models/m.gguf"), 8101, 2)
    assert command[:3] == [sys.executable, "-m", "serving.models.llama_cpp"]
    assert " ".join(command[3:]) == (
        "--model /models/m.gguf --port 8101 --alias qwen2.5-coder-0.5b --context 4096 --slots 3 "
        "--threads 2 --cache-ram-mib 256"
    )


def test_a_model_given_by_path_is_called_by_its_file_name():
    assert Launch(tier="own", model="~/models/mine-q8.gguf").alias == "mine-q8"


@pytest.mark.parametrize(
    "wrong", [{"context": 0}, {"slots": 0}, {"threads": 0}, {"cache_ram_mib": -1}, {"port": 0}]
)
def test_numbers_that_cannot_work_are_refused_by_name(wrong: dict[str, int]):
    (name,) = wrong
    with pytest.raises(ConfigError, match=f"tier 'small': {name} is "):
        Launch(tier="small", model="m", **wrong)


@pytest.mark.parametrize(
    ("cores", "own", "each"),
    [
        (2, (None,), 2),
        (2, (None, None), 1),
        (8, (None, None), 4),
        (1, (None, None, None), 1),
        (64, (None, None), 8),
        (8, (2, None, None), 3),
        (2, (4, None), 1),
    ],
)
def test_cores_are_shared_out_and_never_given_twice(
    cores: int, own: tuple[int | None, ...], each: int
):
    assert share_threads(launches(*own), cores) == each


def test_usable_cores_are_some_of_the_machines():
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("text", "cores"),
    [("max 100000\n", None), ("250000 100000\n", 2), ("50000 100000\n", 0), ("odd", None)],
)
def test_a_containers_quota_counts(tmp_path: Path, text: str, cores: int | None):
    (tmp_path / "cpu.max").write_text(text)
    assert quota(tmp_path / "cpu.max") == cores
    assert quota(tmp_path / "none") is None
