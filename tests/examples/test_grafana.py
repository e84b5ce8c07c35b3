"""The Grafana dashboard asks only for metrics that the service has, by labels that they have."""

import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from serving.metrics.families import COUNTERS, HISTOGRAMS
from serving.store.sink import AuditState
from serving.store.spool import Backlog
from tests.metrics import metrics

BOARD = json.loads((Path(__file__).parents[2] / "examples/grafana/cascade.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
OUTSIDE = {"job", "le"}


def labels_by_metric():
    state = AuditState(status="ok", reason="", backlog=Backlog(), queued=0, dropped=0, refused=0)
    told = metrics().told([], state).decode()
    known = {
        sample.name: set(sample.labels)
        for f in text_string_to_metric_families(told)
        for sample in f.samples
    }
    known |= {f"cascade_{name}_total": set(labels) for name, (_, labels) in COUNTERS.items()}
    known |= {f"cascade_{name}_bucket": {*labels, "le"} for name, (_, labels) in HISTOGRAMS.items()}
    tiers = {f.name for f in text_string_to_metric_families(told)}
    return known | {name: known.get(name, {"tier"}) for name in tiers}


KNOWN = labels_by_metric()


@pytest.mark.parametrize("panel", PANELS, ids=[panel["title"] for panel in PANELS])
def test_a_panel_asks_for_what_there_is(panel):
    assert panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        asked = re.findall(r"(cascade_\w+)\{([^}]*)\}", target["expr"])
        assert asked
        labels = set().union(*(KNOWN[name] for name, _ in asked)) | OUTSIDE
        chosen = {name for _, inner in asked for name in re.findall(r'(\w+)=~?"', inner)}
        grouped = {
            name.strip()
            for some in re.findall(r"by \(([^)]*)\)", target["expr"])
            for name in some.split(",")
        }
        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert chosen | grouped <= labels
        assert shown <= grouped


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
