from decimal import Decimal

import pytest

from cascade.pricing import PriceCard, Rates
from evals.tables import TableError
from evals.tables.prices import stated


def test_prices_are_read_by_tier():
    found = stated(["small=0.0097", "large=2/8", "huge=2/0.5/8"])
    rates = Rates(input=Decimal(2), output=Decimal(8))
    cached = Rates(input=Decimal(2), cache_read=Decimal("0.5"), output=Decimal(8))
    assert found == {
        "small": Decimal("0.0097"),
        "large": PriceCard(rates=rates),
        "huge": PriceCard(rates=cached),
    }


@pytest.mark.parametrize(
    "pair", ["small", "=1", "small=", "small=x", "small=-1", "small=NaN", "a=1/", "a=1/2/3/4"]
)
def test_what_is_no_price_is_refused(pair):
    with pytest.raises(TableError, match="is not TIER=DOLLARS"):
        stated([pair])


def test_a_tier_with_two_prices_is_refused():
    with pytest.raises(TableError, match="small is given two prices"):
        stated(["small=1", "small=2"])
