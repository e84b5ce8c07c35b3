"""The starts of stored answers: how they are cut, certified and what a rule does to a ladder."""

from dataclasses import replace

import pytest

from cascade.errors import ConfigError, JudgeError
from cascade.types import Verdict
from evals.early_commit import Started, certificates, effect, started
from evals.guarantee import CertifyError
from evals.outcomes import Outcomes, OutcomesError
from judges.logprob import LogprobJudge
from tests.engines import FixedJudge
from tests.evals.outcomes import prompt
from tests.evals.rows import MANIFEST, answer

TOKENS = [[word, logprob, [[word, logprob]]] for word, logprob in (("4", -0.1), ("2", -2.0))]


class Whole(FixedJudge):
    free = True


def outcomes(*rows):
    return Outcomes(manifest=MANIFEST, rows={row.key: row for row in rows})


def two(**small):
    given = {"text": "42", "logprobs": TOKENS} | small
    return outcomes(answer(**given), answer(tier="large", right=False))


def looked(some, after_tokens, start=None, whole=None):
    judges = (start or LogprobJudge(statistic="min"), whole or Whole(0.4))
    prompts = {"p-1": prompt("p-1", split="test", group="sums")}
    return started(some, prompts, judges, after_tokens)


async def test_a_start_is_judged_by_its_own_tokens_and_the_whole_by_all():
    seen = []

    class Seeing(LogprobJudge):
        async def judge(self, request, completion):
            seen.append(completion)
            return await super().judge(request, completion)

    start = Seeing(statistic="min")
    [row] = await looked(two(), 1, start)
    assert [(one.text, one.partial, len(one.logprobs)) for one in seen] == [("4", True, 1)]
    assert row.start == pytest.approx(0.9048, abs=1e-4)
    assert (row.whole, row.right, row.strong_right) == (0.4, True, False)
    assert (row.group, row.split, row.long) == ("sums", "test", True)


async def test_an_answer_that_ends_before_the_look_has_no_start():
    [row] = await looked(two(), 3)
    assert (row.long, row.start, row.whole) == (False, None, 0.4)


async def test_a_prompt_that_the_strong_model_did_not_answer_is_left_out():
    assert await looked(outcomes(answer(logprobs=TOKENS)), 1) == []


async def test_judges_that_cannot_do_that_are_refused():
    with pytest.raises(ConfigError, match="cannot look at an answer that is still growing"):
        await looked(two(), 1, start=Whole(0.5))
    with pytest.raises(ConfigError, match="asks a model about whole answers"):
        await looked(two(), 1, whole=FixedJudge(0.5))


async def test_outcomes_that_cannot_be_cut_and_strange_prompts_are_refused():
    with pytest.raises(OutcomesError, match="no log probabilities"):
        await looked(two(logprobs=None), 1)
    with pytest.raises(OutcomesError, match="no prompt of the set"):
        await looked(outcomes(answer(prompt="p-2")), 1)


async def test_a_judge_that_fails_says_on_which_prompt():
    with pytest.raises(JudgeError, match="prompt p-1: told: no"):
        await looked(two(), 1, whole=Whole(JudgeError("no")))


async def test_a_judge_that_cannot_tell_gives_no_score():
    class Silent(LogprobJudge):
        async def judge(self, request, completion):
            return Verdict(judge="silent", score=None)

    [row] = await looked(two(), 1, start=Silent())
    assert (row.long, row.start) == (True, None)


def row(name="p", **fields):
    given = {"start": 0.9, "whole": 0.9, "right": True, "strong_right": True, "long": True}
    values = {"prompt": name, "group": name, "split": "test"} | given | fields
    return Started(**values)


def test_a_rule_changes_only_what_it_releases():
    rows = [
        row("kept", start=0.2, whole=0.9),
        row("good", start=0.9, whole=0.1, strong_right=False),
        row("bad", start=0.9, whole=0.1, right=False),
        row("short", start=None, long=False, whole=None, right=False),
    ]
    done = effect(rows, at=0.8, accept_at=0.5)
    assert (done.long.value, done.released.value, done.wrong.value) == (0.75, 0.5, 0.25)
    assert [share.value for share in done.right] == [0.75, 0.75], "one won, one lost"
    assert [share.value for share in done.sent_up] == [0.75, 0.25]
    assert done.lost.value == 0
    stricter = effect(rows, at=0.95, accept_at=0.5)
    assert stricter.released.value == 0
    assert stricter.right[0] == stricter.right[1]


def test_what_is_lost_is_what_going_up_would_have_made_right():
    rows = [row(f"p{i}", whole=0.1, right=i > 3) for i in range(10)]
    done = effect(rows, at=0.8, accept_at=0.5)
    assert done.lost.value == pytest.approx(0.4)
    low, high = done.lost.interval
    assert 0 < low < 0.4 < high < 1


def test_an_answer_that_ended_before_the_look_counts_among_all_requests():
    long = [row(f"l{i}", split="calibrate", right=i % 4 > 0) for i in range(80)]
    short = [
        row(f"s{i}", split="calibrate", start=None, long=False, right=False) for i in range(720)
    ]
    joint, selective = certificates([*long, *short], 0.05, 0.1, ("joint", "selective"))
    assert joint.count.failures == 20
    assert joint.labels == 800
    assert joint.threshold is not None
    assert joint.bound < 0.05
    assert selective.threshold is None
    [alone] = certificates(long, 0.05, 0.1, ("joint",))
    assert alone.accepted == 0, "among long answers alone a quarter is wrong"


def test_only_calibrate_rows_are_labels_and_too_few_are_refused():
    rows = [row(f"p{i}", split="calibrate") for i in range(30)]
    rows += [replace(one, split="test") for one in rows]
    with pytest.raises(CertifyError, match="30 labels cannot certify"):
        certificates(rows, 0.05, 0.1)
