"""What each tier would read of a request: its prompt as tokens, and as a chain of cache blocks.

Where a tier's own tokenizer can be asked, the chain is of the model's token ids and exact.
Elsewhere it is of a canonical rendering, whose tokens are estimated by what the tier's usage has
reported.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from cascade.prefix import (
    Chain,
    Chained,
    Fingerprint,
    Fingerprints,
    TokenRatio,
    answer_rendering,
    rendering,
)
from cascade.tiers import ModelTier
from cascade.tiers.bound import stripped
from cascade.types import ChatRequest, Completion, Usage

STABLE = frozenset({"tools", "system", "pack"})
"""Segments that come before the conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one tier would read.

    Attributes:
        chained: its blocks, behind which those of an answer can be put.
        stable_tokens: the first of them, which other conversations may share.
        rendered_bytes: how long its canonical rendering is.
    """

    tier: str
    chained: Chained
    stable_tokens: int
    rendered_bytes: int

    @property
    def chain(self) -> Chain:
        """Its blocks."""
        return self.chained.chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is read of one request: by tier, and in segments for the audit log.

    Attributes:
        stable: stands for the part of it that other conversations may share.
    """

    prompts: Mapping[str, Prompt]
    fingerprint: Fingerprint
    stable: str

    @property
    def counted(self) -> dict[str, int]:
        """Tokens of the prompt, by the tiers whose own tokenizer told them."""
        return {n: p.chain.tokens for n, p in self.prompts.items() if p.chain.exact}


class Reader:
    """Reads requests as tiers do.

    Args:
        key: a secret that goes into the segments' hashes.
    """

    def __init__(self, *, key: bytes = b"") -> None:
        self._ratio = TokenRatio()
        self._fingerprints = Fingerprints(key=key)

    async def read(
        self, request: ChatRequest, tiers: Iterable[ModelTier], *, counted: Collection[str]
    ) -> Reading:
        """What tiers would read of a request.

        Args:
            request: as the client sent it.
            tiers: those that may be asked.
            counted: names of those whose own tokenizer is asked, all at the same time.
        """
        tiers, text = list(tiers), rendering(request)
        ids = await asyncio.gather(
            *(_ids(request, tier) if tier.name in counted else _nothing() for tier in tiers)
        )
        sizes = self._fingerprints.of(request, tokens_per_byte=1.0)
        stable_share = min(1.0, sizes.stable_tokens / max(1, len(text)))
        prompts = {}
        for tier, known in zip(tiers, ids, strict=True):
            chained = known or self._of_text(text, tier, request)
            prompts[tier.name] = Prompt(
                tier=tier.name,
                chained=chained,
                stable_tokens=int(stable_share * chained.chain.tokens),
                rendered_bytes=len(text),
            )
        # The log's tokens are those of the tier that is named first: the policy's smallest.
        per_byte = self._ratio.of(tiers[0].name) if tiers else 0.25
        segments = [replace(s, tokens=round(s.tokens * per_byte)) for s in sizes.segments]
        return Reading(
            prompts=prompts,
            fingerprint=Fingerprint(segments=segments),
            stable="".join(s.raw for s in segments if s.name in STABLE),
        )

    def learn(self, prompt: Prompt, usage: Usage) -> None:
        """How many tokens a tier says a prompt had."""
        self._ratio.observe(prompt.tier, rendered_bytes=prompt.rendered_bytes, tokens=usage.prompt)

    def _of_text(self, text: bytes, tier: ModelTier, request: ChatRequest) -> Chained:
        per_byte = self._ratio.of(tier.name)
        return Chained.of_text(text, tokens_per_byte=per_byte, salt=_salt(tier, request))


async def answered(prompt: Prompt, tier: ModelTier, completion: Completion) -> Chain | None:
    """The chain of a prompt and its answer, as the next turn's prompt will have it.

    None where the answer's tokens cannot be told: those of tool calls are written by the template.
    """
    if not prompt.chain.exact:
        return prompt.chained.with_text(answer_rendering(completion)).chain
    if tier.tokenizer is None or completion.tool_calls or not completion.text:
        return None
    ids = await tier.tokenizer.text_ids(completion.text)
    return None if ids is None else prompt.chained.with_ids(ids).chain


async def _ids(request: ChatRequest, tier: ModelTier) -> Chained | None:
    """The chain of the model's own tokens; None where they cannot be told."""
    if tier.tokenizer is None:
        return None
    ids = await tier.tokenizer.ids(stripped(request, tier.accepts))
    if ids is None:
        return None
    block = tier.cache.block if tier.cache else 1
    return Chained.of_ids(ids, block=block, salt=_salt(tier, request))


async def _nothing() -> None:
    return None


def _salt(tier: ModelTier, request: ChatRequest) -> str:
    """Whose cache it is: the tenant's own where the tier keeps tenants apart, else everybody's."""
    return request.tenant if tier.salted else ""
