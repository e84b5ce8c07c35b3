"""What the log says in English is said in Korean, as far as the code that says it is our own."""

import ast
import re
from importlib.resources import files
from itertools import product
from pathlib import Path

import orjson
import pytest

import judges
from cascade.policies.fixed import FixedPolicy
from cascade.policies.ladder import LadderPolicy, Rung
from judges.sandbox import _ENDINGS
from serving.alerts.findings import _MESSAGES
from serving.alerts.jumps import Jump
from serving.dashboard.language import Texts
from serving.dashboard.phrases import LONGEST, Phrases
from serving.doctor.causes import _ADVICE, _SAID, _VOLATILE, WHERE, Cause
from serving.results.guardrails import Breach
from serving.results.sequences import Interval
from tests.builders import request
from tests.cascade.policies.weighing import (
    PRICES,
    believed,
    decide,
    failed,
    judged,
    unseen,
    utility,
)

KOREAN = Texts("ko")


def english_in(sentence):
    """What of a sentence is marked as English."""
    return re.findall(r'<span lang="en">(.*?)</span>', str(KOREAN.logged(sentence)))


JUDGED = [
    [],
    *([judged(0.9)], [judged(0.3)], [judged(None)], [failed("small", judge="sound")]),
    [judged(0.3), failed("large", 1)],
    *([unseen("large")], [failed("large")]),
]
STEPS = [Rung(tier="small", judge="sound", accept_at=0.7), Rung(tier="large")]
UNSEEN = [
    *([unseen("small")], [failed("small"), failed("large", 1)]),
    [judged(0.3), judged(0.2, tier="large", index=1)],
]


def reasons(policy, courses):
    """What a policy says in the course of requests, and at their ends."""
    sure = [believed(small=0.7, large=0.9), believed(small=0.97, large=0.98), believed(small=0.05)]
    unsure = believed(small=0.7, large=0.9, flags=("out_of_domain",))
    asked = [request(), request(served_by="small"), request(served_by="large")]
    for calls, beliefs, what in product(courses, [*sure, unsure], asked):
        yield decide(policy, beliefs, PRICES, calls, what).reason


@pytest.mark.parametrize(
    ("policy", "courses"),
    [
        (utility(), JUDGED + UNSEEN),
        (utility(when_unsure="large"), JUDGED + UNSEEN),
        (FixedPolicy(name="p", tier="small"), UNSEEN),
        (LadderPolicy(name="p", steps=STEPS), JUDGED),
        (LadderPolicy(name="p", steps=STEPS, when_unsure="large"), [[]]),
    ],
    ids=["utility", "careful utility", "fixed", "ladder", "careful ladder"],
)
def test_every_reason_of_a_policy_is_said_in_korean(policy, courses):
    said = set(reasons(policy, courses))
    assert len(said) > 1
    assert {sentence: english_in(sentence) for sentence in said if english_in(sentence)} == {}


def sentences(module):
    """What a judge's module says of an answer, with a word where a value stands."""
    source = ast.parse((Path(judges.__file__).parent / f"{module}.py").read_text())
    for node in ast.walk(source):
        pieces = node.values if isinstance(node, ast.JoinedStr) else [node]
        said = [each.value if isinstance(each, ast.Constant) else "'x'" for each in pieces]
        if isinstance(said[0], str) and said[0].startswith(("the answer ", "the arguments of ")):
            yield "".join(said)


@pytest.mark.parametrize(
    "module", ["code", "expected", "format", "language", "speech", "structure"]
)
def test_every_word_of_a_judge_is_said_in_korean(module):
    said = [each for each in sentences(module) if not each.endswith(" ")]
    assert said
    assert {sentence: english_in(sentence) for sentence in said if english_in(sentence)} == {}


@pytest.mark.parametrize("ending", [*_ENDINGS.values(), "it stopped before its end"])
def test_how_a_program_ended_is_said_in_korean(ending):
    for said in (ending, f"{ending}: it printed too much", f"{ending}: AssertionError"):
        assert english_in(said) == []
    assert "printed" not in str(KOREAN.logged(f"{ending}: it printed too much"))


def test_the_word_of_a_member_of_a_panel_is_said_in_korean():
    assert str(KOREAN.logged("runs: a test failed")) == "runs: 테스트 실패"
    assert str(KOREAN.logged("sure is missing (runs: the request has no tests)")) == (
        "sure 없음 (runs: 요청에 테스트가 없음)"
    )
    assert english_in("runs: <b> is odd") == ["runs: &lt;b&gt; is odd"]


@pytest.mark.parametrize("outcome", ["released", "held"])
def test_why_a_call_aside_was_made_is_said_in_korean(outcome):
    looked = "looks at the first 20 tokens of attempt 0, to release it from 0.900 on"
    for said in (f"{looked}: {outcome}", "says before any call which tier will do"):
        assert english_in(said) == []


@pytest.mark.parametrize("kind", sorted(_VOLATILE | _SAID))
def test_what_keeps_a_prompt_cold_and_what_to_do_about_it_are_said_in_korean(kind):
    for segment in WHERE:
        cause = Cause(kind, segment)
        assert english_in(cause.said) == []
        assert not re.search(r"\bthe\b", str(KOREAN.logged(cause.said)))
    if kind in _ADVICE:
        assert english_in(cause.advice) == []
        assert english_in(Cause(kind, "pack").advice) == []


def test_alerts_are_said_in_korean():
    found = Jump(now=0.4, usual=0.1, worst=0.2, number=100.0)
    for message in _MESSAGES.values():
        assert english_in(message("sound", found)) == []
    interval = Interval(estimate=-0.05, low=-0.08, high=-0.03)
    beyond = Breach(arm="b", guardrail="quality", bound=-0.02, interval=interval)
    assert english_in(f"experiment auto: {beyond.message}; it is turned off") == []


def test_what_has_no_known_form_stays_and_is_marked():
    assert str(KOREAN.logged("large failed; <b> is odd")) == (
        'large 실패; <span lang="en">&lt;b&gt; is odd</span>'
    )
    assert str(KOREAN.logged("")) == ""
    assert str(KOREAN.logged("a bad word changed")) == '<span lang="en">a bad word changed</span>'


def test_what_is_longer_than_any_sentence_of_ours_is_shown_as_it_is():
    suffix = ": the step for when unsure"
    for text in ("x" + 400 * suffix, "model says x, " * 5000):
        assert str(KOREAN.logged(text)) == f'<span lang="en">{text}</span>'
    nested = "x" + (LONGEST // len(suffix)) * suffix
    assert "확실하지 않을 때" in str(KOREAN.logged(nested))


def test_in_english_a_sentence_is_as_it_is():
    assert str(Texts("en").logged("large failed; run `cascade`")) == (
        "large failed; run <code>cascade</code>"
    )


def test_the_closest_form_is_taken():
    made = Phrases({"{judge} gives {score}": "general", "{judge} gives {score}, truly": "special"})
    assert str(made.told("a gives 1, truly")) == "special"


def test_every_form_has_the_values_of_its_english():
    names = re.compile(r"\{(\w+)\}")
    file = files("serving.dashboard") / "texts" / "ko.phrases.json"
    for form, other in orjson.loads(file.read_bytes()).items():
        assert sorted(names.findall(form)) == sorted(names.findall(other)), form
        assert re.search("[가-힣]", other), form
