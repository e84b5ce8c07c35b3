"""One call to a tier under way: what came of its answer, and what it used if it is cut."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cascade.answers import assemble, is_answer, tokens
from cascade.errors import BackendError, BackendProtocolError
from cascade.quote import Quote
from cascade.tiers import ModelTier
from cascade.tool_calls import ToolCallGate
from cascade.types import FREE, Chunk, Completion, Cost, Json, Usage

_NOTHING: Sequence[Sequence[Json]] = ()


class Cut(NamedTuple):
    """What a call used and cost that ended before its answer was whole; the names are Attempt's."""

    completion: Completion | None
    cost: Cost | None
    usage_estimated: bool


@dataclass(slots=True, kw_only=True)
class Call:
    """One call under way.

    Attributes:
        gate: what the answer goes through, so that no call of a tool gets out that cannot be made.
        held: the answer waits for a judge, and none of it goes out before that.
        began: when, on the clock that measures.
        asked: whether the tier was asked; until then nothing can have been spent.
        watched: somebody may want to release a held answer while it grows.
        chunks: the pieces that carry any of the answer.
        completion: the whole answer, once it has come.
        first_token_seconds: until the first of the pieces; None when none came.
    """

    tier: ModelTier
    quote: Quote | None
    gate: ToolCallGate
    held: bool
    began: float = field(default_factory=time.perf_counter)
    asked: bool = False
    watched: bool = False
    chunks: list[Chunk] = field(default_factory=list)
    completion: Completion | None = None
    first_token_seconds: float | None = None
    _waiting: list[tuple[Chunk, Sequence[Json]]] = field(default_factory=list)

    def take(self, chunk: Chunk) -> Sequence[Sequence[Json]]:
        """A piece of the answer came: keep it, and return what of it may go out at once.

        Raises:
            BackendToolCallError: the answer calls a tool in a way that cannot be carried out.
        """
        choices, released = chunk.choices, _NOTHING
        if is_answer(choices):
            if self.first_token_seconds is None:
                self.first_token_seconds = time.perf_counter() - self.began
            self.chunks.append(chunk)
            released = self.gate.through(choices)
        if chunk.completion is not None:
            self.completion = chunk.completion
            released = [*released, *self.gate.close()]
        if not self.held:
            return released
        if self.watched:
            self._waiting += [(chunk, choices) for choices in released]
        return _NOTHING

    def let_go(self) -> Sequence[tuple[Chunk, Sequence[Json]]]:
        """Hold no longer: what may go out of what has come, and the rest will as it comes."""
        self.held = self.watched = False
        waiting, self._waiting = self._waiting, []
        return waiting

    def whole(self) -> Completion:
        """The answer, after its stream has ended.

        Raises:
            BackendProtocolError: there is none.
        """
        if self.completion is None:
            raise BackendProtocolError(f"{self.tier.name}'s stream ended without a completion")
        return self.completion

    def cut(self, error: BackendError | None) -> Cut:
        """What the call used and cost, now that it is cut; what the model had reported, if it had.

        Otherwise the prompt is as long as it was quoted, and the answer is what came. A call that
        the model cannot have worked on is free, and one that was tried before has an unknown cost
        if the model may have worked on that.

        Args:
            error: how the call failed; None when it was ended from our side.
        """
        unreported = error.unreported_tries if error else 0
        may_have_cost = self.asked if error is None else error.may_have_cost
        if not may_have_cost and not self.chunks:
            return Cut(None, None if unreported else FREE, usage_estimated=False)
        answer = self.completion or self._partial(error)
        estimated = answer.usage.prompt is None or answer.usage.output is None
        if estimated:
            answer = replace(answer, usage=self._expected())
        cost = None if answer.unreported_tries else self.tier.price(answer.usage)
        return Cut(answer, cost, estimated)

    def _partial(self, error: BackendError | None) -> Completion:
        return Completion(
            choices=assemble(chunk.choices for chunk in self.chunks),
            tier=self.tier.name,
            model=(self.chunks and self.chunks[-1].model) or self.tier.name,
            partial=True,
            tries=error.tries if error else 1,
            unreported_tries=error.unreported_tries if error else 0,
        )

    def _expected(self) -> Usage:
        output = tokens(chunk.choices for chunk in self.chunks)
        if self.quote is None:
            return Usage(output=output)
        return Usage(input=self.quote.cold_tokens, cache_read=self.quote.warm_tokens, output=output)
