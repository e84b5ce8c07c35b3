"""cascade cache: what prompt caches save, and when they pay; a module for each sub-command."""

from typing import Final

import click

from serving.commands.lazy import LazyGroup

COMMANDS: Final = {
    "doctor": ("serving.commands.cache_doctor:doctor", "Why prompts were not warm."),
    "ttl": ("serving.commands.cache_ttl:ttl", "How long prompts are worth keeping warm."),
    "breakeven": ("serving.commands.cache_breakeven:breakeven", "When a cache write pays."),
    "prewarm": ("serving.commands.cache_prewarm:prewarm", "One request ahead of many."),
    "offload": ("serving.commands.cache_offload:offload", "When moving a prefix beats computing."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def cache() -> None:
    """What prompt caches save, and when they pay."""
