import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.backends.scripted import Script
from cascade.backends.wrappers.retry import Retries, RetryingBackend
from cascade.errors import JudgeError
from cascade.types import Cost, Verdict
from evals.collecting.asking import Asking, collect
from evals.collecting.journal import Journal
from evals.collecting.meter import Meter
from tests.engines import FixedJudge, card, tier
from tests.evals.outcomes import prompt


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "j.jsonl") as opened:
        yield opened


def asking(*, small=("4",), large=("5",), meter=None, **options):
    tiers = {
        "small": tier("small", *small, prices=card()),
        "large": tier("large", *large, prices=card("10", "1", "20")),
    }
    metered = {name: (meter or Meter()).metered(each) for name, each in tiers.items()}
    models = {name: f"{name}-1" for name in tiers}
    return Asking(tiers=metered, models=models, **options), tiers


def requests(tiers):
    return {name: len(each.backend.requests) for name, each in tiers.items()}


def paid(prompt, **fields):
    return replace(prompt, scorer="judge", **fields)


class PaidJudge(FixedJudge):
    """One whose verdicts cost something; remembers what it was asked to compare with."""

    def __init__(self, *scores):
        super().__init__(*scores)
        self.against = []

    async def judge(self, request, completion):
        self.against.append(request.tags.get("reference"))
        verdict = await super().judge(request, completion)
        return replace(verdict, cost=Cost(output=Decimal("0.01")))


async def test_each_tier_is_asked_once_and_the_answers_are_priced(journal):
    whom, tiers = asking()
    report = await collect(whom, [prompt("a"), prompt("b")], journal)
    assert report.asked == 4
    assert requests(tiers) == {"small": 2, "large": 2}
    first = report.rows[0].answers
    assert (first["small"].text, first["large"].text) == ("4", "5")
    assert first["small"].dollars == Decimal("0.000014")
    assert first["large"].logprobs is not None
    again, tiers = asking()
    report = await collect(again, [prompt("a"), prompt("b")], journal)
    assert report.asked == 0
    assert requests(tiers) == {"small": 0, "large": 0}
    assert report.rows[0].answers == first


async def test_kept_answers_cost_what_they_cost_by_todays_card(journal):
    whom, _ = asking()
    await collect(whom, [prompt("a")], journal)
    dearer = replace(whom.tiers["small"], prices=card("2", "1", "4"))
    other = replace(whom, tiers={**whom.tiers, "small": dearer})
    report = await collect(other, [prompt("a")], journal)
    assert report.asked == 0
    assert report.rows[0].answers["small"].dollars == Decimal("0.000028")


async def test_a_kept_answer_whose_earlier_tries_may_have_cost_stays_without_a_cost(journal):
    whom, _ = asking(small=(Script(text="", cut_after=0), "4"))
    small = whom.tiers["small"]
    retries = Retries(
        times=1, base_seconds=0, cap_seconds=0, retry_after_seconds=0, within_seconds=9
    )
    patient = replace(small, backend=RetryingBackend(small.backend, retries))
    whom = replace(whom, tiers={**whom.tiers, "small": patient})
    for _ in range(2):
        report = await collect(whom, [prompt("a")], journal)
        assert report.rows[0].answers["small"].text == "4"
        assert report.rows[0].answers["small"].dollars is None


async def test_prompts_that_ask_the_same_are_asked_once(journal):
    same = [replace(prompt("a"), id=name, reference=at) for at, name in enumerate("xyz")]
    whom, tiers = asking(concurrency=3)
    report = await collect(whom, same, journal)
    assert requests(tiers) == {"small": 1, "large": 1}
    assert [row.prompt.id for row in report.rows] == ["x", "y", "z"]
    assert all(row.answers["small"].text == "4" for row in report.rows)


async def test_another_model_behind_a_tier_is_asked_anew(journal):
    whom, _ = asking()
    await collect(whom, [prompt("a")], journal)
    other, tiers = asking(small=("7",))
    other = replace(other, models={"small": "small-2", "large": "large-1"})
    report = await collect(other, [prompt("a")], journal)
    assert requests(tiers) == {"small": 1, "large": 0}
    assert report.rows[0].answers["small"].text == "7"


async def test_an_answer_that_does_not_come_is_told_and_asked_for_the_next_time(journal):
    failing = (Script(error="BackendServerError"), "4")
    whom, _ = asking(small=failing)
    report = await collect(whom, [prompt("a"), prompt("b")], journal)
    assert report.failures == ["a (small): BackendServerError, as scripted"]
    assert report.rows[0].answers.keys() == {"large"}
    again, tiers = asking()
    await collect(again, [prompt("a"), prompt("b")], journal)
    assert requests(tiers) == {"small": 1, "large": 0}


