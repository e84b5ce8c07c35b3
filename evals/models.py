"""The models that outcomes are collected from: started here, or running somewhere else."""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.backends.wrappers.retry import Retries, RetryingBackend
from cascade.errors import ConfigError
from cascade.protocols import Backend
from evals.outcomes import ModelIdentity
from serving.models.catalogue import CATALOGUE
from serving.models.fetch import locate
from serving.models.fleet import Fleet, prepare
from serving.models.home import home, models_folder
from serving.models.launch import Launch
from serving.models.sources import Progress, silent

SERVER: Final = "xllamacpp"
CONTEXT_TOKENS: Final = 4096
RETRIES: Final = Retries(
    times=5, base_seconds=1.0, cap_seconds=30.0, retry_after_seconds=60.0, within_seconds=300.0
)
"""Patient enough for a model server that died to be started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a tier's model is.

    Attributes:
        tier: the tier's name.
        model: a catalogue key or .gguf file to start, or the model's name at the address.
        url: address that ends in /v1; empty for a model that is started here.
    """

    tier: str
    model: str
    url: str = ""


def source(text: str) -> Source:
    """The source that TIER=MODEL or TIER=MODEL@URL stands for.

    Raises:
        ConfigError: it is neither.
    """
    tier, _, rest = text.partition("=")
    model, _, url = rest.partition("@")
    if not tier or not model or (url and not url.startswith(("http://", "https://"))):
        raise ConfigError(
            f"{text!r} is not TIER=MODEL or TIER=MODEL@URL, as small=qwen2.5-coder-0.5b"
        )
    return Source(tier=tier, model=model, url=url)


def identity(source: Source, progress: Progress = silent) -> ModelIdentity:
    """Which model it is; fetches and reads the file of one that is to be started."""
    if source.url:
        return ModelIdentity(model=source.model)
    file = locate(source.model, home(), progress)
    known = CATALOGUE.get(source.model)
    return ModelIdentity(
        model=source.model if known else file.stem,
        sha256=known.sha256 if known else _sha256(file),
        server=f"{SERVER} {_installed(SERVER)}",
    )


@asynccontextmanager
async def running(
    sources: list[Source], api_key: str | None = None
) -> AsyncIterator[Mapping[str, Backend]]:
    """The backends by tier, in the sources' order, until the block ends.

    Raises:
        ConfigError: a model cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="cascade-evals-") as name:
        fleet = _fleet([source for source in sources if not source.url], Path(name))
        await fleet.start()
        backends = {source.tier: _backend(source, fleet, api_key) for source in sources}
        try:
            yield backends
        finally:
            await asyncio.gather(*(backend.aclose() for backend in backends.values()))
            await fleet.stop()


def _fleet(sources: list[Source], folder: Path) -> Fleet:
    launches = [
        Launch(tier=source.tier, model=source.model, context=CONTEXT_TOKENS, slots=1)
        for source in sources
    ]
    return own_fleet(launches, folder)


def own_fleet(launches: Sequence[Launch], folder: Path, progress: Progress = silent) -> Fleet:
    """Model servers with logs and run files of their own, in a folder that is empty.

    A service that runs at the same time is left alone.

    Raises:
        ConfigError: a model file cannot be had.
    """
    models_folder(folder).symlink_to(models_folder(home()))
    return prepare(launches, folder, progress=progress)


def _backend(source: Source, fleet: Fleet, api_key: str | None) -> Backend:
    server = fleet.servers.get(source.tier)
    backend = OpenAIHttpBackend(
        url=f"{server.url}/v1" if server else source.url,
        model=server.state.model if server else source.model,
        api_key=server.api_key if server else api_key,
    )
    return RetryingBackend(backend, RETRIES)


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"
