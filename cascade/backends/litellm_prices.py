"""Price and cache cards from the map that litellm carries, so that known models need no typing.

The map is read as a file: importing litellm would take seconds, and may fetch another map. Its
numbers are taken as decimals and never pass through a float. What it leaves open stays unknown; a
zero is how it says nothing, so a model that it calls free must be said to be free.
"""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from cascade.backends.usage import ANTHROPIC_TTL, UNSTATED_TTL
from cascade.caches import CacheCard
from cascade.errors import ConfigError
from cascade.pricing import MILLION, PriceCard, Rates

_FILE: Final = "model_prices_and_context_window_backup.json"
_INPUT, _OUTPUT = "input_cost_per_token", "output_cost_per_token"
_READ, _WRITE = "cache_read_input_token_cost", "cache_creation_input_token_cost"
_HOUR, _HALF_DAY = "_above_1hr", "_above_12hr"
_LONG: Final = re.compile(rf"{_INPUT}_above_(\d+)k_tokens")
_APART: Final = {
    "output_cost_per_reasoning_token": "reasoning tokens",
    "input_cost_per_request": "requests",
}
"""What a price card has no rate for, when it is not the rate of the model's other tokens."""

_LEAST: Final = 1024
_OPENAI: Final = {"openai", "azure"}
_ANTHROPIC: Final = {"anthropic", "bedrock", "bedrock_converse", "vertex_ai-anthropic_models"}

Entry = Mapping[str, Any]


def card_of(model: str) -> PriceCard:
    """The card of a model, by litellm's name for it, from the map in the installed package.

    Raises:
        ConfigError: there is no map, no such model in it, or no price that a card can hold.
    """
    return card_from(_read(), model, source=_source())


def cache_of(model: str) -> CacheCard | None:
    """How a model's provider keeps prompts, by litellm's name for the model; None if unknown.

    Unknown is also what the installed package has no map for: a cache card is never required.
    """
    try:
        return cache_from(_read(), model)
    except ConfigError:
        return None


def cache_from(prices: Mapping[str, Entry], model: str) -> CacheCard | None:
    """The same, from a map. The map has the shortest prompt; the times are the providers' own.

    Anthropic's models, whoever runs them: five minutes from the last use, exact to the token. Of
    OpenAI's, those with cache breakpoints (and a price for writes): half an hour, exact; all
    others: five to ten minutes, of which the shorter counts, from 1,024 tokens on in steps of 128.
    None for a model that is not said to cache, or without a price for it, which says the same, and
    for providers that promise no time.

    Raises:
        ConfigError: no such model.
    """
    entry = _entry(prices, model)
    if not entry.get("supports_prompt_caching") or _rate(entry, _READ) is None:
        return None
    provider, least = entry.get("litellm_provider"), entry.get("prompt_cache_min_tokens")
    if provider in _ANTHROPIC and least:
        return CacheCard(kind="ttl", ttl_seconds=300.0, minimum_tokens=int(least), marked=True)
    if provider not in _OPENAI:
        return None
    least = int(least or _LEAST)
    if entry.get("supports_prompt_cache_breakpoint"):
        return CacheCard(kind="ttl", ttl_seconds=1800.0, minimum_tokens=least)
    return CacheCard(kind="ttl", block=128, ttl_seconds=300.0, minimum_tokens=least)


def card_from(prices: Mapping[str, Entry], model: str, *, source: str | None = None) -> PriceCard:
    """The card of a model in a map; `source` says which map that is.

    A model that is said to cache, without a rate for what is read from the cache, is refused: its
    bills would be unknown or wrong. Where nothing is said of caching the rate stays unknown, and
    so does the bill of a call that reports a cache read after all.

    Raises:
        ConfigError: no such model, or no price that a card can hold.
    """
    entry = _entry(prices, model)
    anthropics = entry.get("litellm_provider") in _ANTHROPIC or "claude" in model
    rates = _rates(entry, anthropics=anthropics)
    if rates.input is None or rates.output is None:
        raise _unpriced(model, "has no price by token")
    for name, what in _APART.items():
        if entry.get(name) and entry[name] != entry[_OUTPUT]:
            raise _unpriced(model, f"prices {what} apart, which a price card cannot")
    if entry.get("supports_prompt_caching") and rates.cache_read is None:
        raise _unpriced(model, "says that the model caches, and has no price for cache reads")
    longer = sorted(_long(entry, anthropics=anthropics), key=lambda tier: tier[0])
    return PriceCard(rates=rates, long_prompt_rates=longer, source=source)


def _source() -> str:
    try:
        return f"litellm {version('litellm')}"
    except PackageNotFoundError:  # it can be imported, but was not installed as a package
        return "litellm"


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


def _rates(entry: Entry, suffix: str = "", *, anthropics: bool) -> Rates:
    fresh = _rate(entry, f"{_INPUT}{suffix}")
    write = _rate(entry, f"{_WRITE}{suffix}")
    # Only the writes of Anthropic's models are reported by how long they are kept.
    by_ttl = {ANTHROPIC_TTL: write} if anthropics else {}
    by_ttl[UNSTATED_TTL] = write
    by_ttl["1h"] = _rate(entry, f"{_WRITE}{_HOUR}{suffix}")
    by_ttl["12h"] = _rate(entry, f"{_WRITE}{_HALF_DAY}{suffix}")
    return Rates(
        input=fresh,
        cache_read=_rate(entry, f"{_READ}{suffix}"),
        # Nobody sells a write for less than the prompt alone: where the map says so, it is a slip.
        cache_write={ttl: rate for ttl, rate in by_ttl.items() if rate and rate >= (fresh or 0)},
        output=_rate(entry, f"{_OUTPUT}{suffix}") or _rate(entry, _OUTPUT),
    )


def _long(entry: Entry, *, anthropics: bool) -> Iterator[tuple[int, Rates]]:
    for name in entry:
        if (match := _LONG.fullmatch(name)) is not None and entry[name]:
            rates = _rates(entry, name.removeprefix(_INPUT), anthropics=anthropics)
            yield 1000 * int(match[1]), rates


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
