"""cascade models pull | status | command | measure."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from cascade.errors import ConfigError
from serving.commands.models_measure import measure
from serving.commands.options import config_option, json_option, load
from serving.commands.progress import downloading
from serving.config import Config
from serving.models import fetch
from serving.models.catalogue import lookup
from serving.models.child import free_ports
from serving.models.home import home, models_folder
from serving.models.launch import share_threads, usable_cores
from serving.models.llama_cpp import KEY_VARIABLE
from serving.models.status import FileStatus, ServerStatus, file_statuses, server_statuses
from serving.models.vllm import Line, Unstated, serve_line
from serving.wiring import LAUNCHABLE, launches


@click.group()
def models() -> None:
    """Fetch models and see how they are."""


models.add_command(measure)


@models.command()
@click.argument("names", nargs=-1)
@config_option
def pull(path: Path | None, names: tuple[str, ...]) -> None:
    """Fetch the named models, or all that the configuration launches."""
    wanted = names or tuple(
        tier.launch.model for tier in load(path).config.tiers.values() if tier.launch
    )
    console = Console()
    for name in wanted:
        with downloading(console) as progress:
            file = fetch.locate(name, home(), progress)
        click.secho(f"{name}: {file}", fg="green")


@models.command()
@json_option
def status(as_json: bool) -> None:
    """Show the model files and the model servers that run on this machine."""
    files, servers = file_statuses(home()), server_statuses(home())
    if as_json:
        report = {"files": [asdict(f) for f in files], "servers": [asdict(s) for s in servers]}
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2, default=str).decode())
        return
    console = Console()
    console.print(_files(files))
    click.echo(f"  in {home() / 'models'}\n")
    if not servers:
        click.echo("no model server runs; `cascade serve` starts them")
        return
    console.print(_servers(servers))
    for server in servers:
        click.echo(f"  {server.state.tier}: {server.state.url}, log {server.state.log}")


@models.command()
@click.argument("tier")
@click.argument("others", nargs=-1, type=click.UNPROCESSED)
@click.option("--weights", help="vLLM: hub id or folder of the model.")
@click.option("--tool-call-parser", help="vLLM: how the model writes tool calls, e.g. hermes.")
@click.option("--reasoning-parser", help="vLLM: how the model marks its reasoning.")
@click.option("--gpus", type=click.IntRange(1), help="vLLM: GPUs that one copy is spread over.")
@click.option("--lora", "adapters", multiple=True, help="vLLM: an adapter, as NAME=PATH; repeats.")
@json_option
@config_option
def command(path: Path | None, tier: str, as_json: bool, **unstated: Any) -> None:
    """Print the shell line that serves TIER; OTHERS are further options of vLLM's, after --.

    The line goes to standard output; what is still to be replaced in it, and what else to know, to
    standard error.
    """
    file = load(path)
    try:
        line = _line(file.config, tier, Unstated(**unstated))
    except ConfigError as error:
        raise file.explain(error) from None
    if as_json:
        report = {**asdict(line), "shell": line.shell()}
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
        return
    click.echo(line.shell())
    for word, what in line.placeholders.items():
        click.secho(f"replace {word}: {what}", err=True, fg="yellow")
    for note in line.notes:
        click.secho(f"note: {note}", err=True, fg="yellow")


def _line(config: Config, name: str, unstated: Unstated) -> Line:
    if name not in config.tiers:
        raise ConfigError(f"there is no tier {name!r}; there are: {', '.join(config.tiers)}")
    tier = config.tiers[name]
    if tier.launch is not None:
        return _launch_line(config, name)
    if tier.backend != LAUNCHABLE:
        raise ConfigError(
            f"{tier.backend} asks no server that could be started here; only tiers of backend "
            f"{LAUNCHABLE} have one",
            param=f"tiers.{name}.backend",
        )
    return serve_line(name, config.tiers, unstated)


def _launch_line(config: Config, name: str) -> Line:
    """What Cascade runs itself for a launched tier."""
    wanted = launches(config)
    [launch] = [each for each in wanted if each.tier == name]
    file = _weights(launch.model)
    threads = launch.threads or share_threads(wanted, usable_cores())
    [port] = [launch.port] if launch.port else free_ports(1)
    notes = [
        f"`cascade serve` runs this itself, with a key of its own in {KEY_VARIABLE}",
        "it ends when its standard input closes",
    ]
    if launch.port is None:
        notes.append(f"port {port} is free now; each start takes another one")
    if not file.is_file():
        notes.append(f"{file} is not there yet: cascade models pull {launch.model}")
    return Line(
        arguments=launch.command(file, port, threads),
        notes=notes,
    )


def _weights(model: str) -> Path:
    if model.endswith(".gguf"):
        return Path(model).expanduser().absolute()
    return models_folder(home()) / lookup(model).file


def _files(files: Sequence[FileStatus]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("model", "there", "of", "checked"):
        table.add_column(column)
    for file in files:
        table.add_row(
            file.model.key,
            f"{file.size_bytes / 1e6:,.0f} MB" if file.size_bytes else "no",
            f"{file.model.size_bytes / 1e6:,.0f} MB",
            "yes" if file.verified else "no",
        )
    return table


def _servers(servers: Sequence[ServerStatus]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("tier", "model", "state", "answers", "pid", "restarts"):
        table.add_column(column)
    for server in servers:
        state = server.state
        table.add_row(
            state.tier,
            state.model,
            state.state,
            "yes" if server.answers else "no",
            str(state.pid or ""),
            str(state.restarts),
        )
    return table
