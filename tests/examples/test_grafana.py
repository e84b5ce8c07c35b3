"""The Grafana dashboard, held against what a service with traffic really tells at /metrics."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from cascade.backends.scripted import Script
from cascade.caches import CacheCard
from cascade.engine import CascadeEngine
from cascade.snapshot import Snapshot
from cascade.types import Usage
from serving.app import create_app
from serving.metrics.metrics import Metrics
from serving.service import Service
from tests.apis import CHAT, ask
from tests.engines import SMALL_THEN_LARGE, FixedJudge, tier
from tests.metrics import Read
from tests.services import MemoryLog, NoServers
from tests.serving.doctor.logs import asked
from tests.serving.test_readiness import audit

BOARD = json.loads((Path(__file__).parents[2] / "examples/grafana/cascade.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
SCRAPED = {"job"}
"""Labels that Prometheus adds to what it reads."""

SELECTOR = re.compile(r"\b(cascade_\w+)\{([^}]*)\}")
DOWN = Script(error="BackendUnreachableError")


async def exposed():
    """What Prometheus reads from a service that had an escalation, failures and a lost prefix."""
    used = Script(text="4", usage=Usage(input=70, cache_read=30, output=3))
    cache = CacheCard(kind="slots", slots=2)
    served = Snapshot(
        version="v1",
        tiers={
            "small": tier("small", used, DOWN, used, cache=cache),
            "large": tier("large", used, DOWN, used, cache=cache),
        },
        judges={"told": FixedJudge(0.1)},
        arms={"cascade": SMALL_THEN_LARGE},
    )
    log = MemoryLog(audit())
    metrics = Metrics(CascadeEngine(served, log).forecast)
    engine = CascadeEngine(served, metrics.before(log), forecast=metrics.forecast)
    app = create_app(
        Service(
            engine=engine, sink=log, servers=NoServers(), max_body_bytes=99_999, metrics=metrics
        )
    )
    statuses = [(await ask(app, CHAT.path, CHAT.body(model="cascade"), [])).status for _ in "123"]
    assert statuses == [200, 503, 200]
    metrics.note(asked("r1", 0, 0, "hello", written=None))
    metrics.note(asked("r2", 60, 0, "hello", "a: hi", "more", written=None))
    answer = await ask(app, "/metrics", b"", method="GET")
    return Read(answer.body)


@pytest.fixture(scope="module")
def read():
    return asyncio.run(exposed())


def faults(read, expression, legend=""):
    """What is wrong with a query: what it asks for that is not told, by name and labels."""
    found = []
    labels: set[str] = set()
    for name, inner in SELECTOR.findall(expression):
        wanted = re.findall(r'(\w+)(=~?)"([^"]*)"', inner)
        series = [dict(labels) for told, labels in read.samples if told == name]
        if not any(_fits(each, wanted) for each in series):
            found.append(f"no {name}{{{inner}}}")
        labels |= {label for each in series for label in each}
    if not SELECTOR.search(expression):
        found.append("asks for nothing")
    grouped = {
        name.strip()
        for some in re.findall(r"by \(([^)]*)\)", expression)
        for name in some.split(",")
    }
    found += [f"grouped by {name}" for name in sorted(grouped - labels)]
    shown = set(re.findall(r"\{\{(\w+)\}\}", legend))
    return [*found, *(f"shows {name}" for name in sorted(shown - grouped))]


def _fits(series, wanted):
    own = [each for each in wanted if each[0] not in SCRAPED]
    return all(
        name in series and re.fullmatch(value if how == "=~" else re.escape(value), series[name])
        for name, how, value in own
    )


@pytest.mark.parametrize("panel", PANELS, ids=[panel["title"] for panel in PANELS])
def test_a_panel_asks_for_what_there_is(read, panel):
    assert panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        assert faults(read, target["expr"], target["legendFormat"]) == []


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("sum(rate(cascade_requests_count{job='x'}[5m]))", "no cascade_requests_count{job='x'}"),
        ('sum(cascade_requests_total{status="mistaken"})', "no cascade_requests_total"),
        ('sum by (model) (cascade_requests_total{job="x"})', "grouped by model"),
        ("sum(up)", "asks for nothing"),
    ],
)
def test_a_query_for_what_there_is_not_would_be_found(read, expression, fault):
    assert faults(read, expression)[0].startswith(fault)


def test_a_legend_shows_what_a_query_keeps(read):
    assert faults(read, 'sum(cascade_cost_usd_total{job="x"})', "{{tier}}") == ["shows tier"]


def test_the_variables_ask_for_what_there_is(read):
    [query] = [each["query"] for each in BOARD["templating"]["list"] if each["type"] == "query"]
    name = re.fullmatch(r"label_values\((\w+), job\)", query)[1]
    assert name in {told for told, _ in read.samples}


def test_panels_lie_beside_each_other_and_not_over_each_other():
    taken = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
