"""cascade experiment set | stop."""

import math
from datetime import datetime
from typing import Any

import click

from cascade.errors import RequestError
from serving.commands.overriding import Asked, changing

_SEPARATOR = "="


def _weights(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, float]:
    weights = {}
    for each in given:
        arm, separator, weight = each.rpartition(_SEPARATOR)
        try:
            weights[arm] = float(weight)
        except ValueError:
            separator = ""
        if not separator or not arm:
            raise click.BadParameter(f"{each!r}: write ARM=WEIGHT")
        _number(context, option, weights[arm])
    return weights


def _number(_context: click.Context, _option: click.Parameter, given: float | None) -> float | None:
    """A number that JSON can carry, where another one would come to mean no number at all."""
    if given is not None and not math.isfinite(given):
        raise click.BadParameter(f"{given} is no number to set")
    return given


def _moment(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    """A time with its offset; one without is this machine's."""
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise click.BadParameter("write 2027-01-31T09:00, or with an offset from UTC") from None
    return (moment if moment.tzinfo else moment.astimezone()).isoformat()


@click.command("set")
@click.argument("name")
@click.option("--weight", "weights", multiple=True, callback=_weights, metavar="ARM=WEIGHT",
              help="An arm's weight; 0 turns it off. Several may be given.")  # fmt: skip
@click.option(
    "--ramp", type=click.FloatRange(0, 1), callback=_number, help="Share of the units that are in."
)
@click.option("--enable/--disable", "enabled", default=None, help="Let units in, or nobody.")
@click.option("--start", callback=_moment, help="Nobody is in before this time.")
@click.option("--end", callback=_moment, help="Nobody is in from this time on.")
@click.option("--reset", is_flag=True, help="As in the file again.")
@changing
def change(asked: Asked, name: str, *, reset: bool, **given: Any) -> None:
    """Change an experiment in every worker; what is not named stays as it is."""
    changes = {key: value for key, value in given.items() if value not in (None, {})}
    if reset == bool(changes):
        raise RequestError("say what to change, or --reset, and not both")
    said = asked.said
    with asked.door() as to:
        version = to.restore(name, said) if reset else to.change(name, changes, said)
    what = "as in the file again" if reset else "changed"
    asked.report(version, f"experiment {name} is {what}")


@click.command()
@click.argument("name")
@changing
def stop(asked: Asked, name: str) -> None:
    """Let nobody into an experiment any more; `set NAME --enable` lets them in again."""
    said = asked.said
    with asked.door() as to:
        version = to.change(name, {"enabled": False}, said)
    asked.report(version, f"experiment {name} is off")
