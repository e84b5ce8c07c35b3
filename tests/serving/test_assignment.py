"""Which key of a request is sticky, and that a request keeps the configuration it began under."""

import asyncio
from dataclasses import replace

import orjson
import pytest

from cascade.backends.scripted import Script
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from tests.apis import APIS, CHAT, app_of, ask
from tests.builders import request
from tests.engines import Bench, tier
from tests.services import snapshot


def sticky(unit, **change):
    file = snapshot()
    trial = replace(file.experiments["auto"], unit=unit, **change)
    return replace(file, experiments={"auto": trial})


async def unit_of(file, headers=(), model="auto", api=CHAT, **body):
    app, log = app_of(file)
    answer = await ask(app, api.path, orjson.dumps(api.body(model=model, **body)), headers)
    assert answer.status == 200, answer.body
    return log.results[0].request.unit


SESSION = (b"x-cascade-session", b"s-9")


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
@pytest.mark.parametrize(
    ("unit", "header", "expected"),
    [
        ("session", (b"x-cascade-tenant", b"acme"), "s-9"),
        ("tenant", (b"x-cascade-tenant", b"acme"), "acme"),
        ("header:x-team", (b"x-team", b"search"), "search"),
        ("header:x-team", (b"x-other", b"search"), "s-9"),
        ("header:x-team", (b"x-team", b""), "s-9"),
        ("header:x-team", (b"x-team", b"\xff\xe9"), "\xff\xe9"),
        ("user", (b"x-team", b"search"), "s-9"),
    ],
)
async def test_the_key_that_the_experiment_names_is_sticky(api, unit, header, expected):
    assert await unit_of(sticky(unit), [SESSION, header], api=api) == expected


async def test_a_user_is_a_unit_and_a_request_is_another_each_time():
    assert await unit_of(sticky("user"), [SESSION], user="ann") == "ann"
    one, two = [await unit_of(sticky("request"), [SESSION]) for _ in range(2)]
    assert one != two


async def test_a_long_header_is_kept_as_its_hash():
    assert len(await unit_of(sticky("header:x-team"), [(b"x-team", b"x" * 5000)])) < 50


async def test_who_asks_for_a_covered_policy_has_a_unit_and_nobody_else_has():
    file = sticky("session", covers=("always-small",))
    assert await unit_of(file, [SESSION], "always-small") == "s-9"
    assert await unit_of(file, [SESSION], "cascade") == ""
    assert await unit_of(file, [SESSION], "large") == ""


async def test_who_pins_a_tier_is_in_no_experiment():
    headers = [SESSION, (b"x-cascade-pin", b"large")]
    assert await unit_of(sticky("session"), headers) == ""


async def test_a_request_keeps_the_configuration_that_it_began_under():
    slow = tier("small", Script(text="old", first_token_seconds=0.2))
    bench = Bench(slow, tier("large", "old"), arm=fixed("small", "large"))
    engine, before = bench.engine, bench.engine.snapshot
    under_way = asyncio.create_task(engine.run(request(), bench.arm))
    await asyncio.sleep(0.05)
    engine.snapshot = replace(before, version="v2", tiers={}, ruled_out=lambda _: {"small": "no"})
    result = await under_way
    assert (result.completion.text, result.config_version) == ("old", "v1")


async def test_a_stream_is_answered_under_the_configuration_its_arm_is_of():
    bench = Bench(tier("small", "old"), arm=fixed("small"))
    before = bench.engine.snapshot
    events = bench.engine.events(request(), bench.arm, snapshot=before)
    bench.engine.snapshot = replace(before, version="v2", ruled_out=lambda _: {"small": "is gone"})
    results = [event.result async for event in events if hasattr(event, "result")]
    assert (results[0].completion.text, results[0].config_version) == ("old", "v1")


def fixed(first, *fallback):
    return Arm(name=None, policy=FixedPolicy(name="fixed", tier=first, fallback=fallback))
