"""cascade cache prewarm: one request ahead of many, and whether that pays."""

import asyncio
from pathlib import Path
from typing import Any

import click
import orjson

from cascade.errors import CascadeError, ConfigError, RequestError
from cascade.types import ChatRequest
from serving.audit_wiring import audit_parts
from serving.commands.options import config_option, json_option, load, wire
from serving.config import ConfigFile
from serving.control import PREFIX
from serving.prewarm.paying import Economics, advice, economics, thinking
from serving.prewarm.sending import Sent, directly, prewarming, through
from serving.schemas import new_id, parse, read
from serving.store.formats import dollars


@click.command()
@click.argument("tier")
@click.option(
    "--request",
    "file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A real request, as a body of /v1/chat/completions: tools, thinking and effort included.",
)
@click.option("--tenant", default="default", show_default=True, help="Whose cache to fill.")
@click.option(
    "--uses",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="How many requests will read it before it is gone.",
)
@click.option("--max-tokens", type=click.IntRange(1), help="If the API takes no answer of one.")
@click.option(
    "--through",
    help="Address of a running Cascade to send it through, e.g. http://127.0.0.1:8080.",
)
@json_option
@config_option
def prewarm(path: Path | None, tier: str, file: Path, as_json: bool, **asked: Any) -> None:
    """Fill TIER's cache with a request's prompt; say what was kept, its cost and whether it pays.

    The request is sent as it is, with an answer of one token. It gets a row in the audit log. The
    log has no prompts, so a request cannot be taken from there.
    """
    config = load(path)
    request = prewarming(_request(file, tier, asked["tenant"]), asked["max_tokens"])
    snapshot = wire(config)
    if tier not in snapshot.tiers:
        raise ConfigError(f"there is no tier {tier!r}; there are: {', '.join(snapshot.tiers)}")
    ahead = thinking(request, snapshot.tiers[tier].prices)
    for line in ahead:
        click.secho(f"note: {line}", fg="yellow", err=True)
    if asked["through"]:
        sent = through(asked["through"], tier, request)
    else:
        _refuse_what_only_the_service_knows(config, tier)
        prompts = audit_parts(config).prompts
        sent = asyncio.run(directly(config.audit_url, snapshot, tier, request, prompts=prompts))
    found = economics(sent, snapshot.tiers[tier].prices, asked["uses"])
    said = [*advice(sent, snapshot.tiers[tier], found), *_elsewhere(config, tier)]
    if as_json:
        report = _report(tier, sent, found, [*ahead, *said])
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
        return
    click.echo("\n".join(told(tier, sent, found)))
    for line in said:
        click.secho(f"note: {line}", fg="yellow")


def _request(file: Path, tier: str, tenant: str) -> ChatRequest:
    try:
        body = {"model": tier, **read(file.read_bytes())}
        return parse(orjson.dumps(body), {f"{PREFIX}tenant": tenant}, new_id()).request
    except (RequestError, OSError) as error:
        raise CascadeError(f"{file}: {error}") from None


def _refuse_what_only_the_service_knows(file: ConfigFile, name: str) -> None:
    """Refuse where what this process sends would not be what the service's requests find."""
    entry, why = file.config.tiers[name], ""
    if entry.launch is not None:
        why = "`cascade serve` launches its server, with a key that only that process has"
    elif entry.salt_tenants and entry.salt_key_env is None:
        why = "without salt_key_env each process salts its tenants' caches differently"
    if why:
        server = file.config.server
        raise ConfigError(
            f"{name}: {why}; send it through the running service: --through "
            f"http://{server.host}:{server.port}"
        )


def _elsewhere(file: ConfigFile, name: str) -> list[str]:
    """Where the prompt is not warm although it was sent."""
    entry = file.config.tiers[name]
    if entry.cache_key is None and not entry.replicas:
        return []
    return ["one machine was reached of those that the tier's requests are spread over"]


def told(tier: str, sent: Sent, found: Economics | None) -> list[str]:
    """What came of it, in lines for a person."""
    usage = sent.usage
    written = [f"{n:,} written for {ttl}" for ttl, n in (usage.cache_write or {}).items() if n]
    parts = [
        f"{_count(usage.prompt)} prompt tokens: {_count(usage.cache_read)} read",
        *written,
        f"{_count(usage.input)} computed",
    ]
    lines = [
        f"{tier} ({sent.model}) in {sent.seconds:.2f} s: {', '.join(parts)}",
        f"cost {dollars(sent.cost)}; cascade audit show {sent.request_id}",
    ]
    if found is None:
        return lines
    above = "reading is no cheaper than computing: a write never pays"
    if found.above is not None:
        w, r = f"{float(found.write):.4g}", f"{float(found.read):.4g}"
        above = (
            f"a write pays where N > (w - r) / (1 - r) = ({w} - {r}) / (1 - {r}) = "
            f"{found.above:.3f}: from {found.pays_from} requests on, the one that writes included"
        )
    lines += [above, f"{found.uses} uses of {found.tokens:,} tokens:"]
    lines += [f"  {way:<12} {dollars(cost)}" for way, cost in found.dollars.items()]
    return lines


def _count(tokens: int | None) -> str:
    return "an unknown number of" if tokens is None else f"{tokens:,}"


def _report(tier: str, sent: Sent, found: Economics | None, said: list[str]) -> dict[str, Any]:
    usage = sent.usage
    report: dict[str, Any] = {
        "tier": tier,
        "model": sent.model,
        "request_id": sent.request_id,
        "seconds": sent.seconds,
        "usage": {
            "input": usage.input,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "output": usage.output,
        },
        "cost_usd": None if sent.cost is None else f"{sent.cost:f}",
        "economics": None,
        "notes": said,
    }
    if found is not None:
        report["economics"] = {
            "tokens": found.tokens,
            "uses": found.uses,
            "write": float(found.write),
            "read": float(found.read),
            "above": None if found.above is None else float(found.above),
            "pays_from": found.pays_from,
            "pays": found.pays,
            "dollars": {way: f"{cost:f}" for way, cost in found.dollars.items()},
        }
    return report
