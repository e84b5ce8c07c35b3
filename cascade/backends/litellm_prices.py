"""Price cards from the price map that litellm carries, so that known models need no typing.

The map is read as a file: importing litellm would take seconds, and may fetch another map. Its
numbers are taken as decimals and never pass through a float. What it leaves open stays unknown; a
zero is how it says nothing, so a model that it calls free must be said to be free.
"""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from cascade.backends.usage import ANTHROPIC_TTL, UNSTATED_TTL
from cascade.errors import ConfigError
from cascade.pricing import MILLION, PriceCard, Rates

_FILE: Final = "model_prices_and_context_window_backup.json"
_INPUT, _OUTPUT = "input_cost_per_token", "output_cost_per_token"
_READ, _WRITE = "cache_read_input_token_cost", "cache_creation_input_token_cost"
_HOUR: Final = "_above_1hr"
_LONG: Final = re.compile(rf"{_INPUT}_above_(\d+)k_tokens")
_APART: Final = {
    "output_cost_per_reasoning_token": "reasoning tokens",
    "input_cost_per_request": "requests",
}
"""What a price card has no rate for, when it is not the rate of the model's other tokens."""

Entry = Mapping[str, Any]


def card_of(model: str) -> PriceCard:
    """The card of a model, by litellm's name for it, from the map in the installed package.

    Raises:
        ConfigError: there is no map, no such model in it, or no price that a card can hold.
    """
    return card_from(_read(), model)


def card_from(prices: Mapping[str, Entry], model: str) -> PriceCard:
    """The card of a model in a map.

    A model that is said to cache, without a rate for what is read from the cache, is refused: its
    bills would be unknown or wrong. Where nothing is said of caching the rate stays unknown, and
    so does the bill of a call that reports a cache read after all.

    Raises:
        ConfigError: no such model, or no price that a card can hold.
    """
    entry = _entry(prices, model)
    rates = _rates(entry)
    if rates.input is None or rates.output is None:
        raise _unpriced(model, "has no price by token")
    for name, what in _APART.items():
        if entry.get(name) and entry[name] != entry[_OUTPUT]:
            raise _unpriced(model, f"prices {what} apart, which a price card cannot")
    if entry.get("supports_prompt_caching") and rates.cache_read is None:
        raise _unpriced(model, "says that the model caches, and has no price for cache reads")
    return PriceCard(rates=rates, long_prompt_rates=sorted(_long(entry), key=lambda tier: tier[0]))


def _read() -> Mapping[str, Entry]:
    found = find_spec("litellm")
    if found is None or found.origin is None:
        raise ConfigError("litellm, whose price map is asked for, is not installed: give prices")
    file = Path(found.origin).with_name(_FILE)
    try:
        prices: Mapping[str, Entry] = json.loads(file.read_bytes(), parse_float=Decimal)
    except (OSError, ValueError) as error:
        raise ConfigError(f"litellm's price map cannot be read ({error}): give prices") from None
    return prices


def _entry(prices: Mapping[str, Entry], model: str) -> Entry:
    """By the whole name, or without the provider where the entry says that it is that provider's.

    The map has both kinds of names.
    """
    provider, _, name = model.partition("/")
    if (entry := prices.get(model)) is not None:
        return entry
    entry = prices.get(name)
    if entry is None or not str(entry.get("litellm_provider")).startswith(provider):
        raise _unpriced(model, "does not know the model")
    return entry


def _rates(entry: Entry, suffix: str = "") -> Rates:
    fresh = _rate(entry, f"{_INPUT}{suffix}")
    write, hour = _rate(entry, f"{_WRITE}{suffix}"), _rate(entry, f"{_WRITE}{_HOUR}{suffix}")
    by_ttl = {ANTHROPIC_TTL: write, UNSTATED_TTL: write, "1h": hour}
    return Rates(
        input=fresh,
        cache_read=_rate(entry, f"{_READ}{suffix}"),
        # Nobody sells a write for less than the prompt alone: where the map says so, it is a slip.
        cache_write={ttl: rate for ttl, rate in by_ttl.items() if rate and rate >= (fresh or 0)},
        output=_rate(entry, f"{_OUTPUT}{suffix}") or _rate(entry, _OUTPUT),
    )


def _long(entry: Entry) -> Iterator[tuple[int, Rates]]:
    for name in entry:
        if (match := _LONG.fullmatch(name)) is not None and entry[name]:
            yield 1000 * int(match[1]), _rates(entry, name.removeprefix(_INPUT))


def _rate(entry: Entry, name: str) -> Decimal | None:
    """Dollars per million tokens; None where the map has no number or a zero."""
    price = entry.get(name)
    if not isinstance(price, Decimal | int) or price <= 0:
        return None
    return (price * MILLION).normalize() + 0


def _unpriced(model: str, why: str) -> ConfigError:
    return ConfigError(
        f"litellm's price map {why} ({model}): write the price as {{input, cache_read, output}} in "
        "dollars per million tokens"
    )
