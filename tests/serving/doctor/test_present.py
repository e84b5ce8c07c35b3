import json
from decimal import Decimal

import pytest

from serving.doctor.causes import Cause
from serving.doctor.doctor import Diagnosis, TierWarmth, diagnose
from serving.doctor.present import diagnosis_json, diagnosis_view
from tests.serving.doctor.logs import asked, unlogged
from tests.serving.store.test_present import shown


@pytest.fixture
def found() -> Diagnosis:
    """A date that costs 1,200 tokens twice, and an entry that expired; one call reports nothing."""
    log = [
        asked(f"date{n}", 60 * n, 500 if n else 0, "u1", *said, system=f"<date {n}>")
        for n, said in enumerate([(), ("a:1", "u2"), ("a:1", "u2", "a:2", "u3")])
    ]
    log += [
        asked("kept", 200, 0, "k1", session="t"),
        asked("lost", 1100, 0, "k1", "a:1", "k2", session="t"),
        asked("mute", 1200, None, "m1", session="m", tier="small", written=None),
    ]
    return diagnose(unlogged(*log))


def test_people_read_the_dearest_cause_first_with_advice_and_an_example(found: Diagnosis) -> None:
    text = shown(diagnosis_view(found, 10))
    assert max(map(len, text.splitlines())) <= 100
    first, second = text.index("a date or time in the system prompt"), text.index("expired")
    assert first < second
    assert "$0.00966  2 calls, 2,800 tokens, large" in text
    assert "cascade cache doctor --diff date1 date2" in text
    assert "Put it into the latest message" in text
    assert "small: cached tokens of 1 of 1 calls are not reported" in text
    assert "of the spend, which no cache can save" in text


def test_only_the_top_causes_are_shown_and_the_rest_is_counted(found: Diagnosis) -> None:
    text = shown(diagnosis_view(found, 1))
    assert "expired" not in text
    assert "and 1 more: --top 2" in text


def test_a_fork_is_named_and_dollars_that_are_not_known_are_not_made_up() -> None:
    log = [
        asked("one", 0, 0, "u1", "a:1", "u2", premium=False),
        asked("two", 9, 0, "do this", system="You plan.", premium=False),
    ]
    text = " ".join(shown(diagnosis_view(diagnose(unlogged(*log)), 10)).split())
    assert "a fork, which loses its parent's prefix" in text
    assert "unknown dollars" in text


def test_a_busy_log_fits_into_a_terminal_with_its_tiers_names() -> None:
    busy = TierWarmth(
        tier="large",
        calls=149_610,
        unreported=0,
        unknown=0,
        first=1_200,
        missed=38_449,
        prompt_tokens=1_219_790_400,
        read_tokens=850_000_000,
        lost_tokens=234_736_000,
        by_request=0.661,
        dollars=Decimal(1),
        output_dollars=Decimal(0),
    )
    view = diagnosis_view(Diagnosis(tiers=(busy,), findings=()), 10)
    (row,) = [line for line in shown(view, 80).splitlines() if line.split()[:1] == ["large"]]
    assert "149,610" in row
    assert "1,220 M" in row
    assert row.rstrip().endswith("235 M")


def test_an_empty_log_says_what_to_do() -> None:
    assert "widen --since" in shown(diagnosis_view(diagnose([]), 10))
    assert diagnosis_json(diagnose([]), 10)["calls"] == 0


def test_machines_get_the_same_with_exact_dollars(found: Diagnosis) -> None:
    value = json.loads(json.dumps(diagnosis_json(found, 10)))
    assert [each["cause"] for each in value["findings"]] == ["system_dates", "expired"]
    assert value["findings"][0]["usd"] == "0.00966"
    small = value["tiers"][1]
    assert (small["unreported"], small["by_token"]) == (1, None)


KINDS = (
    *("order", "keys", "added", "removed", "changed", "dates", "ids", "mixed"),
    *("cut", "rewritten", "edited", "latest", "side_call", "expired", "evicted", "together"),
    *("replica", "too_short", "first_here", "between"),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("segment", ["tools", "system", "pack", "history"])
def test_every_cause_has_a_sentence_and_advice(kind: str, segment: str) -> None:
    cause = Cause(kind, segment)
    assert "{" not in cause.said
    assert cause.advice.endswith(".")