async def test_a_spent_budget_leaves_whole_rows_and_says_what_is_left(journal):
    whom, tiers = asking(meter=Meter(most_requests=4))
    done = []
    prompts = [prompt(name) for name in "abcd"]
    report = await collect(whom, prompts, journal, done.append)
    assert [len(row.answers) for row in report.rows] == [2, 2, 0, 0]
    assert (report.asked, report.left, report.failures) == (4, 4, [])
    assert requests(tiers) == {"small": 2, "large": 2}
    assert len(done) == 8


async def test_as_many_prompts_are_in_flight_as_allowed(journal):
    slow = Script(text="4", first_token_seconds=0.01)
    flying, most = 0, 0
    whom, _ = asking(small=(slow,), concurrency=3)

    class Counted:
        capabilities = None
        name = "small"

        async def stream(self, request):
            nonlocal flying, most
            flying += 1
            most = max(most, flying)
            await asyncio.sleep(0.01)
            async for chunk in whom.tiers["small"].stream(request):
                yield chunk
            flying -= 1

        def price(self, usage):
            return None

    counted = replace(whom, tiers={"small": Counted()})
    await collect(counted, [prompt(str(at)) for at in range(9)], journal)
    assert most == 3


async def test_a_judge_looks_at_every_tiers_answer_but_the_last(journal):
    judge = FixedJudge(0.25)
    whom, _ = asking(judge=judge)
    report = await collect(whom, [prompt("a")], journal)
    assert report.rows[0].verdicts.keys() == {"small"}
    assert report.rows[0].verdicts["small"].score == 0.25
    assert [seen.text for seen in judge.seen] == ["4"]
    await collect(whom, [prompt("a")], journal)
    assert len(judge.seen) == 2, "what costs nothing is asked again, as the judge is today"


async def test_a_judge_that_was_paid_is_not_asked_again_unless_it_is_set_otherwise(journal):
    judge = PaidJudge(0.25, 0.75)
    whom, _ = asking(judge=judge, judge_setting="1")
    for _ in range(2):
        report = await collect(whom, [prompt("a")], journal)
        assert report.rows[0].verdicts["small"].score == 0.25
        assert report.rows[0].verdicts["small"].dollars == Decimal("0.01")
    report = await collect(replace(whom, judge_setting="2"), [prompt("a")], journal)
    assert report.rows[0].verdicts["small"].score == 0.75


async def test_a_judge_that_fails_is_told(journal):
    whom, _ = asking(judge=FixedJudge(JudgeError("no such label"), name="sound"))
    report = await collect(whom, [prompt("a")], journal)
    assert report.failures == ["a (small, sound): no such label"]
    assert report.rows[0].verdicts == {}


async def test_answers_are_graded_beside_the_reference(journal):
    grader = PaidJudge(0.75, 0.25)
    whom, _ = asking(grader=grader)
    report = await collect(whom, [paid(prompt("a"), reference="right")], journal)
    assert {name: each.score for name, each in report.rows[0].grades.items()} == {
        "small": 0.75,
        "large": 0.25,
    }
    assert grader.against == ["right", "right"]
    await collect(whom, [paid(prompt("a"), reference="right")], journal)
    assert len(grader.against) == 2
    await collect(whom, [paid(prompt("a"), reference="another")], journal)
    assert grader.against[2:] == ["another", "another"]


async def test_without_a_reference_answers_are_graded_beside_the_last_tiers(journal):
    grader = PaidJudge(0.25)
    whom, _ = asking(grader=grader)
    report = await collect(whom, [paid(prompt("a"), reference=None)], journal)
    assert grader.against == ["5"]
    assert {name: each.score for name, each in report.rows[0].grades.items()} == {
        "small": 0.25,
        "large": 0.5,
    }


async def test_a_verdict_that_the_budget_does_not_allow_is_left(journal):
    meter = Meter(most_requests=2)

    class Asks(FixedJudge):
        async def judge(self, request, completion):
            try:
                meter.begin(None)
            except Exception as error:
                raise JudgeError("the model could not be asked") from error
            return Verdict(judge=self.name, score=1.0)

    whom, _ = asking(meter=meter, judge=Asks(1.0))
    report = await collect(whom, [prompt("a")], journal)
    assert (report.left, report.failures) == (1, [])
