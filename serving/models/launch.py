"""What is to be launched for a tier, and with how many threads.

Measured on two cores that are otherwise idle, tokens/s of the 0.5B and the 1.5B model: with two
threads each, 64 and 38 alone but 14 and 9 when both generate; with one thread each, 49 and 25
alone and 44 and 24 together. llama.cpp's threads wait for each other by spinning, so more threads
than cores make every one of them wait for one that is not running; when anything else is busy as
well it comes to a crawl. So the cores are shared out among the servers, never given twice.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cascade.errors import ConfigError

_MOST_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One model server to run.

    Attributes:
        tier: the tier it serves.
        model: key in the catalogue, or the path of a .gguf file.
        context: tokens of prompt and answer together, in each slot.
        slots: requests it works on at the same time; others wait.
        threads: for computing; None shares the usable cores out among all servers.
        cache_ram_mib: memory for prompts that no slot holds any more; 0 for none.
        port: on the loopback interface; None takes a free one.
    """

    tier: str
    model: str
    context: int = 8192
    slots: int = 2
    threads: int | None = None
    cache_ram_mib: int = 256
    port: int | None = None

    def __post_init__(self) -> None:
        least = {"context": 64, "slots": 1, "threads": 1, "cache_ram_mib": 0, "port": 1}
        for name, lowest in least.items():
            value = getattr(self, name)
            if value is not None and value < lowest:
                raise ConfigError(f"tier {self.tier!r}: {name} is {value}, below {lowest}")

    def command(self, file: Path, port: int, threads: int) -> list[str]:
        """What starts the server's process."""
        options = {
            "model": file,
            "port": port,
            "alias": self.alias,
            "context": self.context,
            "slots": self.slots,
            "threads": threads,
            "cache-ram-mib": self.cache_ram_mib,
        }
        flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        return [sys.executable, "-m", "serving.models.llama_cpp", *flags]

    @property
    def alias(self) -> str:
        """How the server calls its model."""
        return Path(self.model).stem if self.model.endswith(".gguf") else self.model


def share_threads(launches: Sequence[Launch], cores: int) -> int:
    """Threads for each launch that does not fix its own: an equal share of the cores, up to 8."""
    fixed = [launch.threads for launch in launches if launch.threads is not None]
    sharing = max(1, len(launches) - len(fixed))
    return min(_MOST_THREADS, max(1, (cores - sum(fixed)) // sharing))


def usable_cores() -> int:
    """Cores this process may use: those of the machine, less by affinity or a container's quota."""
    cores = os.cpu_count() or 1
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, quota(Path("/sys/fs/cgroup/cpu.max")) or cores))


def quota(file: Path) -> int | None:
    """Whole cores that a control group's `cpu.max` (version 2) allows; None without a limit."""
    try:
        quota, period = file.read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) // int(period)
