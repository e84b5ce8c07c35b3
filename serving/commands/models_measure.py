"""cascade models measure: how fast a tier's server is, as a price card to paste."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from cascade.errors import BackendConnectionError, CascadeError, ConfigError
from cascade.pricing import PriceCard
from serving.commands.options import config_option, json_option, load
from serving.commands.progress import downloading, stepping
from serving.config import Config
from serving.models.fleet import Fleet, prepare
from serving.models.home import home
from serving.models.launch import Launch, share_threads, usable_cores
from serving.models.measure import Speed, Speeds, Trials
from serving.models.measure import measure as speeds_of
from serving.models.status import server_statuses
from serving.tier_config import GpuPrice, Tier
from serving.tier_wiring import LAUNCHABLE, build_tier, launches

QUARTERS = 4
WORDS_A_TOKEN = 0.75
"""At most so much of a window is filled with words, since some of them are two tokens."""
PLACEHOLDER = "GPU_USD_PER_HOUR"
_GUARDS = ("retry", "cooldown", "limits", "fan_out")


@click.command()
@click.argument("tier")
@click.option(
    "--gpu-usd-per-hour",
    "dollars",
    type=click.FloatRange(0, min_open=True),
    help="What the machine costs; else as the configuration says.",
)
@click.option(
    "--longest", type=click.IntRange(40), default=2000, show_default=True, help="Prompt, in tokens."
)
@click.option("--answer", type=click.IntRange(16), default=128, show_default=True, help="Longest.")
@click.option("--repeats", type=click.IntRange(2), default=3, show_default=True)
@click.option(
    "--concurrent",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Answers written at the same time: as many as the server has under your load.",
)
@json_option
@config_option
def measure(path: Path | None, tier: str, as_json: bool, **asked: Any) -> None:
    """Measure how fast TIER's server is, and print its price card to paste.

    Prompts that no cache can know, the same again, and answers, each of several lengths. The server
    must run and have nothing else to do; that of a launched tier is started for it, as `cascade
    serve` would start it, and stopped again.
    """
    file = load(path)
    console = Console(stderr=True)
    try:
        entry = _measurable(file.config, tier)
        trials = trials_of(entry, asked)
        fleet = _fleet(file.config, tier, console)
        with stepping(console, tier, trials.steps) as step:
            found = asyncio.run(_measured(tier, entry, fleet, trials, step))
    except ConfigError as error:
        raise file.explain(error) from None
    price = entry.price if isinstance(entry.price, GpuPrice) else None
    dollars = asked["dollars"] or (price.gpu_usd_per_hour if price else None)
    card = card_of(found, None if dollars is None else float(dollars))
    if as_json:
        report = {"tier": tier, "price": card, "measured": asdict(found), "trials": asdict(trials)}
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
        return
    click.echo(to_paste(card, found))
    if dollars is None:
        note = f"replace {PLACEHOLDER}: what the machine costs an hour"
        click.secho(note, err=True, fg="yellow")


def _measurable(config: Config, name: str) -> Tier:
    if name not in config.tiers:
        raise ConfigError(f"there is no tier {name!r}; there are: {', '.join(config.tiers)}")
    tier = config.tiers[name]
    if tier.backend != LAUNCHABLE:
        raise ConfigError(
            f"{tier.backend} asks no server of yours: its price is what its provider takes; only "
            f"tiers of backend {LAUNCHABLE} can be measured",
            param=f"tiers.{name}.backend",
        )
    return tier


def trials_of(entry: Tier, asked: Mapping[str, Any]) -> Trials:
    """Four lengths of prompts up to the longest, or to what the window surely holds."""
    longest = asked["longest"]
    if entry.window is not None:
        longest = min(longest, int(WORDS_A_TOKEN * entry.window) - asked["answer"])
    if longest < QUARTERS:
        raise ConfigError(f"the window of {entry.window} tokens leaves no room: a shorter --answer")
    answer = asked["answer"]
    return Trials(
        prompts=_quarters(longest),
        answers=_quarters(answer),
        repeats=asked["repeats"],
        concurrent=asked["concurrent"],
    )


def _quarters(longest: int) -> list[int]:
    return [longest * part // QUARTERS for part in range(1, QUARTERS + 1)]


def _fleet(config: Config, name: str, console: Console) -> Fleet:
    """The server of a launched tier, its model fetched, not yet started; none for any other."""
    if config.tiers[name].launch is None:
        return Fleet([], home())
    for other in server_statuses(home()):
        if other.answers:
            console.print(
                f"[yellow]warning:[/] {other.state.tier}'s server runs at {other.state.url}; "
                "what it does meanwhile slows this one down",
                highlight=False,
            )
    with downloading(console) as progress:
        return prepare([_launch(config, name)], home(), progress=progress)


async def _measured(
    name: str, entry: Tier, fleet: Fleet, trials: Trials, step: Callable[[], None]
) -> Speeds:
    # Nothing is tried again, waits or cools down: each would be measured with the server.
    bare = entry.model_copy(update=dict.fromkeys(_GUARDS))
    launched = {n: {"url": f"{s.url}/v1", "api_key": s.api_key} for n, s in fleet.servers.items()}
    await fleet.start()
    backend = build_tier(name, bare, launched.get(name)).backend
    try:
        return await speeds_of(backend, trials, step=step)
    except BackendConnectionError as error:
        raise CascadeError(
            f"{error.message}. Is the server of {name} running? `cascade models command {name}` "
            "prints the line that starts it"
        ) from None
    finally:
        await backend.aclose()
        await fleet.stop()


def _launch(config: Config, name: str) -> Launch:
    """What `cascade serve` would start, with as many threads as it would have there."""
    wanted = launches(config)
    [launch] = [each for each in wanted if each.tier == name]
    return replace(launch, threads=launch.threads or share_threads(wanted, usable_cores()))


def card_of(found: Speeds, dollars: float | None) -> dict[str, Any]:
    """The keys of a price by GPU hour, the speeds with three digits; dollars where known."""
    cached = found.cached or found.prefill
    speeds = {"prefill": found.prefill, "cached": cached, "decode": found.decode}
    rounded = {
        f"{name}_tokens_per_second": float(f"{speed.tokens_per_second:.3g}")
        for name, speed in speeds.items()
    }
    return {"gpu_usd_per_hour": dollars, **rounded}


def to_paste(card: Mapping[str, Any], found: Speeds) -> str:
    """The card as lines of cascade.yaml, with how well each number is known behind it."""
    dollars = card["gpu_usd_per_hour"]
    lines = ["price:", f"  gpu_usd_per_hour: {PLACEHOLDER if dollars is None else f'{dollars:g}'}"]
    speeds = {"prefill": found.prefill, "cached": found.cached, "decode": found.decode}
    for name, speed in speeds.items():
        key = f"{name}_tokens_per_second"
        lines.append(f"  {key}: {card[key]:.12g}  # {_said(speed)}")
    if dollars is not None:
        lines.append(f"# in dollars per million tokens: {_rates(card)}")
    return "\n".join(lines)


def _said(speed: Speed | None) -> str:
    if speed is None:
        return "nothing was read from a cache, so as fast as computing"
    fixed = f"{1000 * speed.fixed_seconds:.0f} ms a request besides"
    if speed.at_least:
        return f"or more: too fast to be measured; {fixed}"
    return (
        f"give or take {100 * speed.relative_error:.1f} % (standard error); repeats within "
        f"{100 * speed.repeat_spread:.0f} %; {fixed}"
    )


def _rates(card: Mapping[str, Any]) -> str:
    given = {name.removeprefix("gpu_"): Decimal(str(value)) for name, value in card.items()}
    rates = PriceCard.from_gpu(**given).rates
    return f"input {rates.input:.3g}, cache_read {rates.cache_read:.3g}, output {rates.output:.3g}"
