"""cascade cache offload: when bringing a cached prefix back is faster than computing it again."""

from dataclasses import replace
from typing import Any

import click
import orjson

from cascade.cache_economics import (
    Link,
    Machine,
    ModelShape,
    prefill_flops,
    prefill_seconds,
    requests_that_fit,
    shortest_offload,
    transfer_seconds,
)
from serving.commands.options import json_option
from serving.commands.units import SECONDS, SIZE, SPEED, seconds, size
from serving.models.shapes import SHAPES

DIMENSIONS = ("params", "layers", "kv_heads", "head_dim")


@click.command()
@click.option("--model", type=click.Choice(list(SHAPES)), help="A public model's dimensions.")
@click.option("--params", type=click.FloatRange(0, min_open=True), help="Parameters, e.g. 70e9.")
@click.option("--layers", type=click.IntRange(1))
@click.option("--kv-heads", type=click.IntRange(1))
@click.option("--head-dim", type=click.IntRange(1))
@click.option("--heads", type=click.IntRange(1), help="Query heads; without, no attention work.")
@click.option(
    "--bytes", "value_bytes", type=click.FloatRange(0, min_open=True), help="Of a number; 2."
)
@click.option("--tflops", type=click.FloatRange(0, min_open=True), default=989, show_default=True)
@click.option(
    "--efficiency", type=click.FloatRange(0, 1, min_open=True), default=0.5, show_default=True
)
@click.option("--bandwidth", type=SPEED, default="25GB/s", show_default=True)
@click.option("--latency", type=SECONDS, default="1ms", show_default=True)
@click.option("--tokens", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--memory", type=SIZE, help="Also say how many such prefixes fit, e.g. 60GiB.")
@json_option
def offload(as_json: bool, model: str | None, **asked: Any) -> None:
    """Say whether a prefix is brought back faster than it is computed, and from which length on.

    The model is one of those known by name, or given by its dimensions, which also replace single
    ones of a named model. GB are 10^9 bytes, GiB 2^30; both can be typed.
    """
    shape = _shape(model, asked)
    machine = Machine(flops_per_second=asked["tflops"] * 1e12, efficiency=asked["efficiency"])
    link = Link(bytes_per_second=asked["bandwidth"], latency_seconds=asked["latency"])
    if link.bytes_per_second <= 0:
        raise click.BadParameter("it must be above 0", param_hint="--bandwidth")
    tokens, memory = asked["tokens"], asked["memory"]
    if as_json:
        report = _report(shape, machine, link, tokens=tokens, memory=memory)
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
        return
    for name, text in _told(shape, machine, link, tokens=tokens, memory=memory):
        click.echo(f"{name:<17} {text}")


def _shape(model: str | None, asked: dict[str, Any]) -> ModelShape:
    known = (*DIMENSIONS, "heads", "value_bytes")
    given = {name: asked[name] for name in known if asked[name] is not None}
    if model is not None:
        return replace(SHAPES[model], **given)
    missing = [f"--{name.replace('_', '-')}" for name in DIMENSIONS if name not in given]
    if missing:
        raise click.UsageError(f"give --model, or its dimensions: {', '.join(missing)} missing")
    return ModelShape(**given)


def _told(
    shape: ModelShape, machine: Machine, link: Link, *, tokens: int, memory: float | None
) -> list[tuple[str, str]]:
    """What is reckoned, and its formula with the numbers put in."""
    each, held = shape.kv_bytes_per_token, tokens * shape.kv_bytes_per_token
    back = transfer_seconds(shape, link, tokens=tokens)
    computed = prefill_seconds(shape, machine, tokens=tokens)
    token = (
        f"2 * {shape.layers} layers * {shape.kv_heads} KV heads * {shape.head_dim} numbers * "
        f"{shape.value_bytes:g} bytes"
    )
    speed, latency = link.bytes_per_second / 1e9, seconds(link.latency_seconds)
    lines = [
        ("a cached token", f"{token} = {each:,.0f} bytes"),
        ("the prefix", f"{tokens:,} tokens * {each:,.0f} bytes = {size(held)}"),
        (
            "bringing it back",
            f"{held / 1e9:.4g} GB / {speed:.4g} GB/s + {latency} = {seconds(back)}",
        ),
        ("computing it", f"{_work(shape, machine, tokens)} = {seconds(computed)}"),
        ("bringing back", _verdict(back, computed)),
        ("shortest prefix", _shortest(shortest_offload(shape, machine, link))),
    ]
    if memory is not None:
        fit = requests_that_fit(shape, memory_bytes=memory, tokens=tokens)
        lines.append(("fit into memory", f"{fit} such prefixes, of {size(memory)}"))
    return lines


def _work(shape: ModelShape, machine: Machine, tokens: int) -> str:
    peak = f"({machine.flops_per_second / 1e12:g} TFLOP/s * {machine.efficiency:g})"
    matrices = f"2 * {shape.params:.4g} * {tokens:,}"
    if not shape.attention_width:
        return f"{matrices} / {peak}, attention left out,"
    attention = f"4 * {shape.layers} * {shape.attention_width:,} * {tokens * (tokens + 1) // 2:,}"
    return f"({matrices} + {attention}) / {peak}"


def _verdict(back: float, computed: float) -> str:
    if back < computed:
        return f"pays: {seconds(back)} < {seconds(computed)}, {computed / back:.3g} times as fast"
    return f"does not pay: {seconds(back)} is no less than {seconds(computed)}"


def _shortest(tokens: int | None) -> str:
    if tokens is None:
        return "none: a token is computed faster than it is brought back"
    if tokens == 1:
        return "1 token: none is too short"
    return f"{tokens:,} tokens: below, computing is faster"


def _report(
    shape: ModelShape, machine: Machine, link: Link, *, tokens: int, memory: float | None
) -> dict[str, Any]:
    """The same for machines, in bytes, seconds and tokens."""
    back = transfer_seconds(shape, link, tokens=tokens)
    computed = prefill_seconds(shape, machine, tokens=tokens)
    return {
        "kv_bytes_per_token": shape.kv_bytes_per_token,
        "prefix_bytes": tokens * shape.kv_bytes_per_token,
        "transfer_seconds": back,
        "prefill_flops": prefill_flops(shape, tokens=tokens),
        "prefill_seconds": computed,
        "pays": back < computed,
        "shortest_tokens": shortest_offload(shape, machine, link),
        "requests_that_fit": None
        if memory is None
        else requests_that_fit(shape, memory_bytes=memory, tokens=tokens),
    }
