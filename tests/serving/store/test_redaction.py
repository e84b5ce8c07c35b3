import time

import pytest

pytest.importorskip("presidio_analyzer")

from serving.store.redaction import Redactor


@pytest.fixture(scope="module")
def redactor():
    return Redactor()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Write to kim.cs+x@mail.example.co.kr, please.", "Write to <EMAIL>, please."),
        ("제 메일은kim@example.com입니다.", "제 메일은<EMAIL>입니다."),
        ("(a_b%c@example.org)", "(<EMAIL>)"),
        ("Call +1 (415) 555-2671 today.", "Call <PHONE> today."),
        ("call 415-555-2671", "call <PHONE>"),
        ("전화는 010-1234-5678입니다", "전화는 <PHONE>입니다"),
        ("번호는01012345678이에요", "번호는<PHONE>이에요"),
        ("+82-10-9876-5432로 연락", "<PHONE>로 연락"),
        ("사무실 (02) 123-4567", "사무실 <PHONE>"),
        ("Card 4111 1111 1111 1111, exp 12/29", "Card <CARD>, exp 12/29"),
        ("카드번호는 5555-5555-5555-4444입니다", "카드번호는 <CARD>입니다"),
        ("amex 378282246310005.", "amex <CARD>."),
        ("My number is 900101-1234567.", "My number is <KR_RRN>."),
        ("주민번호는 9001011234567이고", "주민번호는 <KR_RRN>이고"),
        ("외국인등록번호 850505-5123456", "외국인등록번호 <KR_RRN>"),
        ("주민등록번호: 020229 - 3123456", "주민등록번호: <KR_RRN>"),
        (
            "kim@example.com, 010-1234-5678, 4111111111111111, 900101-1234567",
            "<EMAIL>, <PHONE>, <CARD>, <KR_RRN>",
        ),
        ("data:image/png;base64,iVBORw0KGgo=", "<DATA>"),
    ],
)
def test_what_identifies_somebody_is_taken_out_in_english_and_korean(redactor, text, left):
    assert redactor.text(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is 17 + 25?",
        "On 2024-03-01 at 10:15:00 it was 21.5 degrees.",
        "pi is 3.14159265",
        "def f(x): return x @ y",
        "서울의 인구는 9,411,000명입니다",
        "The card 4111 1111 1111 1112 is none.",
        "version 1.2.3, build 20240301",
        "2023-2024, pages 100-120",
    ],
)
def test_what_identifies_nobody_stays(redactor, text):
    assert redactor.text(text) == text


def test_every_text_of_a_value_is_looked_at_and_its_shape_stays(redactor):
    value = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "kim@example.com"}]},
            {"role": "tool", "content": '{"phone": "010-1234-5678"}', "n": 3, "none": None},
        ],
        "tools": None,
    }
    assert redactor.value(value) == {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "<EMAIL>"}]},
            {"role": "tool", "content": '{"phone": "<PHONE>"}', "n": 3, "none": None},
        ],
        "tools": None,
    }


def test_a_long_text_full_of_digits_comes_to_an_end(redactor):
    began = time.monotonic()
    text = "12 345 678 " * 20_000 + "kim@example.com"
    assert redactor.text(text).endswith("<EMAIL>")
    assert time.monotonic() - began < 120  # quadratic time would be hours


def test_every_number_of_a_long_row_is_found(redactor):
    numbers = ["010-1234-5678", "+82 10-1234-5678", "(02) 312-3456", "212-555-0142"]
    row = " / ".join(numbers * 15)
    found = redactor.text(f"call {row} now")
    assert not any(letter.isdigit() for letter in found)
    assert found.startswith("call <PHONE>")
    assert found.endswith("<PHONE> now")
