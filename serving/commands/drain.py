"""cascade drain."""

import click

from cascade.errors import RequestError
from serving.commands.experiment_show import in_words
from serving.commands.overriding import Asked, changing


@click.command()
@click.argument("tier", required=False)
@click.option("--off", is_flag=True, help="It may be asked again.")
@changing
def drain(asked: Asked, tier: str | None, *, off: bool) -> None:
    """Send nothing to TIER any more; without TIER say which are drained.

    A request that no other tier may serve gets a 503. A judge that asks the tier still does.
    """
    if off and (tier is None or asked.seconds):
        raise RequestError("--off takes a tier and no --for")
    with asked.door() as to:
        if tier is None:
            held = [in_words(each) for each in to.overrides()["drains"].values()]
            click.echo("\n".join(held) or "no tier is drained")
            return
        version = to.drain(tier, asked.said, off=off)
    asked.report(version, f"{tier} is {'not drained any more' if off else 'drained'}")
