"""The seams: what an implementation must offer. One verb each.

Extras go into constructors; behaviour is added by wrapping (retry, calibration, a panel).
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

from cascade.errors import BackendProtocolError
from cascade.quote import Quote
from cascade.result import CascadeResult
from cascade.types import (
    Attempt,
    Beliefs,
    ChatRequest,
    Chunk,
    Completion,
    Json,
    Plan,
    Step,
    Verdict,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Tokenizer(Protocol):
    """Counts prompts as one model does, and says which tokens it makes of them."""

    async def count(self, request: ChatRequest) -> int | None:
        """Tokens of the prompt, chat template and tools included, media left out.

        None when they cannot be told now; a request is never kept waiting for longer than a second.
        """
        ...

    async def ids(self, request: ChatRequest) -> Sequence[int] | None:
        """The prompt's tokens, chat template and tools included, as the model gets them.

        None when they cannot be told now, as where there are media in it; not later than in a
        second.
        """
        ...

    async def text_ids(self, text: str) -> Sequence[int] | None:
        """The tokens of a piece of text, with no special ones added, on the same terms."""
        ...


class Backend(Protocol):
    """A model that can be asked.

    Attributes:
        tokenizer: counts prompts as the model does, if there is a way to ask; wrappers have none.
    """

    tokenizer: Tokenizer | None = None

    def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask; the last chunk carries the completion.

        Raises:
            BackendError: whatever went wrong on the way to the model or in it.
        """
        ...

    async def complete(self, request: ChatRequest) -> Completion:
        """Ask and wait for the whole answer."""
        completion = None
        async with aclosing(self.stream(request)) as chunks:
            async for chunk in chunks:
                completion = chunk.completion or completion
        if completion is None:
            raise BackendProtocolError("the stream ended without a completion")
        return completion

    async def aclose(self) -> None:
        """Release connections."""


class Judge(Protocol):
    """Looks at one answer.

    Attributes:
        name: how verdicts and the audit log call it.
        needs: request parameters without which it cannot tell, e.g. {"logprobs": True}; the engine
            adds them upstream and takes what they bring out of the client's answer.

    A judge may also have `growing = True` when it can look at an answer that is still coming in, at
    once and without asking a model (early commit asks no other), and `free = True` when it neither
    asks a model nor starts a process, so that also what was released already is judged.
    """

    name: str
    needs: Json

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """Judge the completion's first choice.

        Raises:
            JudgeError: it could not judge; the engine records that and accepts nothing.
        """
        ...


class DifficultyEstimator(Protocol):
    """Says before any call how likely each tier's answer is acceptable.

    Attributes:
        name: how the audit log calls it.
        asks: the tier whose model it asks; None when it asks none.
    """

    name: str
    asks: str | None

    async def estimate(self, requests: Sequence[ChatRequest]) -> list[Beliefs]:
        """One Beliefs a request, in order; the same for each as if it were the only one.

        Raises:
            EstimatorError: no estimate; the prior is used and flagged.
        """
        ...


class Embedder(Protocol):
    """Turns texts into vectors whose nearness is nearness in meaning."""

    @property
    def model(self) -> str:
        """The model and its weights: vectors of different models do not compare."""
        ...

    @property
    def dimensions(self) -> int:
        """Of a vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Vectors of unit length, of shape (texts, dimensions), in order.

        Raises:
            EstimatorError: the model could not be run.
        """
        ...


class RoutingPolicy(Protocol):
    """Decides what is called next and what is accepted. Nothing else does.

    Attributes:
        steps: every step it may ever take, so that a configuration can be checked before it serves.
    """

    name: str
    steps: Sequence[Step]

    def decide(
        self,
        request: ChatRequest,
        beliefs: Beliefs,
        quotes: Mapping[str, Quote],
        attempts: Sequence[Attempt],
    ) -> Plan:
        """The plan from here on; called before every attempt and once more to accept.

        A tier without a quote cannot serve the request: its steps are skipped. With no step left
        the plan has none and accepts nothing.
        """
        ...


class Traces(Protocol):
    """Says where in a trace a call is, before it is made."""

    def placed(self, request: ChatRequest, index: int) -> ChatRequest:
        """The request as its attempt of an index puts it, with the place of that in `context`."""
        ...


class Untraced(Traces):
    """Nobody keeps traces: nothing is computed and nothing is sent."""

    def placed(self, request: ChatRequest, index: int) -> ChatRequest:  # noqa: ARG002 - a seam's
        """The request as it is."""
        return request


class AuditSink(Protocol):
    """Takes every result, answered or not."""

    def write(self, result: CascadeResult) -> None:
        """Take it without waiting; whatever is slow happens elsewhere."""
        ...
