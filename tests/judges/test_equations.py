import pytest

from judges.equations import MOST, equations, numbers, same


@pytest.mark.parametrize(
    ("text", "operands", "result"),
    [
        ("3 x 60 = <<3*60=180>>180 meters", (3, 60), 180),
        ("8 x $5 x 60% = $24", (8, 5, 60, 100), 24),
        ("4 feet / 0.5 feet = 8 pieces", (4, 0.5), 8),
        ("1,200 + 300 = 1,500", (1200, 300), 1500),
        ("That leaves (20 - 4) / 2 = 8 each", (20, 4, 2), 8),
        ("20% of 40 = 8", (20, 100, 40), 8),
        ("12 \u00d7 3 \u00f7 4 = 9", (12, 3, 4), 9),
        ("5 \u2212 8 = -3", (5, 8), -3),
    ],
)
def test_sums_are_found_between_units_words_and_signs(
    text: str, operands: tuple[float, ...], result: float
) -> None:
    (equation,) = equations(text)
    assert (equation.operands, equation.result) == (operands, result)
    assert equation.is_sum
    assert equation.works_out


@pytest.mark.parametrize(
    "text",
    ["4 + 4 = 9", "3 x 60 = 190 meters", "so (20 - 4) / 2 = 10.", "12 / 20 x 100 = 55%"],
)
def test_a_sum_that_does_not_work_out_is_seen(text: str) -> None:
    assert [equation.works_out for equation in equations(text)] == [False]


def test_rounding_and_percentages_are_no_mistakes() -> None:
    for text in ("10 / 3 = 3.33", "3 / 4 = 75%", "3 / 4 = 0.75", "1 / 3 = 0.33", "50 / 100 = .5"):
        assert [e.works_out for e in equations(text)] == [True], text


def test_a_chain_is_held_together_link_by_link() -> None:
    first, second = equations("2 * 3 = 6 + 1 = 7")
    assert (first.works_out, second.works_out) == (True, True)
    assert [e.works_out for e in equations("2 * 3 = 5 + 1 = 7")] == [True, False]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = y",
        "1 / 0 = 3",
        "9 ** 9 ** 9 = 1",
        "no numbers = none",
        "(" * 5000 + "1 = 1",
        "= ==",
    ],
)
def test_what_is_no_sum_is_passed_over(text: str) -> None:
    assert not any(equation.is_sum for equation in equations(text))


def test_a_statement_without_an_operation_has_nothing_to_work_out() -> None:
    (equation,) = equations("the price = 5 = 7")[-1:]
    assert not equation.is_sum
    assert equation.works_out


def test_a_text_of_nothing_but_sums_is_read_up_to_a_limit() -> None:
    assert len(equations("1 + 1 = 2\n" * 10_000)) == MOST


def test_numbers_are_read_through_signs_and_separators() -> None:
    assert numbers("$1,234.50, -3 and .5 of 2nd v1.2") == [1234.5, -3.0, 0.5, 2.0]


def test_the_same_up_to_rounding_is_the_same() -> None:
    assert same(3.333333, 3.33)
    assert not same(3.34, 3.33 - 0.01)
    assert not same(0.34, 0.33)
    assert same(100_000, 100_004)
