import asyncio
import gzip
import json

import pytest
from click.testing import CliRunner

from cascade.audit import record
from cascade.types import ChatRequest
from classifiers.artifact import load
from classifiers.heuristic import HeuristicEstimator
from classifiers.learned import LearnedEstimator
from classifiers.text import Extraction
from evals.commands.train import train
from evals.training.fit import Recipe
from serving.store import schema
from serving.store.database import engine_for
from serving.store.feedback import Feedback
from serving.store.rows import decode, encode, insert
from tests.builders import attempt, completion, request, result
from tests.learning import artifact, ask, prompts


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(folder, count=120):
    texts, labels = prompts(count)
    rows = [
        {"prompt": text, "weak": weak, "strong": strong, "kind": text.split()[0]}
        for text, (weak, strong) in zip(texts, labels.tolist(), strict=True)
    ]
    path = folder / "outcomes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def run(*arguments):
    return CliRunner().invoke(train, [str(each) for each in arguments])


ARGUMENTS = ("--embedder", "none", "--head", "linear", "--folds", "3", "--out", "model.json")


def test_a_table_becomes_an_artifact_with_its_card(folder):
    done = run(table(folder), *ARGUMENTS, "--model", "weak=tiny-1")
    assert done.exit_code == 0, done.output
    assert "APGR" in done.output
    manifest, model = load(folder / "model.json")
    assert dict(manifest.models) == {"weak": "tiny-1", "strong": ""}
    assert model.tiers == ["weak", "strong"]
    metrics = manifest.origin.metrics["cross_validated"]
    assert metrics["n"] == 120
    assert {"random", "length", "kind", "model", "oracle"} == metrics["apgr"].keys()
    card = (folder / "model.md").read_text()
    for part in (manifest.origin.data, "scikit-learn", "by a table of the kinds", "| greet |"):
        assert part in card


def test_the_same_table_gives_the_same_arrays_again(folder):
    path = table(folder)
    run(path, *ARGUMENTS)
    first = json.loads((folder / "model.json").read_text())
    run(path, *ARGUMENTS)
    again = json.loads((folder / "model.json").read_text())
    assert first["arrays"] == again["arrays"]


def test_the_same_table_gives_the_same_card_again_and_only_the_manifest_has_a_date(folder):
    path = table(folder)
    run(path, *ARGUMENTS)
    card = (folder / "model.md").read_text()
    dated = json.loads((folder / "model.json").read_text())["origin"]["fitted_at"]
    assert dated not in card
    (folder / "model.md").unlink()
    run(path, *ARGUMENTS)
    assert (folder / "model.md").read_text() == card


async def features(folder, *messages):
    estimator = LearnedEstimator(artifact="model.json", base=folder)
    (found,) = await estimator.estimate([ChatRequest(id="r", messages=messages)])
    return found.features


def test_an_estimator_looks_at_what_its_model_was_trained_on(folder):
    talk = [
        {"role": "user", "content": "prove the boat of the tree, and show every step of it"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "<note>not typed</note>yes"},
    ]
    path = table(folder)
    assert run(path, *ARGUMENTS).exit_code == 0
    usual = asyncio.run(features(folder, *talk))
    done = run(path, *ARGUMENTS, "--text", "turns=0", "--text", "markers=note")
    assert done.exit_code == 0, done.output
    assert load(folder / "model.json")[0].extraction["turns"] == 0
    assert "turns 0" in (folder / "model.md").read_text()
    narrow = asyncio.run(features(folder, *talk))
    alone = asyncio.run(features(folder, *talk[1:2], {"role": "user", "content": "yes"}))
    assert narrow["log_tokens"] == alone["log_tokens"] < usual["log_tokens"]


def test_a_model_is_trained_on_what_will_be_looked_at(folder):
    path = table(folder)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    grouped = [{**row, "group": row["prompt"]} for row in rows]
    noted = [{**row, "prompt": f"<note>{'x ' * 50}</note>{row['prompt']}"} for row in grouped]
    learned_from = []
    for some, more in ((grouped, ()), (noted, ()), (noted, ("--text", "markers=note"))):
        path.write_text("\n".join(map(json.dumps, some)))
        run(path, *ARGUMENTS, *more)
        learned_from.append(load(folder / "model.json")[0].origin.data)
    plain, whole, without = learned_from
    assert plain == without != whole


def test_what_was_measured_is_there_for_machines(folder):
    done = run(table(folder), *ARGUMENTS, "--json")
    told = json.loads(done.stdout)
    assert told["rows"] == {"fit": 120, "calibrate": 0, "test": 0}
    assert told["metrics"]["cross_validated"]["folds"] == 3


