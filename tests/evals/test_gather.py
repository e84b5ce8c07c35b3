import asyncio
from dataclasses import replace

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from evals import gather
from evals.outcomes import Answer
from evals.outcomes_file import OutcomesFile
from evals.outcomes_lines import read
from tests.evals.outcomes import prompt
from tests.evals.rows import MANIFEST, answer

PROMPTS = [prompt("p-1"), prompt("p-2")]


def models(*, small=("4",), large=("4",)):
    return {"small": ScriptedBackend(answers=small), "large": ScriptedBackend(answers=large)}


@pytest.fixture
def file(tmp_path):
    with OutcomesFile(tmp_path / "o.jsonl", MANIFEST) as opened:
        yield opened


async def run(tasks, file):
    done = []
    return await gather.run(tasks, file, done.append), done


async def test_each_tier_answers_each_prompt_once_with_log_probabilities(file, tmp_path):
    tiers = models(small=("4", "5"), large=("4",))
    report, done = await run(gather.answers(tiers, PROMPTS), file)
    assert (report.added, report.failures) == (4, [])
    assert sorted(done) == ["large", "large", "small", "small"]
    found = read(tmp_path / "o.jsonl")
    assert [row.right for row in found.answers("small").values()] == [True, False]
    assert [row.right for row in found.answers("large").values()] == [True, True]
    row = found.answers("small")["p-1"]
    assert row.logprobs[0][:2] == ["4", -0.05]
    assert len(row.logprobs[0][2]) == 5
    assert row.params == {
        "temperature": 0,
        "max_tokens": 8,
        "logprobs": True,
        "top_logprobs": 5,
    }
    assert 0 <= row.first_token_seconds <= row.seconds


async def test_what_is_in_the_file_is_not_asked_again(file):
    file.append(answer("p-1", "small"))
    tiers = models()
    report, _ = await run(gather.answers(tiers, PROMPTS), file)
    assert report.added == 3
    assert [request.id for request in tiers["small"].requests] == ["p-2"]
    again = models()
    assert (await run(gather.answers(again, PROMPTS), file))[0].added == 0
    assert not again["small"].requests


async def test_a_prompt_without_an_answer_is_told_and_asked_the_next_time(file):
    failing = (Script(error="BackendServerError"), "4")
    report, _ = await run(gather.answers(models(small=failing), PROMPTS), file)
    assert report.added == 3
    assert report.failures == ["p-1 (small): BackendServerError, as scripted"]
    report, _ = await run(gather.answers(models(), PROMPTS), file)
    assert report.added == 1
    assert (Answer.KIND, "p-1", "small") in file.rows


async def test_each_model_gets_one_prompt_at_a_time_and_they_work_side_by_side(file):
    flying = {"small": 0, "large": 0}
    together = asyncio.Event()

    async def make(tier, number):
        flying[tier] += 1
        assert flying[tier] == 1
        if all(flying.values()):
            together.set()
        await together.wait()
        flying[tier] -= 1
        return answer(f"p-{number}", tier)

    tasks = [
        gather.Task(
            key=("answer", f"p-{number}", tier),
            tier=tier,
            make=lambda tier=tier, number=number: make(tier, number),
        )
        for tier in flying
        for number in range(3)
    ]
    report, _ = await asyncio.wait_for(run(tasks, file), 10)
    assert report.added == 6


async def test_samples_differ_by_seed_and_leave_long_answers_out(file):
    tiers = models(small=("4", "5", "4"))
    long = replace(prompt("p-9"), max_tokens=gather.SHORT_TOKENS + 1)
    tasks = gather.samples(tiers, [PROMPTS[0], long], tier="small", count=3)
    report, _ = await run(tasks, file)
    assert report.added == 3
    asked = tiers["small"].requests
    assert [request.params["seed"] for request in asked] == [1, 2, 3]
    assert {request.params["temperature"] for request in asked} == {gather.SAMPLE_TEMPERATURE}
    assert [row.right for row in file.rows.values()] == [True, False, True]


def test_a_smaller_draw_of_prompts_is_the_beginning_of_a_larger_one():
    many = [prompt(f"p-{number}") for number in range(40)]
    order = gather.drawn(many)
    assert sorted(p.id for p in order) == sorted(p.id for p in many)
    assert gather.drawn(reversed(many)) == order
    assert order != many
    some = many[:20]
    assert gather.drawn(some) == [p for p in order if p in some]
