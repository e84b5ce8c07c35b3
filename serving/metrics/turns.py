"""Follows conversations from turn to turn: how long tools take, and what was warm and is no more.

What counts as lost, and to what, is what `cascade cache doctor` would say of the same two calls.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cascade.pace import Pace
from cascade.result import CascadeResult
from cascade.tiers import ModelTier
from cascade.types import Attempt, Usage
from serving.doctor.calls import Call, Prompt, prompt_from, seconds_of
from serving.doctor.losses import Loss, TierFacts, losses
from serving.doctor.memory import Memory
from serving.metrics.families import Families

MAX_TOOL_CALLS: Final = 10_000
MAX_SESSIONS: Final = 1_000
"""Conversations that are remembered; a call of a long one takes some 20 kB."""

GONE: Final = frozenset({"expired", "evicted"})
RECOMPUTED: Final = GONE | {"replica"}


class Turns:
    """What one turn left to the next, in bounded memory: the latest are kept.

    Args:
        tiers: by name.
        pace: what is known of how long a prompt token takes.
        families: where it is counted.
    """

    def __init__(self, tiers: Mapping[str, ModelTier], pace: Pace, families: Families) -> None:
        self._facts = {name: TierFacts(cache=tier.cache) for name, tier in tiers.items()}
        self._pace = pace
        self._families = families
        self._tools: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._memory = Memory(max_sessions=MAX_SESSIONS, max_kinds=0)

    def note(self, result: CascadeResult) -> None:
        """A turn is over; turns come in the order in which they ended."""
        if not result.request.session or result.request.prewarm:
            return
        self._tools_of(result)
        prompt = prompt_from(result.fingerprint.segments) if result.fingerprint else None
        for attempt in result.attempts:
            if attempt.answered:
                self._call(_call(result, attempt, prompt))

    def _tools_of(self, result: CascadeResult) -> None:
        whose = (result.request.tenant, result.request.session)
        asked = [self._tools.pop((*whose, name), None) for name in _results(result)]
        known = [ended for ended in asked if ended is not None]
        if known:  # the results of calls made together come together
            waited = max(0.0, result.started_at - max(known))
            self._families.tool_latency_ms.observe(waited * 1e3)
        answer = result.completion
        for call in answer.tool_calls if answer else ():
            self._tools[*whose, str(call.get("id"))] = result.started_at + result.seconds
        while len(self._tools) > MAX_TOOL_CALLS:
            self._tools.popitem(last=False)

    def _call(self, call: Call) -> None:
        if call.prompt_tokens is None:
            return
        held, _ = self._memory.earlier(call)
        self._memory.keep(call, held)
        facts = self._facts.get(call.tier)
        if call.read_tokens is not None and facts is not None and facts.cache is not None:
            self._lost(call.tier, losses(call, held, facts, ours=True))

    def _lost(self, tier: str, lost: Sequence[Loss]) -> None:
        if any(loss.cause.kind in GONE for loss in lost):
            self._families.evicted_before_next_turn.labels(tier).inc()
        tokens = sum(loss.tokens for loss in lost if loss.cause.kind in RECOMPUTED)
        each = self._pace.prompt_token_seconds(tier)
        if tokens and each is not None:
            self._families.recompute_prefill_ms.labels(tier).observe(tokens * each * 1e3)


def _results(result: CascadeResult) -> Iterator[str]:
    """The calls whose results are in the messages after the last answer."""
    for message in reversed(result.request.messages):
        if message.get("role") == "assistant":
            return
        if message.get("role") == "tool":
            yield str(message.get("tool_call_id"))


def _call(result: CascadeResult, attempt: Attempt, prompt: Prompt | None) -> Call:
    """A call as the log will have it."""
    answer = attempt.completion
    usage = answer.usage if answer else Usage()
    began, first = result.started_at + attempt.started, attempt.first_token_seconds
    writes = usage.cache_write or {}
    kept = [seconds_of(ttl) for ttl, tokens in writes.items() if tokens]
    return Call(
        request_id=result.request.id,
        tenant=result.request.tenant,
        session=result.request.session,
        tier=attempt.step.tier,
        replica=answer.replica if answer else None,
        began=began,
        first_token=None if first is None else began + first,
        ended=began + attempt.seconds,
        prompt=prompt,
        cold_tokens=None if usage.input is None else usage.input + sum(writes.values()),
        read_tokens=usage.cache_read,
        kept_seconds=max((each for each in kept if each is not None), default=None),
    )
