import pytest

from cascade.errors import ConfigError
from serving.config import Judge
from serving.shadow.check import tiers_asked
from tests.serving.test_config import GOOD, wired

SHADOW = "shadow: {share: 0.02, usd_per_day: 5, "


def test_a_good_block_is_taken_and_decides_nothing(tmp_path):
    plain = wired(tmp_path, GOOD)
    made = wired(tmp_path, f"{GOOD}{SHADOW}judges: [whole]}}\n")
    assert made.warnings == plain.warnings
    assert made.version == plain.version


@pytest.mark.parametrize(
    ("rest", "fault"),
    [
        ("tiers: [small, gone]}", r"shadow\.tiers\.1: there is no tier 'gone'"),
        ("judges: [gone]}", r"shadow\.judges\.0: there is no judge 'gone'"),
        ("judges: [sure]}", "judge sure needs log probabilities, which tier large does not give"),
        ("tears: [small]}", r"shadow\.tears: unknown key"),
    ],
)
def test_what_cannot_work_is_refused_with_its_line(tmp_path, rest, fault):
    with pytest.raises(ConfigError, match=rf"cascade\.yaml:\d+: {fault}|{fault}"):
        wired(tmp_path, f"{GOOD}{SHADOW}{rest}\n")


def test_a_tier_without_a_price_cannot_be_held_to_the_budget(tmp_path):
    text = GOOD.replace("    price: {input: 0.1, cache_read: 0.01, output: 0.2}\n", "")
    with pytest.raises(ConfigError, match=r"tiers\.small.*it has no price.*usd_per_day"):
        wired(tmp_path, f"{text}{SHADOW}tiers: all}}\n")
    assert wired(tmp_path, f"{text}{SHADOW}tiers: [large]}}\n")


def test_a_judge_that_asks_a_tier_without_a_price_cannot_be_held_to_the_budget(tmp_path):
    text = GOOD.replace("    price: {input: 0.1, cache_read: 0.01, output: 0.2}\n", "")
    asking = text.replace(
        "judges:\n", "judges:\n  second: {type: llm, mode: pointwise, tier: small}\n"
    )
    assert asking != text
    with pytest.raises(ConfigError, match=r"tiers\.small.*judge second asks it"):
        wired(tmp_path, f"{asking}{SHADOW}tiers: [large], judges: [second]}}\n")


def test_a_judge_that_a_policy_acts_on_is_no_independent_sign(tmp_path):
    made = wired(tmp_path, f"{GOOD}{SHADOW}tiers: [small], judges: [sound]}}\n")
    assert any("judge sound is acted on by policy cascade" in each for each in made.warnings)


def test_the_tiers_that_a_judge_asks_are_those_of_its_parts_too():
    judges = {
        "plain": Judge(type="format"),
        "asking": Judge(type="llm", tier="large", mode="pairwise", against="huge"),
        "both": Judge(type="panel", members=["plain", "asking"]),
        "over": Judge(type="agreement", of="both"),
    }
    found = {name: tiers_asked(judges, name) for name in judges}
    assert found["plain"] == frozenset()
    assert found["asking"] == found["both"] == found["over"] == {"large", "huge"}
