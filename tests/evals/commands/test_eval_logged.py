"""cascade eval replay and cascade eval drift, as they are called."""

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from cascade.errors import ConfigError
from evals.commands.eval import evaluate
from evals.commands.eval_drift import learned_of
from evals.logged.following import ReplayError
from serving.config import ConfigFile
from serving.store import schema
from serving.store.database import engine_for
from tests.evals.logged.logs import CONFIG, truth, write

ARTIFACT = Path(__file__).parents[3] / "classifiers" / "artifacts" / "qwen2.5-coder.json"


@pytest.fixture
def config(tmp_path):
    """A configuration whose log has 450 requests of the last minutes."""
    path = tmp_path / "cascade.yaml"
    path.write_text(CONFIG)
    url = f"sqlite:///{tmp_path}/cascade.db"
    schema.upgrade(url)
    engine = engine_for(url)
    write(engine, truth(450), start=time.time() - 600)
    engine.dispose()
    return path


def run(*arguments):
    done = CliRunner().invoke(evaluate, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_replay_says_what_a_policy_costs_and_scores(config):
    said = " ".join(run("replay", "--policy", "strict", "--config", str(config)).split())
    assert "strict over 450 requests of 150 sessions" in said
    assert "strict costs" in said
    assert "quality" in said
    assert "The log follows strict through" in said
    assert "were drawn for shadow calls" in said


def test_replay_says_where_there_is_no_support(config):
    said = " ".join(run("replay", "--policy", "huge", "--config", str(config)).split())
    assert "No support: huge asks huge in 100.0% of the requests" in said
    assert "If these cost what they are quoted, 1,000 requests cost 6.12 dollars." in said


def test_replay_for_machines(config):
    told = json.loads(run("replay", "--policy", "strict", "--config", str(config), "--json"))
    assert told["policy"] == "strict"
    assert told["judge"] == "quality"
    low, high = told["dollars"]["after"]["interval"]
    assert low < told["dollars"]["after"]["mean"] < high
    assert set(told["answers"]) == {"small", "large", "huge"}


def test_replay_looks_back_as_far_as_it_is_told(config):
    told = run("replay", "--policy", "loose", "--since", "6m", "--config", str(config), "--json")
    assert 0 < json.loads(told)["requests"] < 450
    with pytest.raises(ReplayError, match="no requests of that time"):
        run("replay", "--policy", "loose", "--since", "1s", "--config", str(config))


def test_drift_says_what_it_looked_at(config):
    said = run("drift", "--since", "6m", "--against", "1h", "--config", str(config))
    assert "how scores and beliefs are spread" in said
    told = json.loads(run("drift", "--since", "6m", "--config", str(config), "--json"))
    assert told["requests"] + told["earlier_requests"] == 450
    assert told["estimator"] is None


def test_drift_wants_an_earlier_time_to_hold_it_against(config):
    asked = ["drift", "--since", "7d", "--against", "1d", "--config", str(config)]
    done = CliRunner().invoke(evaluate, asked)
    assert done.exit_code == 2
    assert "longer ago than --since" in done.output


def test_a_learned_estimator_that_is_not_there_is_said(config):
    with pytest.raises(ConfigError, match="no learned estimator 'looks'; there are: none"):
        learned_of(ConfigFile(config), "looks")


def test_the_artifact_that_comes_with_cascade_can_be_looked_at(tmp_path):
    path = tmp_path / "cascade.yaml"
    learned = f"  looks: {{type: learned, artifact: {ARTIFACT}, embedder: minilm}}"
    lines = [learned if line.startswith("  looks:") else line for line in CONFIG.split("\n")]
    path.write_text("\n".join(lines))
    found = learned_of(ConfigFile(path), None)
    assert (found.name, found.policies) == ("looks", ["weighing", "poor", "rich"])
    assert found.embedded_by.startswith("minilm-int8@")
    assert found.domain is not None
    assert 0.5 < found.inside < 1.0
