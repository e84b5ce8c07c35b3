"""What the page is made from: the running service, the audit database, and the file."""

import asyncio
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine

from serving.config import Config, ConfigFile
from serving.results.kept import KeptResults

if TYPE_CHECKING:  # the service holds the sources, and the page the service
    from serving.dashboard.assets import Assets
    from serving.service import Service

ROOT: Final = "/dashboard"
PACKAGES: Final = ("jinja2", "plotly")
"""Those of the extra `dashboard`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a service must have for there to be a page.

    Attributes:
        database: the audit log's.
        url: of the database, for the words of a fault.
        config: as the file has it.
        root: path of the page.
        results: of the experiments, as they were computed last.
    """

    database: Engine
    url: str
    config: Config
    root: str = ROOT
    results: KeptResults = field(default_factory=KeptResults)

    async def start(self) -> None:
        """Nothing: the database is asked when somebody looks."""

    async def aclose(self) -> None:
        """Close the connections to the database."""
        await asyncio.to_thread(self.database.dispose)


def sources(file: ConfigFile, database: Engine) -> Sources | None:
    """What a page is made from; None where it is not wanted, or its packages are not installed.

    Args:
        file: the configuration.
        database: the audit log's, best with connections that nobody else needs: who looks at the
            page must not keep a worker from following overrides.
    """
    there = all(find_spec(package) is not None for package in PACKAGES)
    if not (file.config.server.dashboard and there):
        return None
    return Sources(database=database, url=file.audit_url, config=file.config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All that the views share."""

    service: "Service"
    sources: Sources
    assets: "Assets"

    @property
    def database(self) -> Engine:
        """The audit log's."""
        return self.sources.database
