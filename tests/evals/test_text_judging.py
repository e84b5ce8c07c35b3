import gzip
import json
import os
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from evals.commands.text import judged, text
from evals.datasets import DatasetError
from evals.escalation import recovered
from evals.metrics import auroc
from evals.text_judging import PRICE_RATIO, load_pairs

DATA = Path(os.environ.get("CASCADE_DATA") or Path(__file__).parents[3] / "shared" / "data")
GSM8K = DATA / "routellm_gsm8k.jsonl.gz"


def row(number, rng):
    """A sum whose answer shows its working; when it is wrong, so is a step of it."""
    a, b, c = (rng.randint(2, 30) for _ in range(3))
    right = rng.random() < 0.6
    strong = rng.random() < 0.8
    product = a * b if right else a * b + rng.randint(1, 9)
    said = f"{a} boxes of {b} are {a} * {b} = {product}. With {c} more, {product} + {c} = "
    return {
        "prompt": f"Ann has {a} boxes of {b} eggs and {c} more. How many eggs? ({number})",
        "gold": f"{a * b + c:,}",
        "weak": int(right),
        "strong": int(strong),
        "weak_text": f"{said}{product + c}.",
        "strong_text": f"{a * b + c + (not strong)}",
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = random.Random(5)  # noqa: S311 - made-up rows
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl.gz"
    lines = [json.dumps(row(number, rng)) for number in range(120)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def test_wrong_working_is_told_from_right(file):
    rows = judged(load_pairs(file), "logistic")
    assert auroc([r.small for r in rows], [r.small_right for r in rows]) > 0.95
    assert recovered(rows, "doubt", 0.01) > recovered(rows, "random", 0.01)


def test_regrading_goes_by_value(file):
    (pair, *_) = load_pairs(file)
    said = {
        "$20.00": True,
        "20": True,
        "#### 20 eggs, 3 broken": True,
        "20 then 3": False,
        "": False,
    }
    for answer, right in said.items():
        changed = type(pair)(
            prompt="", gold=20.0, weak=False, strong=False, weak_text=answer, strong_text="20"
        )
        assert changed.regraded().weak is right, answer
        assert changed.regraded().strong is True


def test_the_command_prints_both_gradings_with_intervals(file):
    result = CliRunner().invoke(text, [str(file), "--kind", "logistic"], catch_exceptions=False)
    assert "as graded: 120 answers" in result.output
    assert "regraded: 120 answers" in result.output
    assert result.output.count("uplift") == 2


@pytest.mark.parametrize(
    ("line", "complaint"),
    [("{", "no such row"), ('{"prompt": "x"}', "gold: missing"), ("[]", "gold|prompt")],
)
def test_a_line_that_is_no_row_is_named(tmp_path, line, complaint):
    path = tmp_path / "pairs.jsonl"
    path.write_text(line)
    with pytest.raises(DatasetError, match=rf"pairs\.jsonl:1: .*({complaint})"):
        load_pairs(path)


@pytest.mark.skipif(
    not GSM8K.exists(), reason=f"{GSM8K} is not there; CASCADE_DATA names its folder"
)
def test_answers_of_a_real_model_are_judged_by_their_text_as_well_as_the_manual_says():
    """Area under the ROC curve at least .78, and .73 of the gap won back, regraded."""
    pairs = load_pairs(GSM8K)
    rows = judged(pairs, "logistic")
    assert auroc([r.small for r in rows], [r.small_right for r in rows]) >= 0.78
    regraded = judged([pair.regraded() for pair in pairs], "logistic")
    assert recovered(regraded, "doubt", PRICE_RATIO) >= 0.73
