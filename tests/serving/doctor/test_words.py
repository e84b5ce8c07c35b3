import pytest

from serving.doctor.words import gap


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "0.5 s"),
        (5, "5 s"),
        (40, "40 s"),
        (318, "5.3 min"),
        (660, "11 min"),
        (3600, "1 h"),
        (9000, "2.5 h"),
        (90_000, "25 h"),
    ],
)
def test_a_gap_has_no_more_digits_than_say_something(seconds: float, text: str) -> None:
    assert gap(seconds) == text
