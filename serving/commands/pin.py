"""cascade pin."""

import click

from cascade.errors import RequestError
from serving.commands.experiment_show import in_words
from serving.commands.overriding import Asked, changing


@click.command()
@click.argument("tier", required=False)
@click.option("--off", is_flag=True, help="Answer what is asked for again.")
@changing
def pin(asked: Asked, tier: str | None, *, off: bool) -> None:
    """Send everything to TIER, whatever clients ask for; without TIER say what is pinned."""
    if off and (tier or asked.seconds):
        raise RequestError("--off takes neither a tier nor --for")
    with asked.door() as to:
        if tier is None and not off:
            held = to.overrides()["pin"]
            click.echo(in_words(held) if held else "nothing is pinned")
            return
        version = to.pin(tier, asked.said)
    asked.report(version, "nothing is pinned" if off else f"everything is pinned to {tier}")
