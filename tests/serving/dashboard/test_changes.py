"""What forms of the page change."""

import pytest

from serving.overrides.store import history, state


@pytest.fixture
async def operator(visiting, database, tmp_path):
    visitor, service = await visiting(database.url, tmp_path)

    async def send(path, seen=None, **fields):
        csrf = await visitor.csrf(seen or path)
        return await visitor.post(path, csrf=csrf, why="to see", **fields)

    return send, service


async def test_turning_an_arm_off_and_on_again_moves_its_weight(operator):
    send, service = operator
    status, _, answer = await send(
        "/experiments/auto", action="arm_off", arm="control", version="0"
    )
    assert (status, answer.headers["location"]) == (303, "/dashboard/experiments/auto")
    weights = service.engine.snapshot.experiments["auto"].terms.weights
    assert weights == {"control": 0.0, "cascade": 50.0}
    [made] = history(service.watcher.database)
    await send("/experiments/auto", action="arm_on", arm="control", version=str(made.version))
    weights = service.engine.snapshot.experiments["auto"].terms.weights
    assert weights == {"control": 50.0, "cascade": 50.0}


async def test_an_experiment_is_stopped_started_and_given_back_to_the_file(operator):
    send, service = operator
    await send("/experiments/auto", action="stop", version="0")
    assert not service.engine.snapshot.experiments["auto"].enabled
    [made] = history(service.watcher.database)
    await send("/experiments/auto", action="restore", version=str(made.version))
    assert service.engine.snapshot.experiments["auto"].enabled
    assert state(service.watcher.database) == {}


async def test_shares_and_ramp_are_set_for_a_time(operator):
    send, service = operator
    fields = {"weight.control": "90", "weight.cascade": "10", "ramp": "20", "minutes": "5"}
    await send("/experiments/auto", action="set", version="0", **fields)
    terms = service.engine.snapshot.experiments["auto"].terms
    assert terms.weights == {"control": 90.0, "cascade": 10.0}
    assert terms.ramp == 0.2
    [made] = history(service.watcher.database)
    assert made.until is not None


async def test_who_changes_what_somebody_else_changed_is_told_so(operator):
    send, service = operator
    await send("/experiments/auto", action="stop", version="0")
    status, body, _ = await send("/experiments/auto", action="start", version="0")
    assert status == 412
    assert 'role="alert"' in body
    assert not service.engine.snapshot.experiments["auto"].enabled


async def test_a_tier_is_drained_and_let_in_again(operator):
    send, service = operator
    await send("/fleet", action="drain", tier="large", minutes="10")
    [made] = history(service.watcher.database)
    assert (made.subject, made.until is not None) == ("drain:large", True)
    await send("/fleet", action="undrain", tier="large")
    assert state(service.watcher.database) == {}
    await send("/fleet", action="pin", tier="small")
    assert service.engine.snapshot.pinned is not None
    await send("/fleet", action="unpin")
    assert service.engine.snapshot.pinned is None


@pytest.mark.parametrize("action", ["stop", "arm_off", "arm_on", "set", "restore"])
async def test_an_experiment_that_is_not_there_any_more_is_a_404(operator, action):
    send, service = operator
    fields = {"action": action, "arm": "cascade", "ramp": "5"}
    status, body, _ = await send("/experiments/gone", seen="/fleet", **fields)
    assert status == 404
    assert "There is no experiment of that name." in body
    assert history(service.watcher.database) == []


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/experiments/auto", {"action": "explode"}),
        ("/experiments/auto", {"action": "set", "ramp": "many"}),
        ("/experiments/auto", {"action": "set", "weight.nobody": "1"}),
        ("/experiments/auto", {"action": "arm_off", "arm": "nobody"}),
        ("/fleet", {"action": "drain", "tier": "nobody"}),
        ("/fleet", {"action": "explode", "tier": "small"}),
        ("/fleet", {"action": "pin", "tier": "small", "minutes": "nan"}),
        ("/fleet", {"action": "pin", "tier": "small", "minutes": "1e300"}),
        ("/fleet", {"action": "pin", "tier": "small", "minutes": "43201"}),
        ("/fleet", {"action": "pin", "tier": "small", "minutes": "0"}),
        ("/fleet", {"action": "pin", "tier": "sm\0all"}),
        ("/fleet", {"action": "unpin"}),
    ],
)
async def test_what_cannot_be_is_refused_as_a_page(operator, path, fields):
    send, service = operator
    status, body, _ = await send(path, **fields)
    assert status == 400
    assert 'role="alert"' in body
    assert history(service.watcher.database) == []
