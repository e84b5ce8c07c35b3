"""What there is of models and model servers on this machine, for `cascade models status`."""

import urllib.request
from dataclasses import dataclass
from pathlib import Path

from serving.models.catalogue import CATALOGUE, Model
from serving.models.fetch import is_verified
from serving.models.home import models_folder
from serving.models.sources import size_of
from serving.models.state import Phase, ServerState, published

_PROBE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """One model of the catalogue.

    Attributes:
        path: where its file lies or will lie.
        size_bytes: what is there; 0 for nothing.
        verified: its sum was right and it has not changed since.
    """

    model: Model
    path: Path
    size_bytes: int
    verified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """One model server that some process has written down.

    Attributes:
        answers: whether it answered a health check just now.
    """

    state: ServerState
    answers: bool


def file_statuses(home: Path) -> list[FileStatus]:
    """Every model of the catalogue; reads no model file."""
    folder = models_folder(home)
    return [
        FileStatus(
            model=model,
            path=folder / model.file,
            size_bytes=size_of(folder / model.file),
            verified=is_verified(folder / model.file, model),
        )
        for model in CATALOGUE.values()
    ]


def server_statuses(home: Path) -> list[ServerStatus]:
    """Every server written down, each asked after its health; blocks up to a second a server."""
    return [
        ServerStatus(state=state, answers=state.state is not Phase.STALE and _answers(state.url))
        for state in published(home)
    ]


def _answers(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/health", timeout=_PROBE_SECONDS) as response:
            return bool(response.status == 200)  # noqa: PLR2004 - the number is the name
    except (OSError, ValueError):
        return False
