from decimal import Decimal

import pytest

from serving.dashboard import formats


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (None, formats.NONE),
        (Decimal(0), "$0.00"),
        (Decimal("1234.5"), "$1,234.50"),
        (Decimal("0.0344"), "$0.0344"),
        (Decimal("-0.5"), "-$0.500"),
    ],
)
def test_money_says_three_digits_and_never_zero_for_unknown(amount, written):
    assert formats.money(amount) == written


def test_pico_dollars_and_means_are_written_like_money():
    assert formats.pico_money(34_400_000_000) == "$0.0344"
    assert formats.pico_money(None) == formats.NONE
    assert formats.usd(0.0344) == "$0.0344"
    assert formats.usd(None) == formats.NONE


@pytest.mark.parametrize(
    ("number", "written"),
    [(None, formats.NONE), (0, "0"), (9_999, "9,999"), (12_345, "12.3k"), (4_560_000, "4.56M")],
)
def test_a_large_count_is_short(number, written):
    assert formats.short(number) == written


@pytest.mark.parametrize("write", [formats.count, formats.share, formats.score])
def test_what_is_not_known_is_a_dash(write):
    assert write(None) == formats.NONE


def test_a_time_that_cannot_be_is_the_nearest_that_can():
    assert formats.instant(1e300) == "9999-12-31T00:00:00.000Z"
    assert formats.clock(-1e300) == "1970-01-01 00:00 UTC"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Run `cascade db upgrade`.", "Run <code>cascade db upgrade</code>."),
        ("`a` <b> `<i>`", "<code>a</code> &lt;b&gt; <code>&lt;i&gt;</code>"),
        ("one ` alone <b>", "one ` alone &lt;b&gt;"),
        ("", ""),
    ],
)
def test_what_stands_between_backticks_is_code_and_nothing_is_markup(text, shown):
    assert formats.coded(text) == shown


def test_times_are_written_for_machines_and_for_people():
    assert formats.instant(1_790_000_000.25) == "2026-09-21T14:13:20.250Z"
    assert formats.clock(1_790_000_000.25) == "2026-09-21 14:13 UTC"
    assert formats.milliseconds(1500.0) == "1.50 s"
