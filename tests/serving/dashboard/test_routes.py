"""What holds for the page as a whole."""

import aiohttp
import pytest

from cascade.engine import CascadeEngine
from serving.app import create_app
from serving.commands.options import wire
from serving.config import ConfigFile
from serving.dashboard import visit
from serving.dashboard.assets import Assets
from serving.dashboard.page import ROOT, Sources
from serving.dashboard.routes import HEADERS
from serving.service import Service
from tests.services import MemoryLog, NoServers, listening
from tests.showing import CONFIG


class Broken:
    """A database that fails in a way that nobody thought of."""

    def connect(self):
        raise ZeroDivisionError


@pytest.fixture
def broken():
    file, log = ConfigFile(CONFIG), MemoryLog()
    return Service(
        engine=CascadeEngine(wire(file), log),
        sink=log,
        servers=NoServers(),
        max_body_bytes=1_000,
        page=Sources(database=Broken(), url=file.audit_url, config=file.config),
    )


async def test_a_bug_is_a_page_that_is_guarded_like_any_other(broken):
    async with (
        listening(create_app(broken)) as url,
        aiohttp.ClientSession() as session,
        session.get(f"{url}{ROOT}/") as answer,
    ):
        body = await answer.text()
        assert answer.status == 500
        assert "its log says more" in body
        assert "ZeroDivisionError" not in body
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert answer.headers["cache-control"] == "no-store"


def test_every_template_can_be_compiled_and_every_file_packed_before_they_are_asked_for():
    visit.compiled()
    assets = Assets(ROOT)
    assets.prepare()
    assert assets.styled
