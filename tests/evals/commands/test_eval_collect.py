import asyncio
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from evals.commands.eval import evaluate
from evals.tables import load
from tests.evals.services import cascade_of
from tests.services import running
from tests.upstream import DONE, Upstream, serving, words

CONFIG = """
tiers:
  small:
    backend: scripted
    answers: ["4", "5"]
    capabilities: [logprobs]
    price: {input: 0.02, cache_read: 0.002, output: 0.04}
  large:
    backend: scripted
    answers: ["4"]
    capabilities: [logprobs]
    price: {input: 0.2, cache_read: 0.02, output: 0.4}
judges:
  confident: {type: logprob}
estimators:
  looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}
policies:
  cascade:
    type: ladder
    estimator: looks
    steps: [{tier: small, judge: confident, accept_at: 0.4}, {tier: large}]
audit: {url: "sqlite:///cascade.db"}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cascade.yaml").write_text(CONFIG)
    rows = [
        {
            "prompt": f"{name}: 2 + 2",
            "reference": 4,
            "scorer": "number",
            "split": "test",
            "session": "s",
        }
        for name in "abc"
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(evaluate, ["collect", *map(str, arguments)])


def test_every_tiers_answers_become_a_table(folder):
    done = run("p.jsonl", "--out", "o.parquet", "--judge", "confident", "--estimator", "looks")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "6 calls, $0.0000" in done.output
    table = load(folder / "o.parquet")
    assert table.tiers == ("small", "large")
    assert table.quality.tolist() == [[1, 1], [0, 1], [0, 1]]
    assert table.cost == pytest.approx(np.array([[2.8e-7, 2.8e-6]] * 3))
    assert (table.judged[:, 0] > 0.9).all()
    assert np.isnan(table.judged[:, 1]).all()
    assert ((table.predicted > 0.2) & (table.predicted < 1)).all()
    assert (table.predicted[:, 1] > table.predicted[:, 0]).all()
    assert set(table.splits) == {"test"}
    assert set(table.sessions) == {"s"}


def test_a_second_run_asks_only_what_is_new_and_scores_by_todays_references(folder):
    run("p.jsonl", "--out", "o.parquet")
    text = (folder / "p.jsonl").read_text().replace('"reference": 4', '"reference": 5')
    more = {"prompt": "d: 2 + 2", "reference": 4, "scorer": "number"}
    (folder / "p.jsonl").write_text(f"{text}\n{json.dumps(more)}")
    done = run("p.jsonl", "--out", "o.parquet")
    assert "2 calls" in done.output
    assert load(folder / "o.parquet").quality.tolist() == [[0, 0], [1, 0], [1, 0], [1, 1]]


def test_a_budget_is_kept_and_what_is_left_is_said(folder):
    done = run("p.jsonl", "--out", "o.parquet", "--max-requests", 4)
    assert done.exit_code == 0
    assert "The budget is spent: 2 answers or verdicts are left." in done.output
    assert len(load(folder / "o.parquet")) == 2
    done = run("p.jsonl", "--out", "o.parquet")
    assert "2 calls" in done.output
    assert len(load(folder / "o.parquet")) == 3
    done = run("p.jsonl", "--out", "q.parquet", "--max-usd", 0)
    assert done.exception.message == "the budget does not allow a single answer"
    assert not (folder / "q.parquet").exists()


def test_only_the_chosen_tiers_and_prompts_are_asked_at_the_stated_price(folder):
    options = ("--tier", "large", "--tier", "small", "--limit", 2, "--price", "large=1/3")
    done = run("p.jsonl", "--out", "o.parquet", *options)
    assert "4 calls" in done.output
    table = load(folder / "o.parquet")
    assert table.tiers == ("small", "large")
    assert table.cost[0, 1] == pytest.approx(16e-6)


def test_answers_that_do_not_come_are_told_and_the_rest_is_written(folder):
    text = CONFIG.replace('["4", "5"]', '[{error: BackendRefusedError}, "4"]')
    (folder / "cascade.yaml").write_text(text)
    done = run("p.jsonl", "--out", "o.parquet")
    assert done.exit_code == 1
    assert "1 (small): BackendRefusedError, as scripted" in done.output
    assert "1 answers or verdicts are missing; run it again" in done.output
    quality = load(folder / "o.parquet").quality
    assert np.isnan(quality[0, 0])
    assert quality[0, 1] == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--tier", "huge"), "there is no tier 'huge'; there are: small, large"),
        (("--tier", "small"), "only tier small is asked: one leaves nothing to compare"),
        (("--grader", "huge"), "there is no tier 'huge'; there are: small, large"),
        (("--judge", "taste"), "there is no judge 'taste'; there are: confident"),
        (("--estimator", "guess"), "no policy uses an estimator 'guess'; there are: looks"),
        (("--price", "small=1"), "small=1: collected answers are priced by INPUT/OUTPUT tokens"),
        (("--column", "question=q"), "'question=q' is not FIELD=COLUMN"),
    ],
)
def test_what_is_not_there_is_named_before_anything_is_asked(folder, options, complaint):
    done = run("p.jsonl", "--out", "o.parquet", *options)
    assert done.exit_code == 1
    assert complaint in done.exception.message


def test_a_tier_that_is_not_asked_itself_grades_the_others_answers(folder):
    grader = CONFIG.partition("  large:")[2].partition("judges:")[0].replace('"4"', '"A", "B"')
    (folder / "cascade.yaml").write_text(CONFIG.replace("judges:", f"  third:{grader}judges:", 1))
    (folder / "j.jsonl").write_text(json.dumps({"prompt": "Why?", "reference": "So."}))
    options = ("--tier", "small", "--tier", "large", "--scorer", "judge", "--max-usd", 1)
    done = run("j.jsonl", "--out", "o.parquet", *options, "--grader", "third")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "6 calls" in done.output
    table = load(folder / "o.parquet")
    assert table.tiers == ("small", "large")
    assert table.quality[0, 0] > 0.9


def configured(folder, *pairs):
    text = CONFIG
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "cascade.yaml").write_text(text)


def test_every_try_counts_and_none_is_made_beyond_the_budget(folder):
    flaky = '[{cut_after: 0}, "4"]'
    fast = "retry: {base_seconds: 0, cap_seconds: 0}"
    configured(folder, ('["4", "5"]', f"{flaky}\n    {fast}"))
    done = run("p.jsonl", "--out", "o.parquet", "--limit", 1)
    assert "3 calls" in done.output
    assert "1 of them at unknown cost" in done.output
    done = run("p.jsonl", "--out", "q.parquet", "--limit", 1, "--max-requests", 2)
    assert "2 calls" in done.output
    assert "The budget is spent: 1 answers" in done.output


THIRD = """  third:
    backend: scripted
    answers: ["A"]
    capabilities: [logprobs]
    price: {input: 1, cache_read: 1, output: 1}
