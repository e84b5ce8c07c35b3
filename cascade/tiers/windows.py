"""Asks tokenizers whether a prompt fits, and only those whose answer can matter."""

import asyncio
from collections.abc import Iterable, Mapping

from cascade.tiers.requirements import at_most
from cascade.tiers.tier import ModelTier
from cascade.types import ChatRequest


async def too_long(
    tiers: Iterable[ModelTier], request: ChatRequest, counted: Mapping[str, int]
) -> dict[str, str]:
    """Why the prompt does not fit into a tier's window, by its name, where that is counted.

    A prompt that surely fits is not counted. All counts are made at the same time; `counted` has
    those that were made already, by tier.
    """
    tiers = list(tiers)
    known = {t.name: lack for t in tiers if (lack := t.too_short_for(counted.get(t.name, 0)))}
    counting = [t for t in tiers if t.tokenizer is not None and t.name not in counted]
    if not counting:
        return known
    most = at_most(request)
    near = [tier for tier in counting if most >= (tier.context_tokens or most + 1)]
    if not near:
        return known
    lacks = await asyncio.gather(*(tier.overlong(request) for tier in near))
    return known | {
        tier.name: lack for tier, lack in zip(near, lacks, strict=True) if lack is not None
    }
