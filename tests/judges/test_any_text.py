"""No text that a model may write makes a judge fall over."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.asking.labels import read_label
from cascade.types import ChatRequest, Choice, Completion
from judges.code import python_of
from judges.expected import ExpectedJudge
from judges.finals import final_answer, normalised
from judges.format import FormatJudge
from judges.language import NAMES, foreign
from judges.speech import refusal, repetition

PIECES = st.sampled_from(
    ["```", "python\n", "ha ", "1,2", "{", '"a": ', "}", "B) ", "sorry, ", "\0"]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=60).map("".join))


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_any_text_can_be_read(text):
    assert isinstance(final_answer(text), str)
    assert normalised(normalised(text)) == normalised(text)
    for found in (python_of(text), refusal(text), repetition(text)):
        assert found is None or isinstance(found, str)
    for language in NAMES.values():
        assert foreign(text, language) is None or text


@given(TEXTS, st.sampled_from(["Answer in German.", "Give JSON."]))
@settings(max_examples=100, deadline=None)
async def test_any_text_can_be_judged(text, ask):
    request = ChatRequest(id="r", messages=[{"role": "user", "content": ask}], tags={"right": text})
    completion = Completion(choices=(Choice(text=text, finish_reason="stop"),))
    for judge in (FormatJudge(), ExpectedJudge(reference_tag="right", pattern="")):
        verdict = await judge.judge(request, completion)
        assert verdict.score in {0.0, 1.0}
        assert verdict.final == (verdict.score == 0.0)
    reading = read_label(completion, ("no", "yes"))
    assert reading is None or sum(reading.probabilities.values()) == 1.0
