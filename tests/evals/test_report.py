import io
import json
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from rich.console import Console

from evals.comparison import compare
from evals.metrics import Interval
from evals.report import as_json, sentences, table
from tests.evals.outcomes import blind, clairvoyant, trial

TENTH = Decimal("0.1")


def printed(renderable, width=100):
    console = Console(width=width, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue()


@pytest.fixture
def row():
    return compare(clairvoyant(60), ratio=TENTH)[0]


def said(row, **fields):
    return sentences([replace(row, **fields)])


def test_the_table_has_a_row_a_kind_with_accuracy_cost_share_and_difference():
    trials = [*clairvoyant(40, "sums"), *blind(40, "products")]
    lines = printed(table(compare(trials, ratio=TENTH), TENTH)).splitlines()
    assert lines[0].strip() == "small model at 0.1 of the large model's price"
    assert [line.split()[0] for line in lines if "(" in line] == ["all", "sums", "products"]
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == ["sums"])
    assert re.split(r"  +", lines[start].strip()) == [
        "sums", "50 (35-65)", "100 (91-100)", "100 (91-100)", "50%", "78", "+22.2",
    ]  # fmt: skip
    below = re.split(r"  +", lines[start + 1].strip())
    assert below[:4] == ["n = 40", "$2.40", "$24.00", "$14.40"]
    assert re.fullmatch(r"\+\d+\.\d to \+\d+\.\d", below[4])


def test_nothing_is_cut_off_in_a_terminal_of_ninety_columns():
    trials = [*clairvoyant(40, "extraction"), *blind(40, "products")]
    assert "…" not in printed(table(compare(trials, ratio=TENTH), TENTH), width=90)


def test_better_is_said_only_when_the_whole_interval_is_above_zero(row):
    better = said(row, difference=0.08, interval=Interval(0.01, 0.15))
    assert better[0] == (
        "Over all 60 prompts the ladder beats the random mix of equal cost "
        "(8.0 points, 95 % interval +1.0 to +15.0)."
    )
    touching = said(row, difference=0.08, interval=Interval(0.0, 0.15))
    assert "cannot be told apart" in touching[0]


def test_worse_is_said_only_when_the_whole_interval_is_below_zero(row):
    worse = said(row, difference=-0.08, interval=Interval(-0.15, -0.01))
    assert "the ladder loses to the random mix of equal cost (8.0 points" in worse[0]
    touching = said(row, difference=-0.08, interval=Interval(-0.15, 0.0))
    assert "cannot be told apart" in touching[0]


@pytest.mark.parametrize(
    ("difference", "side"), [(0.03, "it is above it"), (-0.03, "it is below it"), (0.0, "level")]
)
def test_what_cannot_be_told_is_said_with_its_size_and_n(row, difference, side):
    text = said(row, difference=difference, interval=Interval(-0.1, 0.1))[0]
    assert "cannot be told apart from the random mix of equal cost at n = 60" in text
    assert side in text


def test_kinds_are_listed_by_what_can_be_said_of_them():
    trials = [
        *clairvoyant(60, "sums"),
        *blind(60, "products"),
        *(trial(i % 2, 1, up=i % 3 == 0, kind="classes") for i in range(60)),
    ]
    text = "\n".join(sentences(compare(trials, ratio=TENTH)))
    assert "It beats the mix on sums (+" in text
    assert "It loses to the mix on products (-" in text
    assert "It cannot be told apart from the mix on classes (" in text


def test_the_ladder_is_set_beside_always_asking_the_large_model(row):
    text = said(row)[-1]
    assert text == "The ladder costs 60% of always-large and is right as often."


def test_a_ladder_that_costs_more_and_is_no_better_is_said_to_lose_to_the_large_model():
    trials = [trial(0, 1, up=True) for _ in range(20)]
    text = sentences(compare(trials, ratio=Decimal("0.5")))[-1]
    assert text == (
        "The ladder costs 150% of always-large and is right as often: "
        "here always-large is the better choice."
    )


def test_a_ladder_that_costs_less_and_is_right_less_often_gets_no_verdict():
    trials = [*(trial(0, 1, up=False) for _ in range(5)), *clairvoyant(15)]
    text = sentences(compare(trials, ratio=TENTH))[-1]
    assert "is right 25.0 points less often" in text
    assert "better choice" not in text


def test_programs_get_the_same_numbers_and_sentences():
    rows = compare(clairvoyant(40), ratio=TENTH)
    data = json.loads(json.dumps(as_json(rows, TENTH)))
    assert data["price_ratio"] == "0.1"
    assert data["sentences"] == sentences(rows)
    assert data["rows"][0]["ladder"]["accuracy"] == 1.0
    assert data["rows"][0]["interval"] == list(rows[0].interval)
    assert data["rows"][0]["finding"] == "better"


def test_what_became_of_escalated_prompts_is_counted():
    trials = [
        trial(0, 1, up=True),  # worth it
        trial(0, 0, up=True),  # in vain
        trial(1, 0, up=True),  # in vain, and needless
        trial(1, 1, up=True),  # needless
        trial(0, 0, up=False),
        trial(1, 1, up=False),
    ]
    assert sentences(compare(trials, ratio=TENTH))[-2] == (
        "Of the 4 prompts it took up, the large model is wrong on 2, and on 2 the small one had "
        "been right."
    )
