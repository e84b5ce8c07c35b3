"""On the committed outcomes of the embedded models."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cascade.posterior import PRIOR
from classifiers.heuristic import HeuristicEstimator
from classifiers.learned import LearnedEstimator
from evals.datasets import TASKS, load
from evals.outcomes import EMBEDDED
from evals.outcomes_lines import read
from evals.panel_rows import completion_of
from evals.training.fit import Recipe as EstimatorRecipe
from evals.training.posterior.collected import (
    Collected,
    assembled,
    folds_of,
    heads,
    ordered,
    verdicts,
)
from evals.training.posterior.estimates import Named, estimates
from evals.training.posterior.fit import Recipe
from evals.training.rows import TrainingError
from evals.training.sources import from_outcomes
from serving import config as cfg
from serving.commands.options import load as load_config
from serving.wiring import Wiring
from tests.learning import artifact

ROOT = Path(__file__).parents[4]
TIERS = {"small": [0.9, 0.3], "large": [0.97, 0.6]}


@pytest.fixture(scope="module")
def given():
    """A part of the outcomes: every third fit prompt's group, and some test prompts."""
    outcomes = read(EMBEDDED)
    prompts = {prompt.id: prompt for prompt in load(TASKS)}
    source = from_outcomes(outcomes, prompts)
    fit = [line for line in source.lines if line.split == "fit"]
    some = sorted({line.group for line in fit})[::3]
    kept = [line for line in source.lines if line.split == "test"][:40]
    kept += [line for line in fit if line.group in some]
    source = ordered(replace(source, lines=kept))
    return Collected(
        source=source, outcomes=outcomes, prompts=prompts, folds=folds_of(source, Recipe())
    )


@pytest.fixture(scope="module")
def judges():
    file = load_config(ROOT / "cascade.yaml")
    return Wiring(file.config, file.path.parent).snapshot().judges


def by_split(given, split):
    return [line.request.id for line in given.source.lines if line.split == split]


@pytest.fixture(scope="module")
def panel(given, judges):
    done = []
    said = verdicts(given, judges["sound"], "small", lambda: done.append(1))
    assert len(done) == heads(judges["sound"], "small") == 3
    return said


def own_word(given, judge, name, tier="small"):
    """What the panel says as it serves."""
    answer = given.outcomes.answers(tier)[name]
    return asyncio.run(judge.judge(given.prompts[name].request(), completion_of(answer)))


def test_test_prompts_hear_the_panel_as_it_serves(given, judges, panel):
    for name in by_split(given, "test"):
        served = own_word(given, judges["sound"], name)
        assert panel[name].score == pytest.approx(served.score)
        assert panel[name].others == pytest.approx(served.others)
        assert panel[name].final == served.final


def test_fit_prompts_hear_a_panel_that_was_not_fitted_on_them(given, judges, panel):
    names = by_split(given, "fit")
    told = [name for name in names if not panel[name].final]
    assert len(told) > 100
    apart = [abs(panel[name].score - own_word(given, judges["sound"], name).score) for name in told]
    assert np.mean(apart) > 0.02
    assert all(panel[name].others.keys() == {"large"} for name in told)


def test_of_another_tier_a_panel_only_finds_hard_faults(given, judges):
    said = verdicts(given, judges["sound"], "large")
    assert said
    assert all(verdict.final for verdict in said.values())
    assert heads(judges["sound"], "large") == 0


def test_a_judge_without_a_fitted_model_is_heard_as_it_is(given, judges):
    said = verdicts(given, judges["confident"], "large")
    assert len(said) > 100
    name = next(iter(said))
    assert said[name] == own_word(given, judges["confident"], name, "large")


def test_a_judge_that_asks_a_model_says_what_was_collected_and_else_nothing(given):
    file = load_config(ROOT / "cascade.yaml")
    entry = cfg.Judge.model_validate({"type": "llm", "mode": "pointwise", "tier": "large"})
    config = file.config.model_copy(update={"judges": {**file.config.judges, "graded": entry}})
    graded = Wiring(config, ROOT).snapshot().judges["graded"]
    assert len(verdicts(given, graded, "small")) > 100
    assert verdicts(given, graded, "large") == {}


def test_rows_bring_grades_estimates_and_verdicts_together(given, panel):
    told = {line.request.id: {"small": 0.4, "large": 0.6} for line in given.source.lines}
    rows = assembled(given.source, told, {"small": panel, "large": {}})
    assert [row.prompt for row in rows] == [line.request.id for line in given.source.lines]
    right = given.outcomes.answers("large")
    for row in rows:
        assert row.right["large"] == right[row.prompt].right
        assert row.verdicts.keys() <= {"small"}
    assert rows[0].split == "fit"


def test_a_set_without_fit_prompts_is_refused(given):
    lines = [line for line in given.source.lines if line.split == "test"]
    with pytest.raises(TrainingError, match="no prompt of the set is of the split fit"):
        ordered(replace(given.source, lines=lines))


def told_by(given, estimator, name="e", file=None):
    file = file or load_config(ROOT / "cascade.yaml")
    return estimates(given.source, Named(name, estimator), file, given.folds)


def test_an_estimator_that_was_not_fitted_is_just_asked(given):
    heuristic = HeuristicEstimator(tiers=TIERS)
    told = told_by(given, heuristic)
    line = given.source.lines[3]
    (beliefs,) = asyncio.run(heuristic.estimate([line.request]))
    assert told[line.request.id] == beliefs.mean
    nothing = told_by(given, None, None)
    assert nothing[line.request.id] == {"small": PRIOR, "large": PRIOR}


def test_an_estimator_that_cannot_be_asked_again_or_lacks_a_tier_is_refused(given):
    class Asking:
        asks = "large"

    with pytest.raises(TrainingError, match="the estimator e asks a model"):
        told_by(given, Asking())
    with pytest.raises(TrainingError, match="says nothing of the tier large"):
        told_by(given, HeuristicEstimator(tiers={"small": [0.9, 0.3]}))


def test_a_learned_estimator_is_fitted_anew_for_each_fold(given, tmp_path):
    recipe = EstimatorRecipe(head="linear", inside=1.0)
    name = artifact(tmp_path, recipe=recipe, embedded=False)
    (tmp_path / "cascade.yaml").write_text(
        "tiers: {small: {backend: scripted, price: {input: 1, cache_read: 1, output: 1}}}\n"
        f"estimators: {{e: {{type: learned, artifact: {name}}}}}\n"
        "policies: {p: {type: fixed, tier: small}}\n"
    )
    file = load_config(tmp_path / "cascade.yaml")
    learned = LearnedEstimator(artifact=name, base=tmp_path)
    with pytest.raises(TrainingError, match="does not say how it was fitted"):
        told_by(given, learned, file=file)
    manifest = json.loads((tmp_path / name).read_text())
    manifest["origin"]["recipe"] = recipe.settings()
    (tmp_path / name).write_text(json.dumps(manifest))
    told = told_by(given, learned, file=file)
    requests = {line.request.id: line.request for line in given.source.lines}
    served = asyncio.run(learned.estimate(list(requests.values())))
    apart = {
        name: abs(told[name]["small"] - beliefs.mean["small"])
        for name, beliefs in zip(requests, served, strict=True)
    }
    assert max(apart[name] for name in by_split(given, "test")) < 1e-9
    assert np.mean([apart[name] for name in by_split(given, "fit")]) > 0.02
