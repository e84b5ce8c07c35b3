"""Asks tokenizers whether a prompt fits, and only those whose answer can matter."""

import asyncio
from collections.abc import Iterable

from cascade.tiers.requirements import at_most
from cascade.tiers.tier import ModelTier
from cascade.types import ChatRequest


async def too_long(tiers: Iterable[ModelTier], request: ChatRequest) -> dict[str, str]:
    """Why the prompt does not fit into a tier's window, by its name, where that is counted.

    A prompt that surely fits is not counted. All counts are made at the same time.
    """
    counting = [tier for tier in tiers if tier.tokenizer is not None]
    if not counting:
        return {}
    most = at_most(request)
    near = [tier for tier in counting if most >= (tier.context_tokens or most + 1)]
    if not near:
        return {}
    lacks = await asyncio.gather(*(tier.overlong(request) for tier in near))
    return {tier.name: lack for tier, lack in zip(near, lacks, strict=True) if lack is not None}
