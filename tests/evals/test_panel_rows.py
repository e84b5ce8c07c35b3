import pytest

from cascade.errors import JudgeError
from cascade.types import Verdict
from evals.datasets import Prompt
from evals.outcomes import Outcomes, OutcomesError
from evals.panel_rows import digest, judged_rows, stored, verdicts
from judges.agreement import AgreementJudge
from judges.llm import LlmJudge
from judges.logprob import LogprobJudge
from tests.engines import FixedJudge, tier
from tests.evals.rows import MANIFEST, answer, judgement, sample


def prompt(name):
    asked = [{"role": "user", "content": "2 + 2"}]
    return Prompt(
        id=name,
        kind="sums",
        group="g",
        split="fit",
        messages=asked,
        max_tokens=8,
        reference=4,
        scorer="number",
    )


PROMPTS = {name: prompt(name) for name in ("p-1", "p-2")}


def outcomes(*rows):
    return Outcomes(manifest=MANIFEST, rows={row.key: row for row in rows})


BOTH = outcomes(answer(), answer(tier="large", text="5", right=False))


class Final(FixedJudge):
    async def judge(self, request, completion):
        return Verdict(judge=self.name, score=0.0, final=True)


async def test_a_row_has_what_the_members_see_and_who_is_right():
    (row,) = await judged_rows(BOTH, PROMPTS, [LogprobJudge(name="sure")], "small")
    assert (row.prompt, row.kind, row.split, row.length) == ("p-1", "sums", "fit", 1.0)
    assert row.right == {"small": True, "large": False}
    assert row.features["sure.mean"] == pytest.approx(-0.25)
    assert row.features["sure.margin_min"] == pytest.approx(1.5)


async def test_prompts_that_not_every_tier_answered_are_left_out():
    more = outcomes(*BOTH.rows.values(), answer("p-2"))
    assert [row.prompt for row in await judged_rows(more, PROMPTS, [FixedJudge(1.0)], "small")] == [
        "p-1"
    ]


async def test_an_answer_that_ends_the_panel_is_left_out():
    assert await judged_rows(BOTH, PROMPTS, [Final(0.0)], "small") == []


async def test_a_member_that_fails_names_the_prompt():
    with pytest.raises(JudgeError, match="prompt p-1: told: no luck"):
        await judged_rows(BOTH, PROMPTS, [FixedJudge(JudgeError("no luck"))], "small")


async def test_answers_to_other_prompts_are_refused():
    with pytest.raises(OutcomesError, match="'p-1', which is no prompt"):
        await judged_rows(BOTH, {}, [FixedJudge(1.0)], "small")


async def test_a_judge_that_calls_a_model_is_not_asked_again():
    models = {name: tier(name, "never asked") for name in ("small", "large")}
    asks = LlmJudge(name="graded", mode="pointwise", tier="large", tiers=models)
    said = outcomes(*BOTH.rows.values(), judgement())
    (row,) = await judged_rows(said, PROMPTS, stored([asks], said, "small"), "small")
    assert row.features == {"graded.mass": 1.0, "graded.score": 0.75}
    with pytest.raises(OutcomesError, match="no verdicts of pointwise by large"):
        stored([asks], BOTH, "small")


def agreement(**options):
    models = {"small": tier("small", "never asked")}
    return AgreementJudge(name="again", tiers=models, **options)


async def test_samples_that_are_stored_are_compared_as_while_serving():
    texts = ("4", "It is 4.", "5", "four")
    samples = [sample(index=index, text=text) for index, text in enumerate(texts)]
    said = outcomes(*BOTH.rows.values(), *samples)
    for compare, share in (("answer", 0.5), ("text", 0.25)):
        judges = stored([agreement(compare=compare)], said, "small")
        (row,) = await judged_rows(said, PROMPTS, judges, "small")
        assert row.features == {
            "again.agreement": share,
            "again.samples": 4.0,
            "again.score": share,
        }


async def test_a_judge_asked_first_keeps_its_word_outside_the_band():
    said = outcomes(*BOTH.rows.values(), *(sample(index=index) for index in range(4)))
    first = agreement(of=FixedJudge(0.95), band=(0.3, 0.8))
    (row,) = await judged_rows(said, PROMPTS, stored([first], said, "small"), "small")
    assert row.features == {"again.score": 0.95}


async def test_without_samples_of_a_prompt_it_cannot_tell():
    others = [sample("p-2", index=index) for index in range(4)]
    said = outcomes(*BOTH.rows.values(), *others)
    (row,) = await judged_rows(said, PROMPTS, stored([agreement()], said, "small"), "small")
    assert row.features == {}


@pytest.mark.parametrize("options", [{"k": 5}, {"temperature": 0.5}])
def test_too_few_samples_or_another_temperature_are_refused(options):
    said = outcomes(*BOTH.rows.values(), *(sample(index=index) for index in range(4)))
    with pytest.raises(OutcomesError, match="the outcomes have no"):
        stored([agreement(**options)], said, "small")


async def test_one_judge_is_heard_on_every_answer_that_it_can_tell_of():
    more = outcomes(*BOTH.rows.values(), answer("p-2", right=False))
    assert await verdicts(more, PROMPTS, Final(0.0), "small") == [
        (0.0, True, "g"),
        (0.0, False, "g"),
    ]
    assert await verdicts(more, PROMPTS, FixedJudge(None, 0.5), "small") == [(0.5, False, "g")]
    assert await verdicts(more, {}, FixedJudge(1.0), "small") == []


async def test_the_digest_is_of_the_rows_in_any_order():
    more = outcomes(*BOTH.rows.values(), answer("p-2"), answer("p-2", tier="large"))
    rows = await judged_rows(more, PROMPTS, [FixedJudge(1.0)], "small")
    assert digest(rows) == digest(rows[::-1])
    assert digest(rows) != digest(rows[:1])
