"""What the dearest tier would have cost, had it served every turn: what savings are measured by.

A conversation that stays with one model finds its prefix warm there, so a baseline that pays the
full price for every prompt would make any router look good. Here the dearest tier has a cache of
its own that it would have kept warm: the strongest rival that is honest.

The cache is remembered as chained hashes, one for each prefix of a conversation that ends with a
message, and forgotten like a provider's own: after a time without use.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cascade.pricing import PriceCard
from cascade.quote import Quote
from cascade.types import ChatRequest, Completion, Cost, Json, Usage

TTL_SECONDS = 300.0
MAX_PREFIXES = 100_000
_OTHER_PART_CHARACTERS = 4000  # an image is about a thousand tokens, however long its encoding is


class Baseline:
    """What each tier would have in its cache if it had served every request.

    Args:
        ttl_seconds: how long a prefix stays warm after its last use.
        max_prefixes: how many are remembered, the latest used.
        clock: seconds that only go up.
    """

    def __init__(
        self,
        *,
        ttl_seconds: float = TTL_SECONDS,
        max_prefixes: int = MAX_PREFIXES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl_seconds = ttl_seconds
        self._max_prefixes = max_prefixes
        self._clock = clock
        self._used: OrderedDict[bytes, float] = OrderedDict()

    def cost(
        self, quote: Quote, card: PriceCard, request: ChatRequest, answer: Completion
    ) -> Cost | None:
        """What a tier would have cost for a request that was answered; it is warm from then on.

        Args:
            quote: of the dearest tier.
            card: its prices.
            request: as the client sent it.
            answer: what the client got. Its tokens are taken for what the tier would have used, the
                quote's where it did not report them.

        Returns:
            None when the card does not say.
        """
        now = self._clock()
        self._forget(now)
        prefix = _Prefix(f"{quote.tier}\x1f{request.tenant}", request.tools)
        for message in request.messages:
            prefix.grow(message)
        share = self._warm_share(prefix)
        prefix.grow(
            {"role": "assistant", "content": answer.text, "tool_calls": list(answer.tool_calls)}
        )
        for digest in prefix.digests:
            self._used[digest] = now
            self._used.move_to_end(digest)
        # Where that tier answered, it said what was warm: what its chat template adds, for one.
        told = answer.usage.cache_read if answer.tier == quote.tier else None
        return card.price(_usage(quote, card, answer.usage, share, told or 0))

    def _forget(self, now: float) -> None:
        used = self._used
        while used:
            oldest = next(iter(used.values()))
            if len(used) <= self._max_prefixes and now - oldest < self._ttl_seconds:
                return
            used.popitem(last=False)

    def _warm_share(self, prefix: "_Prefix") -> float:
        """The share of the prompt's characters that the longest known prefix has."""
        known = zip(reversed(prefix.digests), reversed(prefix.lengths), strict=True)
        longest = next((length for digest, length in known if digest in self._used), 0)
        return longest / (prefix.lengths[-1] or 1)


def _usage(
    quote: Quote, card: PriceCard, reported: Usage, warm_share: float, least_warm: int
) -> Usage:
    """The answer's tokens, with the share of the prompt that would have been warm, or more."""
    prompt, output = reported.prompt, reported.output
    if prompt is None:
        prompt = quote.cold_tokens + quote.warm_tokens
    if output is None:
        output = quote.expected_output_tokens
    warm = min(prompt, max(int(prompt * warm_share), least_warm))
    writes = card.rates.cache_write
    if not writes:
        return Usage(
            input=prompt - warm, cache_read=warm, output=output, reasoning=reported.reasoning
        )
    # Only what is written is warm the next time; the cheapest way is the strongest rival.
    ttl = min(writes, key=lambda each: writes[each])
    return Usage(
        input=0,
        cache_read=warm,
        cache_write={ttl: prompt - warm},
        output=output,
        reasoning=reported.reasoning,
    )


class _Prefix:
    """A prompt that grows by messages, with the hash and the length of each of its prefixes.

    The first is that of the tools alone. Lengths are in characters.
    """

    def __init__(self, whose: str, tools: Sequence[Json] | None) -> None:
        drawn = repr(tools) if tools else ""
        self._hash = hashlib.blake2b(digest_size=16)
        self.digests: list[bytes] = []
        self.lengths: list[int] = []
        self._add(f"{whose}\x1f{drawn}", len(drawn))

    def grow(self, message: Json) -> None:
        text, length = _content(message.get("content"))
        asked = _asked(message.get("tool_calls"))
        self._add(
            f"{message.get('role')}\x1f{message.get('tool_call_id')}\x1f{text}\x1f{asked}",
            self.lengths[-1] + length + len(asked),
        )

    def _add(self, text: str, length: int) -> None:
        data = text.encode(errors="surrogatepass")
        self._hash.update(b"%d:" % len(data))
        self._hash.update(data)
        self.digests.append(self._hash.digest())
        self.lengths.append(length)


def _content(content: Any) -> tuple[str, int]:
    """A message's content as text, and how many characters it counts for.

    What a client marks for its provider's cache moves from turn to turn and is no part of it.
    """
    if isinstance(content, str):
        return content, len(content)
    texts, length = [], 0
    for part in content if isinstance(content, list | tuple) else ():
        text = part.get("text") if isinstance(part, Mapping) else None
        if isinstance(text, str):
            length += len(text)
        else:
            text = repr(part)
            length += min(len(text), _OTHER_PART_CHARACTERS)
        texts.append(text)
    return "".join(texts), length


def _asked(calls: Any) -> str:
    """A message's tool calls as text; clients send them back with their fields in another order."""
    if not calls or not isinstance(calls, list):
        return repr(calls) if calls else ""
    return repr([_call(each) for each in calls])


def _call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    return call.get("id"), function.get("name"), function.get("arguments")
