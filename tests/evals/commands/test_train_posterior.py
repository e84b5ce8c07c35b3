import json
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from cascade.errors import CascadeError, ConfigError
from cascade.posterior import Identity, load
from evals.commands.training import train
from evals.outcomes import EMBEDDED
from evals.training.rows import TrainingError
from tests.evals.training.posterior.probit import World

ROOT = Path(__file__).parents[3]
CONFIG = """
tiers:
  small: {backend: scripted, capabilities: [logprobs], price: {input: 1, cache_read: 1, output: 1}}
  large: {backend: scripted, capabilities: [logprobs], price: {input: 1, cache_read: 1, output: 1}}
estimators:
  looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}
judges:
  confident: {type: logprob}
  graded: {type: llm, mode: pointwise, tier: large}
policies:
  always-small: {type: fixed, tier: small}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("posterior")
    (made / "cascade.yaml").write_text(CONFIG)
    return made


@pytest.fixture(scope="module")
def table(folder):
    path = folder / "t.jsonl"
    rows = World(200, rho=0.9).rows(judged=["small"])
    lines = []
    for at, row in enumerate(rows):
        said = {
            tier: {"score": each.score, "features": {"at": at % 5}}
            for tier, each in row.verdicts.items()
        }
        lines.append(
            {
                **{key: value for key, value in asdict(row).items() if key != "verdicts"},
                "split": "test" if at % 4 == 0 else "fit",
                "verdicts": said,
            }
        )
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def run(*arguments):
    return CliRunner().invoke(train, [str(each) for each in arguments], catch_exceptions=False)


def test_a_table_becomes_an_artifact_with_its_card(folder, table):
    out = folder / "p.json"
    done = run("posterior", table, "--judge", "j", "--estimator", "e", "--out", out)
    assert done.exit_code == 0, done.output
    for part in ("how much a verdict moves", "50 test rows", "150 fit rows", "p.md says more"):
        assert part in done.output
    model = load(out)
    assert model.manifest.rows == {"fit": 150, "calibrate": 0, "test": 50}
    assert model.manifest.judges == dict.fromkeys(("small", "large"), Identity(name="j"))
    assert model.manifest.estimator == Identity(name="e")
    assert set(model.heads) == {frozenset(), frozenset({"small"})}
    assert model.manifest.data in (folder / "p.md").read_text()


def test_what_was_measured_is_there_for_machines(folder, table):
    done = run("posterior", table, "--out", folder / "q.json", "--json")
    told = json.loads(done.stdout)
    assert told["metrics"]["cross_validated"]["n"] == 150
    assert told["metrics"]["test"]["kappas"][0]["judged"] == "small"
    assert told["data"] == load(folder / "q.json").manifest.data


def test_stored_outcomes_are_judged_by_the_configuration_and_know_it_again(folder):
    out = folder / "o.json"
    config = folder / "cascade.yaml"
    given = ("--judge", "small=confident", "--config", config, "--features", "0", "--out", out)
    done = run("posterior", EMBEDDED, *given)
    assert done.exit_code == 0, done.output
    manifest = load(out).manifest
    assert manifest.rows == {"fit": 397, "calibrate": 157, "test": 230}
    assert manifest.models["small"] == "qwen2.5-coder-0.5b"
    assert list(manifest.judges) == ["small"]
    assert manifest.judges["small"].digest
    assert manifest.estimator.name == "looks"
    (after,) = [s for s in manifest.metrics["test"]["sets"] if s["tried"] == ["small"]]
    assert after["tiers"]["small"]["auc"]["model"] > 0.6
    # The raw score is no probability: weighing it is worth more than believing it.
    assert after["tiers"]["small"]["gain_over"]["verdict"][1] > 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        (["{table}", "--out", "p.txt"], TrainingError, "ends in .json"),
        (["{table}", "--out", "gone/p.json"], CascadeError, "there is no folder gone"),
        (["{table}", "--judge", "a", "--judge", "b"], TrainingError, "one judge for all tiers"),
        (["{table}", "--judge", "a", "--judge", "small=b"], TrainingError, "and not both"),
        (["{table}", "--judge", "small="], TrainingError, "or TIER=JUDGE"),
        (["{table}", "--judge", "huge=a"], TrainingError, "no such tier; there are: small, large"),
        (["{outcomes}"], ConfigError, "no judge 'sound'; there are: confident, graded"),
        (["{outcomes}", "--estimator", "x"], ConfigError, "no estimator 'x'; there are: looks"),
    ],
)
def test_what_cannot_be_is_refused(folder, table, arguments, error, complaint):
    named = [each.format(table=table, outcomes=EMBEDDED) for each in arguments]
    if "--out" not in named:
        named += ["--out", str(folder / "never.json")]
    with pytest.raises(error, match=complaint):
        run("posterior", *named, "--config", folder / "cascade.yaml")
    assert not (folder / "never.json").exists()


def test_without_a_name_it_is_the_estimator_that_is_trained(folder):
    with pytest.raises(TrainingError, match="give a TABLE to learn from"):
        run("--out", folder / "model.json")
    assert "Usage: train posterior" in run("posterior", "--help").output
    listed = run("--help").output
    assert "estimator" in listed
    assert "posterior" in listed
