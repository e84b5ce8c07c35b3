"""Reads a request as a learned model does: one text to embed, and the cheap features.

Serving and training read with the same function, so that a model is asked about what it was taught.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cascade.types import ChatRequest
from classifiers.features import features_of
from classifiers.text import DEFAULT, Extraction, asked

_FEATURE_TOKENS = 1_000
"""Features are taken from more of the ask than an embedding model reads."""


@dataclass(frozen=True, slots=True)
class Read:
    """What is looked at of a request: the text to embed, and the features by name."""

    text: str
    features: Mapping[str, float]


def read(request: ChatRequest, options: Extraction = DEFAULT) -> Read:
    """A request as a learned model looks at it."""
    short = asked(request.messages, options)
    more = replace(
        options,
        ask_tokens=max(options.ask_tokens, _FEATURE_TOKENS),
        code_tokens=max(options.code_tokens, _FEATURE_TOKENS),
    )
    full = asked(request.messages, more)
    return Read(text=short.whole, features=features_of(request, full))
