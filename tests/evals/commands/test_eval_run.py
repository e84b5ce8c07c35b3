import json
import re

import pytest
from click.testing import CliRunner

from evals.commands.eval import evaluate
from evals.runs import quickstart
from evals.tables import load
from tests.evals.tables.tables import table

pytest.importorskip("plotly")

CONFIG = """
tiers:
  small:
    backend: scripted
    answers: SMALL
    capabilities: [logprobs, json_schema]
    price: {input: 0.02, cache_read: 0.002, output: 0.04}
  large:
    backend: scripted
    answers: LARGE
    capabilities: [logprobs, json_schema]
    price: {input: 0.2, cache_read: 0.02, output: 0.4}
judges:
  sound: {type: logprob}
estimators:
  looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}
policies:
  cascade:
    type: ladder
    estimator: looks
    steps: [{tier: small, judge: sound, accept_at: 0.4}, {tier: large}]
audit: {url: "sqlite:///cascade.db"}
"""
HEADINGS = [
    "In short",
    "What was asked",
    "How good each model is",
    "Quality against cost",
    "A policy chosen from it",
    "Is it better than one model?",
]


WRONG = "<b>I do & don't know.</b>"


def right(prompt):
    """An answer that its scorer takes, but for code, which nobody gets right here."""
    reference = prompt.reference
    if prompt.scorer in {"phrase", "text"}:
        return reference.get("accept", [WRONG])[0]
    made = {"number": str, "json": json.dumps, "label": lambda known: known["label"]}
    return made.get(prompt.scorer, lambda _: WRONG)(reference)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The large model is right where it can be, the small one on every other prompt and surer."""
    monkeypatch.chdir(tmp_path)
    asked = quickstart.prompts(30)
    small = [
        {"text": WRONG, "logprob": -2.0} if at % 2 else {"text": right(prompt), "logprob": -0.1}
        for at, prompt in enumerate(asked)
    ]
    text = CONFIG.replace("SMALL", json.dumps(small))
    (tmp_path / "c.yaml").write_text(
        text.replace("LARGE", json.dumps([right(prompt) for prompt in asked]))
    )
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(evaluate, list(map(str, arguments)))


def headings(page):
    return re.findall(r"<h2>(.*?)</h2>", page)


QUICKSTART = ("run", "quickstart", "--config", "c.yaml", "--out", "q", "--prompts", 30)


def test_from_prompts_to_the_page_in_one_go(folder):
    done = run(*QUICKSTART)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "The report is q/report.html" in done.output
    assert "60 calls" in done.output
    assert len(load(folder / "q" / "outcomes.parquet")) == 30
    assert (folder / "q" / "frontier.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "q" / "report.html").read_text()
    assert headings(page) == HEADINGS
    parts = ("always:large", "With probability 0.9", "APGR", "Plotly.newPlot", "60 calls, $0.0")
    for part in parts:
        assert part in page
    assert "<script src" not in page
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="', markup), "nothing is fetched"


def test_a_second_go_asks_nothing_and_its_page_is_the_same(folder):
    run(*QUICKSTART)
    page = (folder / "q" / "report.html").read_text()
    record = json.loads((folder / "q" / "run.json").read_text())
    done = run(*QUICKSTART)
    assert "0 calls" in done.output
    assert json.loads((folder / "q" / "run.json").read_text()) == record
    assert (folder / "q" / "report.html").read_text() == page
    assert run("report", "q", "--out", "again.html").exit_code == 0
    assert (folder / "again.html").read_text() == page


def test_more_prompts_add_to_what_is_there(folder):
    run(*QUICKSTART[:-1], 5)
    done = run(*QUICKSTART[:-1], 8)
    assert "6 calls" in done.output
    record = json.loads((folder / "q" / "run.json").read_text())
    assert record["calls"] == 16


def test_the_answers_of_prompts_where_policies_differ_are_on_the_page(folder):
    run(*QUICKSTART)
    page = (folder / "q" / "report.html").read_text()
    assert "<pre>&lt;b&gt;I do &amp; don&#x27;t know.&lt;/b&gt;</pre>" in page
    asked = {prompt.id for prompt in quickstart.prompts(30)}
    assert any(name in page for name in asked)


def test_a_table_that_carries_little_has_a_page_that_says_so(folder):
    from evals.tables import write

    write(table([[1, 0], [0, 1]], cost=[1, 5], splits=["choose", "test"]), folder / "t.parquet")
    done = run("report", "t.parquet", "--out", "r.html")
    assert done.exit_code == 0, (done.output, done.exception)
    page = (folder / "r.html").read_text()
    assert headings(page) == HEADINGS
    assert "there are no fit rows" in page


def test_what_is_no_run_is_refused(folder):
    (folder / "empty").mkdir()
    assert "is no record of a run" in run("report", "empty").exception.message
    assert "cannot be read" in run("report", "none.parquet").exception.message
    assert "there is no folder" in run("report", "none.parquet", "--out", "x/r").exception.message
    (folder / "q").write_text("a file")
    assert run(*QUICKSTART).exit_code == 2


def test_what_a_killed_go_asked_is_in_the_record_of_the_next(folder):
    run(*QUICKSTART[:-1], 8)
    whole = json.loads((folder / "q" / "run.json").read_text())
    journal = folder / "q" / "outcomes.answers.jsonl"
    kept = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(kept[:11]))
    (folder / "q" / "run.json").unlink()
    assert "6 calls" in run(*QUICKSTART[:-1], 8).output
    record = json.loads((folder / "q" / "run.json").read_text())
    assert (record["calls"], record["dollars"]) == (16, whole["dollars"])


@pytest.mark.parametrize(
    ("cost", "said"), [(None, "nothing says what an answer of small costs"), ([1, 5], "APGR")]
)
def test_a_part_that_a_table_cannot_carry_says_so_in_its_place(folder, cost, said):
    """The dear tier, the best, answered a part of the prompts: what it was not asked is not 0."""
    from evals.tables import write

    quality = [[at % 2, 1 if at < 12 else float("nan")] for at in range(60)]
    splits = ["fit", "choose", "test"] * 20
    write(table(quality, cost=cost, splits=splits, judged=0.5), folder / "t.parquet")
    done = run("report", "t.parquet", "--out", "r.html")
    assert done.exit_code == 0, (done.output, done.exception)
    page = (folder / "r.html").read_text()
    assert headings(page) == HEADINGS
    assert said in page
    if cost is not None:
        assert "always:large" in page.rpartition("Is it better than one model?")[2]
