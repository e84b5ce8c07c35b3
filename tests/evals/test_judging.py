import asyncio

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from evals import gather
from evals.judging import instructions, judgements
from evals.outcomes import Judgement
from evals.outcomes_file import OutcomesFile
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


async def test_the_small_models_stored_answers_are_judged_by_itself_and_by_the_large_one(file):
    for name in ("p-1", "p-2"):
        file.append(answer(name, "small", text="four"))
        file.append(answer(name, "large", text="vier"))
    tiers = models(small=("yes",), large=("yes",))
    report, _ = await run(judgements(tiers, PROMPTS, file), file)
    assert report.failures == []
    verdicts = [row for row in file.rows.values() if isinstance(row, Judgement)]
    assert {(row.judge, row.by, row.tier) for row in verdicts} == {
        ("p_true", "small", "small"),
        ("pointwise", "large", "small"),
        ("pairwise", "large", "small"),
    }
    assert len(verdicts) == 6
    texts = [str(request.messages) for request in tiers["large"].requests]
    assert sum("four" in text and "vier" in text for text in texts) == 4, "both orders of each pair"


async def test_what_has_no_answer_yet_is_told_and_not_judged(file):
    file.append(answer("p-1", "small"))
    tiers = models(small=("yes",), large=("yes",))
    report, _ = await run(judgements(tiers, PROMPTS, file), file)
    assert report.added == 2, "p_true and pointwise of the one answer there is"
    assert len(report.failures) == 4
    assert "p-2 (large): there is no answer yet to be judged" in report.failures


async def test_a_judge_waits_for_the_answers_that_are_still_to_come(file):
    class Late(ScriptedBackend):
        async def stream(self, request):
            while len(tiers["large"].requests) < len(PROMPTS):
                await asyncio.sleep(0)
            async for chunk in super().stream(request):
                yield chunk

    tiers = {"small": Late(answers=("4",)), "large": ScriptedBackend(answers=("yes",))}
    tasks = gather.answers(tiers, PROMPTS) + judgements(tiers, PROMPTS, file)
    report, _ = await asyncio.wait_for(run(tasks, file), 20)
    assert (report.added, report.failures) == (10, [])


async def test_a_judge_model_that_fails_for_now_is_asked_the_next_time(file):
    for tier in ("small", "large"):
        file.append(answer("p-1", tier))
    broken = models(small=(Script(error="BackendConnectionError"),), large=("yes",))
    report, _ = await run(judgements(broken, PROMPTS[:1], file), file)
    assert len(report.failures) == 1
    refused = models(small=(Script(error="BackendRefusedError"),), large=("yes",))
    report, _ = await run(judgements(refused, PROMPTS[:1], file), file)
    assert report.failures == []
    row = next(row for row in file.rows.values() if getattr(row, "judge", "") == "p_true")
    assert row.score is None
    assert "BackendRefusedError" in row.error


async def test_only_the_judges_that_are_named_are_asked(file):
    tasks = judgements(models(), PROMPTS, file, ["p_true", "pairwise"])
    assert {task.key[3] for task in tasks} == {"p_true", "pairwise"}


async def test_a_tier_without_another_above_it_is_judged_by_itself_only(file):
    alone = {"small": ScriptedBackend(answers=("yes",))}
    assert {task.key[3] for task in judgements(alone, PROMPTS, file)} == {"p_true"}


def test_each_judges_instructions_have_a_hash_of_their_own():
    hashes = {mode: instructions(mode) for mode in ("pointwise", "pairwise", "p_true")}
    assert len(set(hashes.values())) == 3
    assert hashes["p_true"] == instructions("p_true")
