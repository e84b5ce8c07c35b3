"""Brings what upstreams report as usage into disjoint, nullable buckets."""

from typing import Any

from cascade.types import Json, Usage

UNSTATED_TTL = "default"
"""Time to live of cache writes that an upstream reports without one."""


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
    read = _count(prompt_details, "cached_tokens")
    write = _count(prompt_details, "cache_write_tokens")
    reasoning = _count(output_details, "reasoning_tokens")
    return Usage(
        input=None if prompt is None else max(0, prompt - (read or 0) - (write or 0)),
        cache_read=read,
        cache_write=None if write is None else {UNSTATED_TTL: write},
        output=None if completion is None else max(0, completion - (reasoning or 0)),
        reasoning=reasoning,
    )


def _count(report: Json, name: str) -> int | None:
    value: Any = report.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
