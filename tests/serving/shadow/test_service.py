"""Shadow calls of a whole service, from the request to the audit log."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from cascade.backends.scripted import Script
from cascade.engine import CascadeEngine
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from serving.app import create_app
from serving.config import Judge, Shadow
from serving.metrics.metrics import Metrics
from serving.service import Service
from serving.shadow.make import shadows_of
from serving.store import queries
from serving.store.present import request_view
from serving.store.sink import SqlAuditSink
from tests.chats import lines, post
from tests.engines import FixedJudge, tier
from tests.services import NoServers, listening, snapshot
from tests.serving.store.waiting import eventually, stored_attempts

ASK = {"model": "always-small", "messages": [{"role": "user", "content": "what is 2+2?"}]}
JSON = {"content-type": "application/json"}
SLOW = Script(text="4", first_token_seconds=0.5)


def known(large=("4",)):
    made = snapshot()
    quality = FixedJudge(0.25, name="quality")
    tiers = {**made.tiers, "large": tier("large", *large)}
    return replace(made, tiers=tiers, judges={**made.judges, "quality": quality})


@asynccontextmanager
async def serving(made, engine, sink, **changes):
    settings = Shadow(share=1.0, usd_per_day=1, judges=["quality"], **changes)
    metrics = Metrics(CascadeEngine(made, sink).forecast)
    shadows = shadows_of(
        settings,
        engine,
        judges={"quality": Judge(type="format")},
        launched=["large"],
        snapshot=lambda: made,
        forecast=metrics.forecast,
        inner=sink,
        log=sink,
        told=metrics,
    )
    service = Service(
        engine=CascadeEngine(made, shadows, forecast=metrics.forecast),
        sink=sink,
        servers=NoServers(),
        max_body_bytes=1_000_000,
        metrics=metrics,
        background=[shadows],
        shadows=shadows,
    )
    async with listening(create_app(service)) as url:
        yield SimpleNamespace(url=url, metrics=metrics, shadows=shadows)


async def test_a_request_has_its_shadow_calls_in_the_log_behind_its_own(engine, spool):
    async with serving(known(), engine, SqlAuditSink(engine, spool)) as service:
        status, headers, _ = await post(service, json.dumps(ASK), **JSON)
        assert status == 200
        identity, paid = headers["x-cascade-request-id"], headers["x-cascade-cost-usd"]
        await asyncio.to_thread(eventually, lambda: len(stored_attempts(engine)) == 4)
    record = queries.show(engine, identity)
    told = [(each.kind, each.tier, each.judge, each.propensity) for each in record.attempts]
    assert told == [
        ("answer", "small", None, None),
        ("shadow", "small", "quality", 1.0),
        ("shadow", "large", None, 1.0),
        ("shadow", "large", "quality", 1.0),
    ]
    assert record.answers == 1
    assert record.cost_pico == round(float(paid) * 1e12) == record.attempts[0].cost_pico
    console = Console(width=100, record=True)
    console.print(request_view(record))
    shown = " ".join(console.export_text().split())
    assert "large, shadow: not asked for the answer" in shown
    assert "drawn with probability 1" in shown
    assert "quality judges small" in shown
    assert "score 0.250" in shown
    counted = service.metrics.told([], None).decode()
    assert 'cascade_attempts_total{kind="shadow",outcome="done",tier="large"} 2.0' in counted


async def test_a_streamed_answer_is_whole_before_another_tier_is_asked(engine, spool):
    made = known(large=(SLOW,))
    async with serving(made, engine, SqlAuditSink(engine, spool)) as service:
        _, streamed = await lines(service, **ASK)
        assert "data: [DONE]" in streamed
        assert stored_attempts(engine) == []
        await asyncio.to_thread(eventually, lambda: len(stored_attempts(engine)) == 4)


async def test_many_clients_are_answered_while_shadow_calls_are_slow(engine, spool):
    made = known(large=(SLOW,))
    async with serving(made, engine, SqlAuditSink(engine, spool)) as service:
        async with asyncio.timeout(5):
            answers = await asyncio.gather(
                *(post(service, json.dumps(ASK), **JSON) for _ in range(20))
            )
        assert {status for status, _, _ in answers} == {200}
    asked = len(made.tiers["large"].backend.requests)
    assert asked + service.shadows.dropped.total() == 20


@pytest.mark.parametrize(("idle", "at_once"), [("launched", 0), ("all", 0), ("none", 1)])
async def test_a_launched_tier_is_left_alone_while_somebody_waits(engine, spool, idle, at_once):
    made = known()
    slow = tier("slow", Script(text="4", first_token_seconds=60.0))
    arm = Arm(name=None, policy=FixedPolicy(name="slow", tier="slow"))
    made = replace(made, tiers={**made.tiers, "slow": slow}, arms={**made.arms, "slow": arm})
    sink = SqlAuditSink(engine, spool)
    asked = made.tiers["large"].backend.requests
    async with serving(made, engine, sink, idle=idle, tiers=["large"]) as service:
        waiting = asyncio.create_task(post(service, json.dumps({**ASK, "model": "slow"}), **JSON))
        await asyncio.to_thread(eventually, lambda: len(slow.backend.requests) == 1)
        await post(service, json.dumps(ASK), **JSON)
        await asyncio.sleep(0.3 * (1 - at_once))
        await asyncio.to_thread(eventually, lambda: len(asked) >= at_once)
        assert len(asked) == at_once
        waiting.cancel()
        await asyncio.to_thread(eventually, lambda: len(asked) == 1)
