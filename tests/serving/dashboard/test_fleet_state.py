from dataclasses import replace

from cascade.sight import Load
from serving.dashboard.fleet_state import fleet_state
from tests.services import NoServers, snapshot
from tests.showing import ModelServer, service_of


def test_a_tier_says_how_it_is_and_what_its_servers_have_to_do():
    shot = snapshot()
    loads = [Load(name="a", in_flight=2, waiting=1, most=4), Load(name="b", in_flight=0, most=4)]
    small = replace(shot.tiers["small"], loads=lambda: loads)
    shot = replace(shot, tiers={**shot.tiers, "small": small})
    [first, second] = fleet_state(service_of(shot, NoServers()))
    assert (first.name, first.state, first.ready) == ("small", "ready", True)
    assert (first.in_flight, first.waiting, first.most) == (2, 1, 8)
    assert [each.load.name for each in first.replicas] == ["a", "b"]
    assert (second.in_flight, second.most) == (None, None)


def test_a_server_that_is_not_up_says_why():
    server = ModelServer(tier="large", state="restarting", restarts=3, reason="it was killed")
    [_, large] = fleet_state(service_of(snapshot(), NoServers([server])))
    assert (large.state, large.ready, large.restarts) == ("restarting", False, 3)
    assert large.reason == "it was killed"
