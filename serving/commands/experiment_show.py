"""cascade experiment list | show."""

from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from cascade.errors import RequestError
from serving.commands.options import config_option, json_option
from serving.commands.overriding import door, url_option
from serving.overrides.store import DRAIN, EXPERIMENT, PIN
from serving.store.formats import NONE, columns, plain


@click.command("list")
@url_option
@config_option
@json_option
def list_all(path: Path | None, url: str | None, as_json: bool) -> None:
    """Print every experiment, what overrides it, and what is pinned or drained."""
    with door(path, url) as to:
        found, held = to.experiments(), to.overrides()
    if as_json:
        _json({"experiments": found, **held})
        return
    if not found:
        click.echo("the configuration has no experiments")
    else:
        Console().print(_table(found))
    for line in told(held):
        click.echo(line)


@click.command()
@click.argument("name")
@url_option
@config_option
@json_option
def show(path: Path | None, name: str, url: str | None, as_json: bool) -> None:
    """Print one experiment: its arms, what overrides it, who changed it when and why."""
    with door(path, url) as to:
        listed = to.experiments()
        past = to.overrides(EXPERIMENT + name)["history"]
    found = next((each for each in listed if each["name"] == name), None)
    if found is None:
        known = ", ".join(each["name"] for each in listed) or "none"
        raise RequestError(f"there is no experiment {name!r}; there are: {known}")
    if as_json:
        _json(found | {"history": past})
        return
    for line in _lines(found):
        click.echo(line)
    Console().print(_arms(found))
    if past:
        Console().print(_history(past))
    else:
        click.echo("nobody changed it while the service ran")


def told(held: dict[str, Any]) -> list[str]:
    """What overrides the file and what was left out of it, a line each, for people."""
    in_force = [in_words(each) for each in held["in_force"]]
    return [*in_force, *(f"warning: {doubt}" for doubt in held["left_out"])]


def in_words(override: dict[str, Any]) -> str:
    """One override in a line."""
    kind, _, name = override["subject"].partition(":")
    if kind == PIN:
        what = f"everything is pinned to {override['value'].get('tier')}"
    elif kind + ":" == DRAIN:
        what = f"{name} is drained"
    else:
        what = f"experiment {name} is overridden: {_value(override['value'])}"
    said = f"{override['who']}, {_at(override['created_at'])} UTC: {override['why']}"
    return f"{what}{_until(override)} ({said})"


def _table(found: list[dict[str, Any]]) -> Table:
    table = columns("experiment", "status", "arms", "unit", "layer", "overridden", right=("ramp",))
    for each in found:
        override = each["override"]
        table.add_row(
            plain(each["name"]),
            plain(each["status"]),
            plain(", ".join(f"{arm['name']} {arm['weight']:g}" for arm in each["arms"])),
            plain(each["unit"]),
            plain(each["layer"] or NONE),
            plain(f"{override['who']}: {override['why']}" if override else NONE),
            f"{each['ramp']:.4g}",
        )
    return table


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [
        f"{found['name']}: {found['status']}",
        f"ramp: {found['ramp']:.4g} of the units are in, by {found['unit']}",
        f"salt: {found['salt']}",
        f"outside: {found['outside']}",
    ]
    if found["layer"]:
        lines.append(f"layer: {found['layer']}, whose experiments share no unit")
    if found["covers"]:
        lines.append(f"covers: {', '.join(found['covers'])}")
    lines += [f"{key}: {found[key]}" for key in ("start", "end") if found[key]]
    override = found["override"]
    if override is not None:
        lines.append(
            f"overridden{_until(override)} by {override['who']}: {_value(override['value'])}"
        )
        lines.append(f"in the file: {_value(found['file'])}")
    if found["left_out"]:
        lines.append(f"warning: of the override this is not in force: {found['left_out']}")
    return [*lines, f"version {found['version']}"]


def _arms(found: dict[str, Any]) -> Table:
    table = columns("arm", "policy", "estimator", right=("weight", "in the file"))
    for arm in found["arms"]:
        table.add_row(
            plain(arm["name"]),
            plain(arm["policy"]),
            plain(arm["estimator"] or NONE),
            f"{arm['weight']:g}",
            f"{found['file']['weights'][arm['name']]:g}",
        )
    return table


def _history(past: list[dict[str, Any]]) -> Table:
    table = columns("at (UTC)", "who", "what", "why", right=("version",))
    for each in past:
        table.add_row(
            plain(_at(each["created_at"])),
            plain(each["who"]),
            plain(_value(each["value"]) + _until(each)),
            plain(each["why"]),
            str(each["version"]),
        )
    return table


def _value(value: dict[str, Any] | None) -> str:
    if value is None:
        return "as in the file"
    parts = []
    for key, part in value.items():
        if isinstance(part, dict):
            parts += [f"weight of {arm} {weight:g}" for arm, weight in part.items()]
        elif part is not None:
            parts.append(f"{key} {str(part).lower() if isinstance(part, bool) else part}")
    return ", ".join(parts)


def _until(override: dict[str, Any]) -> str:
    return f" until {_at(override['until'])} UTC" if override["until"] else ""


def _at(moment: str) -> str:
    """A time of ours, to the second."""
    return moment[:19].replace("T", " ")


def _json(value: Any) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
