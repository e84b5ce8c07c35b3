"""What each tier would read of a request: its prompt as tokens, and as a chain of cache blocks.

Where a tier's own tokenizer can be asked, the chain is of the model's token ids and exact.
Elsewhere it is of a canonical rendering, whose tokens are estimated by what the tier's usage has
reported.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from cascade.changing import changed
from cascade.prefix import (
    Chain,
    Chained,
    Fingerprint,
    Fingerprints,
    Rendered,
    TokenRatio,
    answer_rendering,
    has_media,
)
from cascade.prefix.ratio import START
from cascade.tiers import ModelTier
from cascade.tiers.bound import stripped
from cascade.tiers.breakpoints import up_to_last_mark
from cascade.types import ChatRequest, Completion, Usage

STABLE: Final = frozenset({"tools", "system"})
"""Segments that conversations share; documents that were retrieved for one are that one's own."""

CUT_OFF = "length"
"""Why an answer ended that would have gone on."""

AT_ONCE_BYTES: Final = 32_000
"""Of a rendering that is worked on at once; longer ones take milliseconds, and so a thread.

So do media, whose bytes are hashed, however short what stands for them is.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one tier would read.

    Attributes:
        chained: its blocks, behind which those of an answer can be put.
        stable_tokens: the first of them, which other conversations may share.
        rendered_bytes: how long its canonical rendering is; 0 with media in it, whose tokens do not
            depend on their bytes.
        marked_tokens: the first of them, behind which the cache keeps nothing, as nothing is
            marked; None where it keeps all.
    """

    tier: str
    chained: Chained
    stable_tokens: int
    rendered_bytes: int
    marked_tokens: int | None = None

    @property
    def chain(self) -> Chain:
        """Its blocks."""
        return self.chained.chain

    @property
    def kept(self) -> Chain | None:
        """Those of its blocks that the cache may keep; None where it keeps nothing of it."""
        if self.marked_tokens is None:
            return self.chain
        return self.chain.first(self.marked_tokens) if self.marked_tokens else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is read of one request: by tier, and in segments for the audit log.

    Attributes:
        text: its canonical rendering in blocks, of the tenant's own.
        stable: stands for the part of it that other conversations may share.
    """

    prompts: Mapping[str, Prompt]
    text: Chained
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
        tiers, media = list(tiers), has_media(request)
        render = partial(Rendered.of, request)
        rendered = await asyncio.to_thread(render) if media else render()
        asked = [t for t in tiers if t.name in counted and t.tokenizer is not None]
        told = await asyncio.gather(*(_ids(request, tier) for tier in asked)) if asked else ()
        ids = dict(zip((tier.name for tier in asked), told, strict=True))
        known = [(tier, ids.get(tier.name), self._ratio.of(tier.name)) for tier in tiers]
        read = partial(self._read, request, rendered, known, media=media)
        at_once = len(rendered.text) <= AT_ONCE_BYTES and not media
        return read() if at_once else await asyncio.to_thread(read)

    def _read(
        self,
        request: ChatRequest,
        rendered: Rendered,
        known: "Sequence[_Known]",
        *,
        media: bool,
    ) -> Reading:
        """What is read, given each tier's ids, or else its tokens per byte."""
        text = rendered.text
        sizes = self._fingerprints.of(request, tokens_per_byte=1.0, rendered=rendered)
        stable = sum(s.tokens for s in sizes.segments if s.name in STABLE)
        stable_share = min(1.0, stable / max(1, len(text)))
        rendered_bytes = 0 if media else len(text)
        texts = {request.tenant: Chained.of_text(text, tokens_per_byte=1.0, salt=request.tenant)}
        prompts = {
            tier.name: Prompt(
                tier=tier.name,
                chained=chained,
                stable_tokens=int(stable_share * chained.chain.tokens),
                rendered_bytes=rendered_bytes,
                marked_tokens=_marked(tier, request, text, chained.chain.tokens),
            )
            for tier, chained in _chains(request, text, known, texts)
        }
        # The log's tokens are those of the tier that is named first: the policy's smallest.
        first = known[0][2] if known else START
        segments = [changed(s, tokens=round(s.tokens * first)) for s in sizes.segments]
        return Reading(
            prompts=prompts,
            text=texts[request.tenant],
            fingerprint=Fingerprint(segments=segments),
            stable="".join(s.raw for s in segments if s.name in STABLE),
        )

    def learn(self, prompt: Prompt, usage: Usage) -> None:
        """How many tokens a tier says a prompt had."""
        self._ratio.observe(prompt.tier, rendered_bytes=prompt.rendered_bytes, tokens=usage.prompt)


