import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

import aiohttp
import pytest

from cascade.errors import ConfigError
from serving.models.state import Phase, ServerState
from serving.models.supervisor import Timing

HERE = Path(__file__).parent


async def reply(url: str) -> str:
    """What the server at that address says; empty when nothing answers."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        timeout = aiohttp.ClientTimeout(total=1)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
            return await response.text()
    return ""


async def silent(url: str) -> None:
    async with asyncio.timeout(10):
        while await reply(url):
            await asyncio.sleep(0.01)


def phases(told: list[ServerState]) -> list[Phase]:
    return [state.state for state in told]


async def test_a_server_is_healthy_when_start_returns_and_gone_when_stop_does(rig):
    server = rig.server()
    await server.start()
    assert (await reply(server.url)).split()[0] == str(server.state.pid)
    await server.stop()
    assert not await reply(server.url)
    assert phases(rig.told) == [Phase.STARTING, Phase.READY, Phase.STOPPED]
    assert server.state.pid is None


async def test_health_checks_carry_the_key_that_the_server_was_given(rig):
    server = rig.server()
    await server.start()
    assert server.state.log.read_text() == f"key {server.api_key}\n"


async def test_a_killed_server_comes_back_on_the_same_port_with_the_same_key(rig):
    server = rig.server()
    await server.start()
    first = server.state
    os.kill(first.pid, signal.SIGKILL)
    again = await rig.told_of(Phase.READY, times=2)
    assert again.restarts == 1
    assert (await reply(first.url)).split()[0] == str(again.pid) != str(first.pid)
    assert server.state.log.read_text() == f"key {server.api_key}\n" * 2
    down = await rig.told_of(Phase.RESTARTING)
    assert down.reason == "its process ended by SIGKILL"
    assert down.pid is None


async def test_a_hung_server_is_replaced(rig):
    server = rig.server(stop=0.1)
    await server.start()
    first = server.state.pid
    os.kill(first, signal.SIGSTOP)
    again = await rig.told_of(Phase.READY, times=2)
    assert again.pid != first
    reason = (await rig.told_of(Phase.RESTARTING)).reason
    assert reason == "it left 3 health checks in a row without an answer"


def test_a_server_that_keeps_failing_is_started_ever_less_often():
    timing = Timing(backoff=0.5, backoff_limit=10)
    assert [timing.pause(n) for n in range(1, 7)] == [0.5, 1, 2, 4, 8, 10]
    assert timing.pause(10_000) == 10


def test_a_steady_life_makes_earlier_failures_forgotten():
    timing = Timing(steady=60)
    assert timing.failures(5, lived=59) == 6
    assert timing.failures(5, lived=60) == 1


async def test_a_server_is_started_again_however_often_it_dies(rig):
    server = rig.server()
    await server.start()
    for round_ in range(1, 5):
        os.kill((await rig.told_of(Phase.READY, times=round_)).pid, signal.SIGKILL)
    await rig.told_of(Phase.READY, times=5)
    assert server.state.restarts == 4


async def test_a_server_that_takes_no_notice_is_killed(rig):
    server = rig.server("--stubborn", stop=0.2)
    await server.start()
    await server.stop()
    await silent(server.url)
    assert server.state.state is Phase.STOPPED


async def test_a_server_is_asked_before_it_is_killed(rig):
    server = rig.server()
    await server.start()
    await server.stop()
    assert server.state.log.read_text().endswith("asked to end\n")


async def test_a_long_log_moves_aside_at_the_start_and_later(rig):
    server = rig.server()
    log, old = server.state.log, server.state.log.with_name("small.log.1")
    log.parent.mkdir()
    log.write_bytes(b"x" * 5_000_001)
    await server.start()
    assert old.stat().st_size == 5_000_001
    assert log.stat().st_size < 100
    old.unlink()
    with log.open("ab") as file:
        file.write(b"y" * 5_000_001)
    async with asyncio.timeout(10):
        while not old.exists():
            await asyncio.sleep(0.01)


async def test_a_start_that_fails_shows_the_end_of_the_log_and_where_it_lies(rig):
    server = rig.server("--fail")
    with pytest.raises(ConfigError) as caught:
        await server.start()
    said = str(caught.value)
    assert "tier 'small' (fake) did not start: its process ended with status 1" in said
    assert said.endswith("ends\nthe model file is broken")
    assert str(server.state.log) in said
    assert server.state.state is Phase.FAILED
    assert rig.told[-1].state is Phase.FAILED


async def test_what_an_earlier_run_logged_is_not_blamed_on_this_one(rig):
    server = rig.server("--fail")
    server.state.log.parent.mkdir()
    server.state.log.write_text("an old story\n")
    with pytest.raises(ConfigError) as caught:
        await server.start()
    assert "an old story" not in str(caught.value)
    assert server.state.log.read_text().startswith("an old story\n")


async def test_a_start_that_takes_too_long_fails(rig):
    server = rig.server("--sick", start=0.5)
    with pytest.raises(ConfigError, match="not ready within 0"):
        await server.start()
    await silent(server.url)


async def test_a_command_that_does_not_exist_fails(rig, tmp_path):
    server = rig.server(program=str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="No such file"):
        await server.start()


async def test_a_taken_port_is_named(rig):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is in use by another process"):
            await rig.server(port=port).start()


async def test_a_start_that_is_cancelled_leaves_nothing_behind(rig):
    server = rig.server("--sick")
    starting = asyncio.create_task(server.start())
    async with asyncio.timeout(10):
        while not await reply(server.url):
            await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await silent(server.url)
    assert server.state.state is Phase.STOPPED


async def test_a_server_cannot_be_started_twice_but_again_after_a_stop(rig):
    server = rig.server()
    await server.start()
    with pytest.raises(RuntimeError, match="started before"):
        await server.start()
    await server.stop()
    await server.start()
    assert server.state.state is Phase.READY


async def test_a_listener_whose_terminal_is_gone_stops_no_model(rig):
    server = rig.server()
    rig.terminal_closed = True
    await server.start()
    assert server.state.state is Phase.READY


async def test_other_processes_can_read_the_state_until_the_server_stops(rig, tmp_path):
    server = rig.server()
    await server.start()
    (file,) = (tmp_path / "run").iterdir()
    written = json.loads(file.read_text())
    assert written["pid"] == server.state.pid
    assert written["state"] == "ready"
    assert written["url"] == server.url
    assert server.api_key not in file.read_text()
    await server.stop()
    assert not list((tmp_path / "run").iterdir())


async def test_a_run_folder_that_cannot_be_written_stops_no_model(rig, tmp_path):
    (tmp_path / "run").write_text("in the way")
    server = rig.server()
    await server.start()
    assert server.state.state is Phase.READY


async def test_a_server_dies_with_a_supervisor_that_is_killed(tmp_path):
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "parent.py"),
        str(tmp_path),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(HERE.parents[2])},
    )
    url = (await parent.stdout.readline()).decode().strip()
    assert await reply(url)
    parent.kill()
    await parent.wait()
    await silent(url)