def test_rows_of_the_test_split_are_only_measured_on(folder):
    path = table(folder)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    splits = ["fit"] * 80 + ["test"] * 30 + ["calibrate"] * 10
    marked = [{**row, "split": split} for row, split in zip(rows, splits, strict=True)]
    path.write_text("\n".join(map(json.dumps, marked)))
    assert run(path, *ARGUMENTS).exit_code == 0
    origin = load(folder / "model.json")[0].origin
    assert origin.rows == {"fit": 80, "calibrate": 10, "test": 30}
    assert origin.metrics["test"]["n"] == 30


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--out", "model.json"), "give a TABLE to learn from, or --from-audit"),
        (("outcomes.jsonl", "--from-audit", "--out", "model.json"), "and not both"),
        (("outcomes.jsonl", "--out", "model.bin"), "ends in .json"),
        (("outcomes.jsonl", "--out", "no/model.json"), "there is no folder"),
        (("outcomes.jsonl", *ARGUMENTS, "--model", "huge=x"), "there is no such tier"),
        (("outcomes.jsonl", *ARGUMENTS, "--column", "weak=none"), "fewer than two tiers"),
        (("outcomes.jsonl", *ARGUMENTS, "--text", "turn=1"), "--text.turn: unknown key"),
        (("--from-audit", *ARGUMENTS, "--text", "turns=1"), "--text does not go with --from-audit"),
    ],
)
def test_what_cannot_be_trained_is_refused_and_nothing_is_written(folder, arguments, complaint):
    table(folder)
    done = run(*arguments)
    assert done.exit_code != 0
    assert complaint in str(done.exception)
    assert [path.name for path in folder.iterdir()] == ["outcomes.jsonl"]


def test_a_row_at_fault_is_named_and_nothing_is_written(folder):
    path = table(folder)
    path.write_text(path.read_text() + '\n{"prompt": "x", "weak": 3, "strong": 0}')
    mapping = ("--column", "weak=weak", "--column", "strong=strong")
    done = run(path, *ARGUMENTS, *mapping)
    assert "outcomes.jsonl:121: weak: must be a number from 0 to 1, not 3" in str(done.exception)
    assert not (folder / "model.json").exists()


@pytest.mark.parametrize("first", ['{"prompt": "a"}\n', '{"kind":"manifest","format":1}\n'])
@pytest.mark.parametrize("kept", [30, 400])
@pytest.mark.parametrize("spoiled", [False, True])
def test_a_damaged_archive_is_named(folder, first, kept, spoiled):
    path = folder / "outcomes.jsonl.gz"
    whole = gzip.compress((first + "".join(f"{at * 7919 % 65521}\n" for at in range(400))).encode())
    path.write_bytes(whole[:kept] + b"\xff" * len(whole[kept:]) if spoiled else whole[:kept])
    done = run(path, *ARGUMENTS)
    assert done.exit_code != 0
    assert "outcomes.jsonl.gz: cannot be read" in str(done.exception)


CONFIG = """\
tiers:
  small: {backend: openai_http, url: http://127.0.0.1:1/v1, model: tiny-1}
  large: {backend: openai_http, url: http://127.0.0.1:2/v1, model: huge-1}
audit: {url: "sqlite:///audit.db"}
"""


def logged(estimator):
    """An audit log of 240 requests that the estimator looked at, with feedback on each."""
    texts, labels = prompts(240)
    rows = []
    for at, (text, right) in enumerate(zip(texts, labels.tolist(), strict=True)):
        (beliefs,) = asyncio.run(estimator.estimate([ask(text)]))
        tier = ("small", "large")[at // 2 % 2]
        answered = attempt(tier=tier, completion=completion(tier=tier))
        name = f"r{at}"
        rows.append(
            record(
                result(
                    request=request(id=name, session=name), beliefs=beliefs, attempts=(answered,)
                )
            )
        )
        rows.append(
            Feedback(
                request_id=name,
                tenant="default",
                source="",
                given_at=1.0,
                score=right[tier == "large"],
                label=None,
                correction=None,
                comment=None,
            )
        )
    schema.upgrade("sqlite:///audit.db")
    engine = engine_for("sqlite:///audit.db")
    with engine.begin() as connection:
        insert(connection, [decode(encode(row)) for row in rows])
    engine.dispose()


FROM_AUDIT = ("--from-audit", "--embedder", "none", "--head", "linear", "--folds", "3")


def test_a_log_that_only_the_heuristic_looked_at_is_refused_with_what_it_takes(folder):
    (folder / "cascade.yaml").write_text(CONFIG)
    logged(HeuristicEstimator(tiers={"small": [0.9, 0.3], "large": [0.97, 0.6]}))
    done = run(*FROM_AUDIT, "--out", "model.json")
    assert done.exit_code != 0
    assert "240 skipped: its features are not those of an estimator of type learned" in str(
        done.exception
    )
    assert not (folder / "model.json").exists()


def test_a_log_of_a_learned_estimator_gives_a_model_that_looks_at_the_same(folder):
    (folder / "cascade.yaml").write_text(
        CONFIG + "estimators: {first: {type: learned, artifact: first.json}}\n"
    )
    narrow = Extraction(turns=3)
    artifact(
        folder, recipe=Recipe(head="linear"), embedded=False, name="first.json", extraction=narrow
    )
    logged(LearnedEstimator(artifact="first.json", base=folder))
    done = run(*FROM_AUDIT, "--out", "model.json")
    assert done.exit_code == 0, done.exception
    manifest, _ = load(folder / "model.json")
    assert manifest.extraction == narrow.settings()
    assert dict(manifest.models) == {"small": "tiny-1", "large": "huge-1"}