_Known = tuple[ModelTier, Sequence[int] | None, float]
"""A tier, the ids that its tokenizer told, and how many tokens it makes of a byte."""


def _chains(
    request: ChatRequest, text: bytes, known: Iterable[_Known], texts: dict[str, Chained]
) -> Iterator[tuple[ModelTier, Chained]]:
    """Each tier's chain; those of text, by salt, differ only in what their blocks count for."""
    for tier, ids, per_byte in known:
        salt = _salt(tier, request)
        if ids is not None:
            block = tier.cache.block if tier.cache else 1
            yield tier, Chained.of_ids(ids, block=block, salt=salt)
            continue
        if salt not in texts:
            texts[salt] = Chained.of_text(text, tokens_per_byte=per_byte, salt=salt)
        yield tier, texts[salt].at(per_byte)


def answered_as_text(prompt: Prompt, completion: Completion) -> Chain:
    """The chain of a prompt whose tokens are not known, and its answer."""
    return prompt.chained.with_text(answer_rendering(completion)).chain


def _marked(tier: ModelTier, request: ChatRequest, text: bytes, tokens: int) -> int | None:
    """Tokens before the client's last mark; None where the tier's cache needs none."""
    if tier.cache is None or not tier.cache.marked:
        return None
    before = up_to_last_mark(request)
    return 0 if before is None else len(Rendered.of(before).text) * tokens // max(1, len(text))


async def answered(prompt: Prompt, tier: ModelTier, completion: Completion) -> Chain | None:
    """The chain of a prompt and its answer, as far as the model has read it.

    A model reads each token that it wrote when it writes the next one, so never the last of an
    answer that was cut off; one that ended by itself was read whole, as its end mark came after it.

    None where the answer's tokens cannot be told: those of tool calls are written by the template.
    """
    if not prompt.chain.exact:
        return answered_as_text(prompt, completion)
    if tier.tokenizer is None or completion.tool_calls or not completion.text:
        return None
    if completion.usage.reasoning or "reasoning_content" in completion.choices[0].extra:
        return None  # what it thought stands before the answer, and does not come back
    ids = _written(completion) or await tier.tokenizer.text_ids(completion.text)
    if ids is None:
        return None
    read = ids[:-1] if completion.finish_reason == CUT_OFF else ids
    return prompt.chained.with_ids(read).chain


def _written(completion: Completion) -> Sequence[int] | None:
    """The tokens as the model wrote them, where its log probabilities tell their ids (llama.cpp).

    Drawn tokens need not be those that the text is cut into. What the entries say must be the whole
    text: a stream may leave tokens out, and an end mark says nothing.
    """
    entries = [e for e in completion.logprobs or () if e.get("bytes")]
    ids = [e["id"] for e in entries if type(e.get("id")) is int]
    if len(ids) < len(entries) or not all(isinstance(e["bytes"], list) for e in entries):
        return None
    spelled = [byte for e in entries for byte in e["bytes"]]
    return ids if spelled == list(completion.text.encode(errors="surrogatepass")) else None


async def _ids(request: ChatRequest, tier: ModelTier) -> Sequence[int] | None:
    """The model's own tokens; None where they cannot be told."""
    if tier.tokenizer is None:
        return None
    return await tier.tokenizer.ids(stripped(request, tier.accepts))


def _salt(tier: ModelTier, request: ChatRequest) -> str:
    """Whose cache it is: the tenant's own where the tier keeps tenants apart, else everybody's."""
    return request.tenant if tier.salted else ""
