"""cascade cache ttl."""

from collections.abc import Mapping
from pathlib import Path

import click
import orjson
from rich.console import Console

from cascade.errors import RequestError
from serving.commands.log import audit_database, since_option, usable_tiers
from serving.commands.options import config_option, json_option, load
from serving.retention.present import retention_json, retention_view
from serving.retention.uses import count_uses
from serving.retention.worth import Speeds, TierTerms, retention
from serving.store.cache_queries import calls
from serving.tier_config import GpuPrice

_UNKNOWN = TierTerms()


@click.command()
@since_option
@click.option("--tier", help="Only this tier.")
@config_option
@json_option
def ttl(path: Path | None, since: float | None, tier: str | None, as_json: bool) -> None:
    """Say from the audit log how long prompts are worth keeping warm.

    Compares times to live by what they would have cost, says whether pings that keep prompts alive
    pay, and for how long to hold an agent's run while its tools work.
    """
    terms = _terms(path)
    with audit_database(path) as engine:
        uses = count_uses(
            calls(engine, since=since), lambda name: terms.get(name, _UNKNOWN).horizons
        )
    if tier is not None and tier not in uses:
        raise RequestError(
            f"tier {tier!r} has no calls in that time; there are calls of: "
            f"{', '.join(sorted(uses)) or 'none'}; widen --since",
            param="tier",
        )
    found = [
        retention(name, used, terms.get(name, _UNKNOWN))
        for name, used in sorted(uses.items())
        if tier in {None, name}
    ]
    if as_json:
        click.echo(orjson.dumps(retention_json(found), option=orjson.OPT_INDENT_2).decode())
    else:
        Console().print(retention_view(found))


def _terms(path: Path | None) -> Mapping[str, TierTerms]:
    """Prices, caches and speeds of the configuration's tiers; none where it cannot work."""
    stated = load(path).config.tiers
    return {
        name: TierTerms(prices=tier.prices, cache=tier.cache, speeds=_speeds(stated[name].price))
        for name, tier in usable_tiers(path).items()
    }


def _speeds(price: object) -> Speeds | None:
    if not isinstance(price, GpuPrice):
        return None
    return Speeds(prefill=price.prefill_tokens_per_second, cached=price.cached_tokens_per_second)
