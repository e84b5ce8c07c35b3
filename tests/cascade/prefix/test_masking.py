"""Dates and identifiers are found in their usual forms, and other text is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.prefix.masking import DATE, IDENTIFIER, masked

DATES = [
    *("2026-11-30", "2026/11/30", "30.11.2026", "11/30/2026", "11/30/26", "20261130"),
    *("2026-11-30T07:41:00Z", "2026-11-30 07:41:00.123456+09:00", "20261130T074100Z"),
    *("Monday", "30 November 2026", "November 30, 2026", "Nov 30", "30th of November", "July 2026"),
    *("07:41", "7:41 PM", "7:41\u202fPM", "7 pm", "07:41:59,123", "07:41 UTC", "07:41 GMT+0900"),
    *("1796024460", "1796024460123", "1796024460.25"),
    *("2026년 11월 30일", "2026년11월30일", "11월 30일", "월요일", "7시 41분", "2026年11月30日"),
]
LONGER_DATES = [
    "Monday, 30 November 2026, 7:41 PM",
    "Mon, 30 Nov 2026 07:41:00 +0000",
    "Mon Nov 30 07:41:00 UTC 2026",
    "Mon Nov 30 2026 07:41:00 GMT+0100",
    "2026년 11월 30일 월요일 오후 7시 41분",
    "오전 7:41",
]
IDENTIFIERS = [
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "20261130-4f89-11d3-9a0c-0305e82c3301",
    "3F2504E04F8911D39A0C0305E82C3301",
    "a1b2c3d4e5f6",
    "01KAVN3Z5QJ8W0X2Y4R6T7S9PB",
    "dGhpcyBpcyBhbiBpZA-42x",
    "req_011CSHoEeqs5C35K",
    "call_9f31aB27",
    "chatcmpl-8x7Yq2Lm",
    "123456",
    "98765432109876",
]
PLAIN = [
    "The quick brown fox, and it may march on.",
    "Use at most 3 tools, then answer in 200 words; see section 4.2 of page 12345.",
    "def tool_with_a_long_snake_case_name(self) -> None:",
    "Python 3.11.4 and version 1.2.3 of the A-to-Z guide",
    "deadbeef, acceded, effaced and a_name_of_nothing",
    "당신은 도움이 되는 조수입니다. 규칙 3개를 따르세요.",
    "",
]


def shown(name, text):
    return getattr(masked(text.encode()), name)


@pytest.mark.parametrize("date", DATES)
def test_a_date_or_time_is_taken_out_as_one(date):
    text = f"Now: {date}. Go on."
    assert shown("dates", text) == b"Now: %b. Go on." % DATE
    assert shown("both", text) == shown("dates", text)
    assert shown("ids", text) == text.encode()


@pytest.mark.parametrize("date", LONGER_DATES)
def test_nothing_is_left_of_a_date_that_has_several_pieces(date):
    left = shown("dates", date).replace(DATE, b"")
    assert not any(chr(each).isalnum() for each in left), left
    assert shown("ids", date) == date.encode()


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_an_identifier_is_taken_out(identifier):
    text = f"<session>{identifier}</session>"
    assert shown("ids", text) == b"<session>%b</session>" % IDENTIFIER
    assert shown("both", text) == shown("ids", text)
    assert shown("dates", text) == text.encode()


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_is_left_alone(text):
    assert {shown(name, text) for name in ("dates", "ids", "both")} == {text.encode()}


def test_each_is_taken_out_without_the_other():
    text = "On 2026-11-30 user 7f3a9c21b4d0 came, log-2026-11-30-12345."
    assert shown("dates", text) == b"On %b user 7f3a9c21b4d0 came, log-%b-12345." % (DATE, DATE)
    assert shown("ids", text) == text.replace("7f3a9c21b4d0", "\0").encode().replace(
        b"\0", IDENTIFIER
    )
    assert shown("both", text) == b"On %b user %b came, log-%b-12345." % (DATE, IDENTIFIER, DATE)


@given(st.text())
def test_any_text_can_be_read(text):
    found = masked(text.encode(errors="surrogatepass"))
    assert found.both.count(DATE) == found.dates.count(DATE)
    assert found.both.count(IDENTIFIER) == found.ids.count(IDENTIFIER)


HOSTILE = [
    *(
        b"1",
        b"-",
        b"a",
        b"A",
        b"_",
        b"f",
        b" ",
        b"20",
        b"1-",
        b"1:",
        b"1:1",
        b"0 ",
        b"a1 ",
        b"\xec",
    ),
    *(b"\xec", b"Mon, ", b"Monday", b"Jan ", b"1 of Nov", "월".encode(), "오전".encode()),
    *(b"2026-11-30T", b"-2026-11-3", b"12:00:00.", b"1/1/1/"),
    *(b"req_", b"abcdef", b"0a0a0a0a-", b"0a0a0a0a-0a0a-"),
]


@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
def test_a_megabyte_of_anything_is_read_to_its_end(piece):
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
    assert masked(text + b" | 2026-11-30").dates.endswith(DATE)
