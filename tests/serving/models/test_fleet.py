import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from cascade.errors import ConfigError
from serving.models.fleet import Fleet, prepare
from serving.models.launch import Launch
from serving.models.state import Phase, publish


@pytest.fixture
def weights(tmp_path: Path) -> str:
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    return str(tmp_path / "own.gguf")


def test_addresses_and_keys_are_known_before_anything_runs(weights, tmp_path):
    launches = [Launch(tier="small", model=weights), Launch(tier="large", model=weights)]
    servers = prepare(launches, tmp_path).servers
    assert list(servers) == ["small", "large"]
    assert servers["small"].url != servers["large"].url
    assert servers["small"].api_key != servers["large"].api_key
    assert servers["small"].state.model == "own"
    assert servers["small"].state.state is Phase.STOPPED


def test_a_fixed_port_is_kept(weights, tmp_path):
    fleet = prepare([Launch(tier="small", model=weights, port=12345)], tmp_path)
    assert fleet.servers["small"].url == "http://127.0.0.1:12345"


def test_two_launches_of_one_tier_are_refused(weights, tmp_path):
    launch = Launch(tier="small", model=weights)
    with pytest.raises(ConfigError, match=r"same tier: \['small'\]"):
        prepare([launch, launch], tmp_path)


def test_two_launches_on_one_port_are_refused(weights, tmp_path):
    launches = [Launch(tier=tier, model=weights, port=12345) for tier in ("small", "large")]
    with pytest.raises(ConfigError, match=r"same port: \['12345'\]"):
        prepare(launches, tmp_path)


def test_a_missing_model_file_is_refused_before_anything_starts(tmp_path):
    with pytest.raises(ConfigError, match="there is no model file"):
        prepare([Launch(tier="small", model=str(tmp_path / "none.gguf"))], tmp_path)


async def test_an_empty_fleet_starts_and_stops(tmp_path):
    fleet = prepare([], tmp_path)
    await fleet.start()
    await fleet.stop()
    assert fleet.states() == []


async def test_all_servers_start_and_stop_together(rig, tmp_path):
    fleet = Fleet([rig.server(tier="small"), rig.server(tier="large")], tmp_path)
    await fleet.start()
    assert [(state.tier, state.state) for state in fleet.states()] == [
        ("small", Phase.READY),
        ("large", Phase.READY),
    ]
    await fleet.stop()
    assert {state.state for state in fleet.states()} == {Phase.STOPPED}


async def test_starting_sweeps_away_what_a_killed_service_left(rig, dead, tmp_path):
    left = replace(rig.server(tier="old").state, state=Phase.READY, supervisor=dead)
    publish(left, tmp_path)
    await Fleet([], tmp_path).start()
    assert not list((tmp_path / "run").iterdir())


async def test_when_one_does_not_start_the_others_are_stopped(rig, tmp_path):
    fleet = Fleet([rig.server(tier="small"), rig.server("--fail", tier="large")], tmp_path)
    with pytest.raises(ConfigError, match="tier 'large'"):
        await fleet.start()
    assert [state.state for state in fleet.states()] == [Phase.STOPPED, Phase.FAILED]


async def test_when_several_do_not_start_each_is_named(rig, tmp_path):
    fleet = Fleet([rig.server("--fail", tier=tier) for tier in ("small", "large")], tmp_path)
    with pytest.raises(ConfigError, match=r"(?s)tier 'small'.*tier 'large'"):
        await fleet.start()


async def test_a_start_that_is_cancelled_stops_all(rig, tmp_path):
    fleet = Fleet([rig.server(tier="small"), rig.server("--sick", tier="large")], tmp_path)
    starting = asyncio.create_task(fleet.start())
    await rig.told_of(Phase.READY)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert {state.state for state in fleet.states()} == {Phase.STOPPED}


async def test_who_comes_later_is_told_as_well(rig, tmp_path):
    fleet = Fleet([rig.server(tier="small"), rig.server(tier="large")], tmp_path)
    told = []
    fleet.listen(told.append)
    await fleet.start()
    await fleet.stop()
    assert {state.tier for state in told} == {"small", "large"}
    assert [state.state for state in told if state.tier == "small"] == [
        Phase.STARTING,
        Phase.READY,
        Phase.STOPPED,
    ]
    assert len(rig.told) == len(told)
