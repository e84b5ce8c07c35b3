import click
import pytest

from serving.commands.units import SECONDS, SIZE, SPEED, seconds, size


@pytest.mark.parametrize(
    ("typed", "amount"),
    [
        ("60GB", 60e9),
        ("60 GiB", 60 * 2**30),
        ("1,500", 1500),
        ("1.5kB", 1500),
        ("100Gbit", 12.5e9),
        ("2e3B", 2000),
    ],
)
def test_a_gigabyte_and_a_gibibyte_are_told_apart(typed, amount):
    assert SIZE.convert(typed, None, None) == amount


def test_speeds_and_times_have_units_of_their_own():
    assert SPEED.convert("25GB/s", None, None) == 25e9
    assert SPEED.convert("25GB", None, None) == 25e9
    assert [SECONDS.convert(typed, None, None) for typed in ("5ms", "2", "3us")] == [
        pytest.approx(0.005),
        2,
        pytest.approx(3e-6),
    ]


@pytest.mark.parametrize("typed", ["", "much", "60Gb", "-1GB", "60,5GB", "1 000", "GB"])
def test_what_has_no_clear_meaning_is_refused_with_the_units_there_are(typed):
    with pytest.raises(
        click.BadParameter, match="no size; write a number and one of B, kB, MB, GB"
    ):
        SIZE.convert(typed, None, None)


def test_amounts_are_printed_in_both_counts():
    assert size(327_680) == "327,680 bytes"
    assert size(28_672 * 1000) == "28.67 MB = 27.34 MiB"
    assert size(32_768 * 327_680) == "10.74 GB = 10 GiB"
    assert (seconds(0.1311), seconds(3.0624)) == ("131.1 ms", "3.062 s")
