"""Requests whose prompt a tier's own tokenizer counts before any call."""

from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from tests.engines import Bench, FixedJudge, request, tier


class Counting:
    def __init__(self, count):
        self.times = 0
        self._count = count

    async def count(self, asked):
        self.times += 1
        return self._count


NEAR = request("word " * 150)


async def test_a_tier_whose_window_is_too_short_by_count_is_skipped_and_the_row_says_so():
    small = tier("small", "four", tokenizer=Counting(400), context_tokens=300)
    result = await Bench(small, tier("large", "4"), judge=FixedJudge(0.9)).run(NEAR)
    assert result.completion.tier == "large"
    assert result.attempts[0].reason.endswith(
        "small has a window of 300 tokens, too short for the prompt of 400"
    )


async def test_with_no_window_long_enough_the_client_is_told_both_numbers():
    tiers = [
        tier(name, tokenizer=Counting(400), context_tokens=window)
        for name, window in (("small", 300), ("large", 400))
    ]
    bench = Bench(*tiers, judge=FixedJudge(0.9))
    result = await bench.run(NEAR)
    assert (result.error.status, result.error.code) == (400, "no_tier_fits")
    assert "large has a window of 400 tokens, too short for the prompt of 400" in (
        result.error.message
    )
    assert not bench.asked("small")


async def test_a_tokenizer_that_cannot_tell_leaves_its_tier_in():
    small = tier("small", "four", tokenizer=Counting(None), context_tokens=300)
    result = await Bench(small, tier("large", "4"), judge=FixedJudge(0.9)).run(NEAR)
    assert result.completion.tier == "small"


async def test_only_tiers_of_the_policy_are_asked_to_count():
    counting, other = Counting(10), Counting(10)
    arm = Arm(name=None, policy=FixedPolicy(name="f", tier="small"))
    tiers = [
        tier("small", "four", tokenizer=counting, context_tokens=300),
        tier("large", "4", tokenizer=other, context_tokens=300),
    ]
    await Bench(*tiers, arm=arm).run(NEAR)
    assert (counting.times, other.times) == (1, 0)
