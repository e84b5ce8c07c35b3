"""Brings what upstreams report as usage into disjoint, nullable buckets.

Two shapes exist. OpenAI's prompt_tokens include what a cache read or wrote, and completion_tokens
include the reasoning; litellm reports every provider in this shape, with the cache counts under
Anthropic's names as well. Anthropic's own input_tokens exclude both cache counts.
"""

from typing import Any

from cascade.types import Json, Usage

UNSTATED_TTL = "default"
"""Time to live of cache writes that an upstream reports without one."""

ANTHROPIC_TTL = "5m"
"""Time to live of Anthropic's cache writes where the report does not split them."""


def from_openai(reported: Json | None) -> Usage:
    """Usage of an OpenAI-style report, whose prompt_tokens include what a cache read or wrote.

    What is absent or null stays None; a reported zero stays zero. Reasoning tokens are part of
    completion_tokens and are taken out of them.
    """
    if not reported:
        return Usage()
    prompt, completion = _count(reported, "prompt_tokens"), _count(reported, "completion_tokens")
    prompt_details = reported.get("prompt_tokens_details") or {}
    output_details = reported.get("completion_tokens_details") or {}
    read = _first(
        _count(prompt_details, "cached_tokens"),
        _count(reported, "cache_read_input_tokens"),
        _count(reported, "prompt_cache_hit_tokens"),
    )
    write = _writes(
        _count(reported, "cache_creation_input_tokens"),
        prompt_details.get("cache_creation_token_details"),
        unsplit=_count(prompt_details, "cache_write_tokens"),
    )
    reasoning = _count(output_details, "reasoning_tokens")
    cached = (read or 0) + sum((write or {}).values())
    return Usage(
        input=None if prompt is None else max(0, prompt - cached),
        cache_read=read,
        cache_write=write,
        output=None if completion is None else max(0, completion - (reasoning or 0)),
        reasoning=reasoning,
    )


def from_anthropic(reported: Json | None) -> Usage:
    """Usage of an Anthropic report, whose input_tokens exclude what a cache read or wrote.

    Thinking is not reported apart: its tokens are in output_tokens.
    """
    if not reported:
        return Usage()
    return Usage(
        input=_count(reported, "input_tokens"),
        cache_read=_count(reported, "cache_read_input_tokens"),
        cache_write=_writes(
            _count(reported, "cache_creation_input_tokens"), reported.get("cache_creation")
        ),
        output=_count(reported, "output_tokens"),
    )


def _writes(
    anthropic: int | None, by_ttl: Json | None, *, unsplit: int | None = None
) -> dict[str, int] | None:
    """Cache writes by time to live.

    Args:
        anthropic: the total under Anthropic's name.
        by_ttl: Anthropic's split, e.g. {"ephemeral_1h_input_tokens": 10}.
        unsplit: the total under OpenAI's name, of an upstream that knows one time to live only.
    """
    split = {
        name.removeprefix("ephemeral_").removesuffix("_input_tokens"): count
        for name in by_ttl or {}
        if (count := _count(by_ttl or {}, name))
    }
    if anthropic is not None:
        rest = max(0, anthropic - sum(split.values()))
        if rest or not split:
            split[ANTHROPIC_TTL] = split.get(ANTHROPIC_TTL, 0) + rest
        return split
    return split or (None if unsplit is None else {UNSTATED_TTL: unsplit})


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def _count(report: Json, name: str) -> int | None:
    value: Any = report.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
