import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from serving.models import state
from serving.models.catalogue import lookup
from serving.models.home import models_folder
from serving.models.state import Phase, ServerState
from serving.models.status import file_statuses, server_statuses


@pytest.fixture
def server(tmp_path: Path) -> ServerState:
    return ServerState(
        tier="small",
        model="fake",
        url="http://127.0.0.1:9",
        port=9,
        log=state.log_file(tmp_path, "small"),
        since=time.time(),
        supervisor=os.getpid(),
        state=Phase.READY,
    )


def test_every_model_of_the_catalogue_is_listed_there_or_not(tmp_path: Path):
    folder = models_folder(tmp_path)
    folder.mkdir()
    small = lookup("qwen2.5-coder-0.5b")
    (folder / small.file).write_bytes(b"half")
    found = {status.model.key: status for status in file_statuses(tmp_path)}
    assert found[small.key].size_bytes == 4
    assert not found[small.key].verified
    assert found[small.key].path == folder / small.file
    assert found["qwen2.5-coder-1.5b"].size_bytes == 0


async def test_a_running_server_answers(rig, tmp_path: Path):
    running = rig.server()
    await running.start()
    (found,) = server_statuses(tmp_path)
    assert found.state == running.state
    assert found.answers


def test_a_server_that_is_written_down_but_gone_does_not_answer(server, tmp_path: Path):
    state.publish(server, tmp_path)
    (found,) = server_statuses(tmp_path)
    assert found.state == server
    assert not found.answers


def test_a_server_whose_supervisor_was_killed_is_stale(server, dead, tmp_path: Path):
    state.publish(replace(server, supervisor=dead), tmp_path)
    (found,) = server_statuses(tmp_path)
    assert found.state.state is Phase.STALE
    assert not found.answers


def test_stale_servers_are_swept_away_and_living_ones_are_not(server, dead, tmp_path: Path):
    state.publish(server, tmp_path)
    state.publish(replace(server, supervisor=dead), tmp_path)
    assert len(state.published(tmp_path)) == 2
    state.sweep(tmp_path)
    assert state.published(tmp_path) == [server]


def test_two_services_do_not_overwrite_each_others_state(server, tmp_path: Path):
    state.publish(server, tmp_path)
    state.publish(replace(server, supervisor=os.getppid()), tmp_path)
    assert {one.supervisor for one in state.published(tmp_path)} == {os.getpid(), os.getppid()}


def test_a_run_file_that_cannot_be_read_is_passed_over(server, tmp_path: Path):
    state.publish(server, tmp_path)
    (tmp_path / "run" / "odd.json").write_text("{half")
    (tmp_path / "run" / "older.json").write_text('{"tier": "x", "state": "ready", "log": "y"}')
    assert state.published(tmp_path) == [server]


def test_a_tiers_name_cannot_lead_out_of_the_folder(server, tmp_path: Path):
    state.publish(replace(server, tier="../../etc"), tmp_path)
    assert state.log_file(tmp_path, "../../etc").parent == tmp_path / "logs"
    assert len(list((tmp_path / "run").iterdir())) == 1


def test_without_a_home_there_is_nothing(tmp_path: Path):
    assert server_statuses(tmp_path / "none") == []
    assert not any(status.size_bytes for status in file_statuses(tmp_path / "none"))
