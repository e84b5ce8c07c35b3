"""cascade cache doctor."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from sqlalchemy import Engine

from cascade.errors import RequestError
from serving.commands.log import audit_database, since_option, usable_tiers
from serving.commands.options import config_option, json_option
from serving.doctor import present
from serving.doctor.calls import Prompt
from serving.doctor.difference import difference
from serving.doctor.doctor import diagnose
from serving.doctor.losses import TierFacts
from serving.store.cache_queries import calls, prompt_by_id

GC_THRESHOLD = (100_000, 20, 20)


@click.command()
@since_option
@click.option("--tenant", help="Only this tenant.")
@click.option("--session", help="Only this session.")
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="How many causes at most.",
)
@click.option(
    "--diff",
    nargs=2,
    metavar="A B",
    help="Hold the prompts of two requests against each other; beginnings of their ids are enough.",
)
@config_option
@json_option
def doctor(
    path: Path | None,
    diff: tuple[str, str] | None,
    top: int,
    as_json: bool,
    **only: Any,
) -> None:
    """Explain from the audit log why prompts were not read from a cache, and what that cost.

    Needs prompts' segments in the log, which hold hashes and no text.
    """
    with audit_database(path) as engine:
        if diff:
            (first, before), (second, after) = (_prompt(engine, each) for each in diff)
            found = difference(before, after)
            seen = present.difference_json(first, second, found) if as_json else None
            view = present.difference_view(first, second, found)
        else:
            with _seldom_collecting():
                told = diagnose(calls(engine, **only), _facts(path))
            seen = present.diagnosis_json(told, top) if as_json else None
            view = present.diagnosis_view(told, top)
    if seen is not None:
        click.echo(orjson.dumps(seen, option=orjson.OPT_INDENT_2).decode())
    else:
        Console().print(view)


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """To look for cycles among so many prompts takes a quarter of the time, and there are none."""
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _facts(path: Path | None) -> Mapping[str, TierFacts]:
    """Prices and caches of the configuration's tiers; none where it cannot work."""
    tiers = usable_tiers(path)
    return {name: TierFacts(cache=tier.cache, prices=tier.prices) for name, tier in tiers.items()}


def _prompt(engine: Engine, prefix: str) -> tuple[str, Prompt]:
    request_id, prompt = prompt_by_id(engine, prefix)
    if prompt is None:
        raise RequestError(
            f"request {request_id} has no segments in the log: it is older than they are, or was "
            "answered before any was taken",
            param="diff",
        )
    return request_id, prompt
