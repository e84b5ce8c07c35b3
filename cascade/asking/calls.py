"""How models are asked about a text: for one label, priced by the tier's card."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from cascade.errors import BackendError, BackendProtocolError, ConfigError
from cascade.tiers import ExpectedTokens, ModelTier
from cascade.tiers.requirements import needs
from cascade.types import FREE, ChatRequest, Completion, Cost, Json, Usage

_LABEL_TOKENS: Final = 2
"""One for the label, one for a blank before it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model answered and what that cost; None when it is unknown."""

    completion: Completion
    cost: Cost | None


async def ask(tier: ModelTier, request: ChatRequest) -> Asked:
    """Ask a tier for a whole answer.

    Raises:
        BackendError: it failed; `cost_of` says what that cost.
    """
    completion = None
    async with aclosing(tier.aside(request)) as chunks:
        async for chunk in chunks:
            completion = chunk.completion or completion
    if completion is None:
        raise BackendProtocolError("the stream ended without a completion")
    cost = None if completion.unreported_tries else tier.price(completion.usage)
    return Asked(completion, cost)


def cost_of(error: BackendError) -> Cost | None:
    """What a failed call cost: nothing, or unknown when the model may have worked."""
    return None if error.may_have_cost or error.unreported_tries else FREE


def expected_cost(tier: ModelTier, request: ChatRequest) -> Cost | None:
    """What a call is expected to cost at list price; None when the tier has no price."""
    tokens = ExpectedTokens.of(request, needs(request))
    return tier.price(Usage(input=tokens.prompt, cache_read=0, output=tokens.output))


def for_a_label(
    tier: ModelTier, request: ChatRequest, by: str, messages: Sequence[Json], top_logprobs: int
) -> ChatRequest:
    """A request for one label, with the probabilities of the others where the tier tells them.

    Args:
        tier: whose model is to answer.
        request: the one that it is about.
        by: who asks.
        messages: what is asked.
        top_logprobs: how many alternatives to a token to ask for.
    """
    params: dict[str, Any] = {"temperature": 0, "max_tokens": _LABEL_TOKENS}
    if tier.capabilities is None or "logprobs" in tier.capabilities:
        params |= {"logprobs": True, "top_logprobs": top_logprobs}
    return ChatRequest(
        id=f"{request.id}-{by}",
        messages=messages,
        params=params,
        tenant=request.tenant,
        context=request.context,
    )


def tier_named(tiers: Mapping[str, ModelTier], name: str, option: str) -> ModelTier:
    """The tier that an option names.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in tiers:
        known = ", ".join(tiers) or "none"
        raise ConfigError(f"there is no tier {name!r}; there are: {known}", param=option)
    return tiers[name]
