import time
from collections import Counter

import pytest

pytest.importorskip("presidio_analyzer")

import phonenumbers
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from serving.store.phones import REGIONS
from serving.store.redaction import OVERLAP, PIECE, Redactor


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
        ("전화 010 1234 5678 입니다", "전화 <PHONE> 입니다"),
        ("HP010-1234-5678", "HP<PHONE>"),
        ("사무실 02 123 4567 3층", "사무실 <PHONE> 3층"),
        ("+82 10 1234 5678 3 times", "<PHONE> 3 times"),
        ("(+82) 10-1234-5678", "<PHONE>"),
        ("82-10-1234-5678", "<PHONE>"),
        ("０１０－１２３４－５６７８", "<PHONE>"),  # noqa: RUF001 - as some keyboards write it
        ("010·1234·5678", "<PHONE>"),
        ("room 12 415 555 0132", "room 12 <PHONE>"),
        ("in 2024 (415) 555 0132 called", "in 2024 <PHONE> called"),
        ("5,010-1234-5678,7", "5,<PHONE>,7"),
        ("Card 4111 1111 1111 1111, exp 12/29", "Card <CARD>, exp 12/29"),
        ("카드번호는 5555-5555-5555-4444입니다", "카드번호는 <CARD>입니다"),
        ("amex 378282246310005.", "amex <CARD>."),
        ("010-1234-5678/010-8765-4321", "<PHONE>/<PHONE>"),
        ("010-1234-2010/02-312-3456", "<PHONE>/<PHONE>"),
        ("1.010-1234-5678", "1.<PHONE>"),
        ("010-1234-5678·02-312-3456", "<PHONE>·<PHONE>"),
        (r'{"phone": "\n01012345678\n"}', r'{"phone": "\n<PHONE>\n"}'),
        ("010-1234-5678 4111 1111 1111 1111", "<PHONE> <CARD>"),
        ("exp 12/29 4111 1111 1111 1111 3 times", "exp 12/29 <CARD> 3 times"),
        ("2 4111111111111111 378282246310005 3", "2 <CARD> <CARD> 3"),
        ("12 3782 822463 10005 34", "12 <CARD> 34"),
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
        "2024-01/02/2025 and 2024/03-15",
        "order 2024-012345678",
        "2023-2024, pages 100-120",
        "in 2024 and 2025",
        "1 234 567 records",
        "order 1234567890",
        "10.0.0.1 and 192.168.10.12",
        "03.12.2008 09:43",
        "04 12 2024 1015",
        "0.123456 0.654321 0.012345",
        "0 1 2 3 4 5 6 7 8 9",
        "2024-03-01 101500",
        "sha 4f01012345678aa",
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


BESIDE = [
    "{}",
    "call {} now",
    "방 12 {} 입니다",
    "{} 3",
    "12 34 {} 5 6",
    "2024 {}",
    "({})",
    "{}.",
    "\n{}\n",
]
PERSONAL = (
    PhoneNumberType.FIXED_LINE,
    PhoneNumberType.MOBILE,
    PhoneNumberType.VOIP,
    PhoneNumberType.PERSONAL_NUMBER,
)


@pytest.mark.parametrize("region", REGIONS)
def test_a_number_of_any_kind_is_found_as_people_write_it_whatever_stands_beside_it(
    redactor, region
):
    written = set()
    for kind in PERSONAL:
        if (number := phonenumbers.example_number_for_type(region, kind)) is None:
            continue
        for form in (PhoneNumberFormat.NATIONAL, PhoneNumberFormat.INTERNATIONAL):
            text = phonenumbers.format_number(number, form)
            written |= {text, text.replace("-", " "), text.replace(" ", "-"), text.replace(" ", "")}
    assert len(written) > 4
    for text in written:
        for beside in BESIDE:
            left = redactor.text(beside.format(text))
            assert "<PHONE>" in left or "<CARD>" in left, (text, beside, left)
            assert _digits(left) <= _digits(beside), (text, beside, left)


def _digits(text):
    return Counter(letter for letter in text if letter.isdigit())


@pytest.mark.parametrize(
    ("planted", "label"),
    [
        ("kim.cs@mail.example.co.kr", "<EMAIL>"),
        ("010 1234 5678", "<PHONE>"),
        ("+1 (415) 555-2671", "<PHONE>"),
        ("4111 1111 1111 1111", "<CARD>"),
        ("900101-1234567", "<KR_RRN>"),
    ],
)
def test_what_lies_across_the_border_of_two_pieces_of_a_long_text_is_found(
    redactor, planted, label
):
    borders = [PIECE - OVERLAP, PIECE]
    for border in borders:
        for offset in range(border - len(planted) - 3, border + 4):
            text = "가" * (offset - 1) + " " + planted + " " + "나" * PIECE
            left = redactor.text(text)
            assert left == text.replace(planted, label), (border, offset)


def test_at_a_border_a_piece_of_a_number_is_not_taken_for_what_the_whole_is_not(redactor):
    whole = "1234567890" * 5  # no card, and some of its beginnings and ends would be
    for offset in range(PIECE - 60, PIECE + 5):
        text = "x" * (offset - 1) + " " + whole + " " + "y" * PIECE
        assert redactor.text(text) == text, offset


def test_a_megabyte_of_digits_comes_to_an_end(redactor):
    began = time.monotonic()
    text = "12 345 678 " * 90_000 + "kim@example.com"
    assert redactor.text(text).endswith("<EMAIL>")
    assert "<EMAIL>" * 3 in redactor.text("a@b.kr;" * 30_000).replace(";", "")
    assert time.monotonic() - began < 300  # quadratic time would be hours


def test_every_number_of_a_long_row_is_found(redactor):
    numbers = ["010-1234-5678", "+82 10-1234-5678", "(02) 312-3456", "212-555-0142"]
    row = " / ".join(numbers * 15)
    found = redactor.text(f"call {row} now")
    assert not any(letter.isdigit() for letter in found)
    assert found.startswith("call <PHONE>")
    assert found.endswith("<PHONE> now")
