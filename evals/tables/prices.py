"""What an answer costs where a table does not say: a price an answer, or a card for its tokens."""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

import numpy as np

from cascade.pricing import PriceCard, Rates
from cascade.types import Usage
from evals.tables.columns import TOKENS, Columns, TableError
from evals.tables.reading import Raw
from evals.tables.values import Vector, column_of, numbers

Prices = Mapping[str, Decimal | PriceCard]
"""By tier: dollars of any answer, or what its tokens cost."""


def stated(pairs: Sequence[str]) -> dict[str, Decimal | PriceCard]:
    """Prices by tier, from texts such as "small=0.0097", "large=2/8" or "large=2/0.2/8".

    One number is dollars an answer; two are dollars per million tokens of prompt and answer; of
    three the middle one is for prompt tokens that came from a cache.

    Raises:
        TableError: one is no such text, or says a tier twice.
    """
    found: dict[str, Decimal | PriceCard] = {}
    for pair in pairs:
        tier, _, said = pair.partition("=")
        price = _price(said)
        if not tier or price is None:
            raise TableError(f"{pair!r} is not TIER=DOLLARS, as small=0.0097, or TIER=INPUT/OUTPUT")
        if found.setdefault(tier, price) != price:
            raise TableError(f"{tier} is given two prices")
    return found


def costs(raw: Raw, mapping: Columns, tier: str, price: Decimal | PriceCard | None) -> Vector:
    """Dollars of a tier's answers, of shape (rows,); NaN where nothing says what one cost.

    A column of dollars comes first, then tokens by the tier's card, then the price of an answer.

    Raises:
        TableError: a row's dollars or tokens are no numbers.
    """
    column = column_of(raw, mapping, f"cost.{tier}")
    if column is not None:
        return numbers(raw, column)
    if isinstance(price, PriceCard):
        return _by_tokens(raw, mapping, tier, price)
    return np.full(len(raw), np.nan if price is None else float(price))


def _by_tokens(raw: Raw, mapping: Columns, tier: str, card: PriceCard) -> Vector:
    named = {name: column_of(raw, mapping, f"{name}.{tier}") for name in TOKENS}
    counts = {name: numbers(raw, column) for name, column in named.items() if column}
    if not {"input", "output"} <= counts.keys():
        return np.full(len(raw), np.nan)
    found = np.full(len(raw), np.nan)
    for at in range(len(raw)):
        tokens = {name: _count(some[at]) for name, some in counts.items()}
        usage = Usage(
            input=tokens["input"], cache_read=tokens.get("cache_read"), output=tokens["output"]
        )
        cost = card.price(usage)
        if cost is not None:
            found[at] = float(cost.total)
    return found


def _count(value: float) -> int | None:
    return None if np.isnan(value) else int(value)


def _price(text: str) -> Decimal | PriceCard | None:
    parts = [_decimal(part) for part in text.split("/")]
    numbers = [part for part in parts if part is not None]
    if len(numbers) < len(parts):
        return None
    match numbers:
        case [dollars]:
            return dollars
        case [read, written]:
            return PriceCard(rates=Rates(input=read, output=written))
        case [read, cached, written]:
            return PriceCard(rates=Rates(input=read, cache_read=cached, output=written))
    return None


def _decimal(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None