"""
ASKED = ("--tier", "small", "--tier", "large")
LLM_JUDGE = (
    ("judges:\n", f"{THIRD}judges:\n  graded: {{type: llm, mode: pointwise, tier: third}}\n"),
)


def test_calls_of_a_judge_count_whosever_model_it_asks(folder):
    configured(folder, *LLM_JUDGE)
    done = run("p.jsonl", "--out", "o.parquet", *ASKED, "--judge", "graded")
    assert "9 calls" in done.output
    assert (load(folder / "o.parquet").judge_cost[:, 0] > 0).all()
    done = run("p.jsonl", "--out", "q.parquet", *ASKED, "--judge", "graded", "--max-requests", 7)
    assert "7 calls" in done.output


def test_a_judge_of_no_price_is_refused_where_dollars_are_limited_and_is_not_free(folder):
    bare = LLM_JUDGE[0][1].replace("    price: {input: 1, cache_read: 1, output: 1}\n", "")
    configured(folder, (LLM_JUDGE[0][0], bare))
    options = ("p.jsonl", "--out", "o.parquet", *ASKED, "--judge", "graded")
    done = run(*options, "--max-usd", 1)
    assert "tier third has no price, so that --max-usd cannot be kept" in done.exception.message
    done = run(*options)
    assert done.exit_code == 0, (done.output, done.exception)
    assert np.isnan(load(folder / "o.parquet").judge_cost[:, 0]).all()


def test_a_judge_with_another_model_is_asked_anew(folder):
    configured(folder, *LLM_JUDGE)
    options = ("p.jsonl", "--out", "o.parquet", *ASKED, "--judge", "graded")
    run(*options)
    assert "0 calls" in run(*options).output
    configured(folder, *LLM_JUDGE, ('answers: ["A"]', 'answers: ["A"]\n    model: other'))
    assert "3 calls" in run(*options).output


def test_an_estimate_that_cannot_be_had_costs_no_table(folder):
    estimator = "looks: {type: llm, tier: third, tiers: {small: 0.5, large: 0.9}}"
    configured(
        folder,
        ("judges:\n", f"{THIRD}judges:\n".replace('"A"', '"dunno"')),
        ("looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}", estimator),
    )
    options = ("p.jsonl", "--out", "o.parquet", *ASKED, "--estimator", "looks", "--limit", 1)
    done = run(*options)
    assert done.exit_code == 1
    assert "(looks): third wrote 'dunno', none of the labels" in done.output
    table = load(folder / "o.parquet")
    assert not np.isnan(table.quality).any()
    assert np.isnan(table.predicted).all()
    done = run(*options, "--max-requests", 0)
    assert "0 calls" in done.output
    assert "The budget is spent: 1 answers" in done.output


def test_an_estimate_that_asks_a_model_is_asked_for_once(folder):
    estimator = "looks: {type: llm, tier: third, tiers: {small: 0.5, large: 0.9}}"
    configured(
        folder,
        ("judges:\n", f"{THIRD}judges:\n".replace('"A"', '"yes"')),
        ("looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}", estimator),
    )
    options = ("p.jsonl", "--out", "o.parquet", *ASKED, "--estimator", "looks")
    assert "9 calls" in run(*options).output
    before = load(folder / "o.parquet").predicted
    assert before.tolist() == [[0.5, 0.9]] * 3
    assert "0 calls" in run(*options).output
    assert load(folder / "o.parquet").predicted.tolist() == before.tolist()


async def test_a_running_service_is_asked_for_its_tiers_by_name(folder):
    async with running(cascade_of(small=("5",), large=("4",))) as service:
        arguments = ("p.jsonl", "--out", "o.parquet", "--service", f"{service.url}/v1")
        done = await asyncio.to_thread(run, *arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    table = load(folder / "o.parquet")
    assert table.quality.tolist() == [[0, 1]] * 3
    assert (table.cost > 0).all()


class Stalling(Upstream):
    """Does not answer its third request, once."""

    async def handle(self, http):
        if len(self.bodies) == 2:
            self.bodies.append({})
            await asyncio.Event().wait()
        return await super().handle(http)


async def test_a_collection_that_is_killed_goes_on_where_it_was(folder):
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    async with serving(Stalling([*words("4", usage=usage), DONE])) as upstream:
        tier = f"{{backend: openai_http, url: '{upstream.url}', model: m}}"
        (folder / "cascade.yaml").write_text(
            f"tiers:\n  small: {tier}\n  large: {tier}\n"
            "policies: {p: {type: fixed, tier: small}}\n"
            'audit: {url: "sqlite:///cascade.db"}\n'
        )
        arguments = ("eval", "collect", "p.jsonl", "--out", "o.parquet")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "serving.cli", *arguments),
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        async with asyncio.timeout(60):
            while len(upstream.bodies) < 4:
                await asyncio.sleep(0.02)
        process.kill()
        await process.wait()
        assert not (folder / "o.parquet").exists()
        with (folder / "o.answers.jsonl").open("a") as file:
            file.write('{"kind":"answer","requ')
        done = await asyncio.to_thread(run, *arguments[2:])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "3 calls" in done.output
    assert load(folder / "o.parquet").quality.tolist() == [[1, 1]] * 3


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom serving.cli import cascade\ntry:\n    cascade(['eval', '--help'])\n"
        "except SystemExit:\n    print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not {"numpy", "pyarrow", "pydantic", "rich"} & loaded
