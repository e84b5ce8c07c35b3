import re

import orjson
import pytest
from rich.console import Console

from serving.results import Trial, results
from serving.results.clauses import ENGLISH
from serving.results.present import doubts, results_json, results_view
from tests.serving.results.log import BEGUN, asked, called, said, sampled, write

TRIAL = Trial(name="auto", control="a", weights={"a": 1, "b": 1}, since=BEGUN, margin=0.05)


def text(found):
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(results_view(found))
    console.file.close()
    return console.export_text()


@pytest.fixture
def found(engine):
    """Two arms of 60 units; of one request the cost is not known, and one unit is in both."""
    ids = [(f"{arm}{i:03d}", arm) for arm in "ab" for i in range(60)]
    spent = {"a": 0.02, "b": 0.01}
    write(
        engine,
        [
            *(asked(each, arm, dollars=spent[arm], baseline=0.02) for each, arm in ids),
            asked("unpriced", "a"),
            asked("x1", "a", unit="x"),
            asked("x2", "b", unit="x"),
        ],
        [
            *(called(each, outcome="accepted", first_token_ms=20.0) for each, _ in ids),
            *(sampled(each, 0.75) for each, _ in ids[50:70]),
        ],
        [
            *(said(each, float(i % 2)) for i, (each, _) in enumerate(ids)),
            said("b000", compared_to="a000", preferred="this", source="x"),
        ],
    )
    return results(engine, TRIAL)


def test_people_get_the_verdict_first_and_then_the_numbers(found):
    shown = text(found)
    verdict, arms, differences = (
        shown.index(part)
        for part in ("b costs 50 % less", "a request costs", "against the control ")
    )
    assert verdict < arms < differences
    assert "quality 0.0 points [-" in shown
    assert re.search(r"about \d,\d00 more units whose quality is known would decide", shown)
    assert "$0.0200" in shown
    assert "50.0% of 60" in shown
    assert "quality by expert" in shown
    assert "after 49 more units of at least 50 an arm" in shown  # the preference
    assert "look as often as you like" in shown
    assert "from 2026-09-21 14:13:20.000 UTC until now, by session, against a" in shown


def test_what_a_reader_should_know_is_said(found):
    assert [each.told(ENGLISH) for each in doubts(found)] == [
        "units that were seen in two arms, and are left out: 1",
        "requests whose cost is not known, and which are in no cost: 1",
    ]


def test_wrong_shares_come_first(engine):
    write(engine, [asked(f"a{i}", "a") for i in range(200)])
    found = results(engine, TRIAL)
    told = next(doubts(found)).told(ENGLISH)
    assert told.startswith("the arms did not get their share of units (p = ")
    assert "a 200 units for a share of 50.0%, b 0 units" in told


def test_programs_get_all_of_it(found):
    told = orjson.loads(orjson.dumps(results_json(found)))
    assert [each["arm"] for each in told["arms"]] == ["a", "b"]
    (comparison,) = told["comparisons"]
    assert comparison["verdict"].startswith("b costs 50 % less")
    assert comparison["decision"] == "undecided"
    assert comparison["quality_source"] == "feedback"
    assert comparison["cost"]["interval"]["estimate"] == pytest.approx(-0.5)
    assert comparison["quality"]["judge:expert"]["needs"] == 40
    assert told["shares"]["broken"] is False
    assert told["crossed_units"] == 1


def test_an_experiment_that_nobody_asked_says_what_to_do(engine):
    assert "send some with model auto" in text(results(engine, TRIAL))
