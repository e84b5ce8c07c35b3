from serving.doctor.difference import difference
from serving.doctor.present import difference_json, difference_view
from tests.serving.doctor.logs import prompt
from tests.serving.store.test_present import shown

DATED = "It is <date {}>."


def test_two_prompts_side_by_side_say_what_became_of_each_segment() -> None:
    old = prompt("u1", "a:1", "u2", system=DATED.format(1), pack=("a", "b"))
    new = prompt("u1", "a:1", "u2", "a:2", "u3", system=DATED.format(2), pack=("b", "a"))
    found = difference(old, new)
    assert [(each.name, each.said) for each in found.segments] == [
        ("tools", "equal"),
        ("system", "the same but for dates and times"),
        ("pack", "the same parts in another order"),
        ("history", "parts: 2, now 4; the first 2 are equal, 2 in all"),
        ("suffix", "changed"),
    ]
    assert found.common == 500 / new.tokens
    text = " ".join(shown(difference_view("one", "two", found)).split())
    assert "a date or time in the system prompt changes" in text
    assert "at least 16.1% of the second" in text
    assert difference_json("one", "two", found)["cause"] == "system_dates"


def test_a_prompt_that_goes_on_and_two_that_have_nothing_to_do_with_each_other() -> None:
    old = prompt("u1")
    assert "the second goes on from the first" in told(difference(old, prompt("u1", "a:1", "u2")))
    assert "two conversations;" in told(difference(old, prompt("else")))
    other = difference(old, prompt("else", system="You plan."))
    assert "two conversations with other system prompts" in told(other)


def test_segments_that_only_one_has_are_named() -> None:
    found = difference(prompt("u1", tools=()), prompt("u1", system=""))
    assert [(each.name, each.said, each.before_tokens) for each in found.segments] == [
        ("tools", "only in the second", None),
        ("system", "only in the first", 1000),
        ("suffix", "equal", 200),
    ]


def told(found: object) -> str:
    return str(difference_json("one", "two", found)["said"])  # type: ignore[arg-type]
