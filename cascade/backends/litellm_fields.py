"""What becomes of the fields that a client sent, on their way through litellm to one model.

litellm takes request fields as arguments, beside its own arguments, which hold keys, addresses and
callbacks, and which grow in number. So a closed list says what may become an argument. Whatever
else a client sends goes into the body as it is, where the provider's API is OpenAI's; elsewhere
there is no such way, and it is refused rather than lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from cascade.errors import BackendRefusedError, ConfigError
from cascade.types import Json

_LABELS: Final = frozenset(
    {
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "store",
        "user",
    }
)
"""All that is left out unseen, where a provider has no place for it.

These tell OpenAI's platform something and do not touch the answer. Every other field of a request
goes out, or the request is refused.
"""

_AS_USUAL: Final[Json] = {
    "frequency_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "n": 1,
    "presence_penalty": 0,
    "response_format": {"type": "text"},
    "service_tier": "auto",
    "tool_choice": "auto",
}
"""Values that ask for what happens anyway: clients send them by habit, and nothing is lost."""

_LOST: Final = frozenset({("cohere_chat", "tool_choice")})
"""(provider, field) that litellm says it translates, and then leaves out."""

_FIELDS: Final = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "service_tier",
        "stop",
        "temperature",
        "thinking",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "verbosity",
        "web_search_options",
        *(_LABELS - {"metadata"}),  # an argument of that name is litellm's own
    }
)
"""Fields of OpenAI's API that litellm can translate for some provider."""

_PROVIDERS_OWN: Final = frozenset(
    {
        "cache_control",
        "context_management",
        "min_p",
        "output_config",
        "repetition_penalty",
        "safety_settings",
        "speed",
        "top_k",
    }
)
"""Fields of providers that litellm hands on as they are."""


_SHOWN: Final = frozenset({"text", "image_url"})
_THOUGHT: Final = frozenset({"thinking", "redacted_thinking"})

_PARTS: Final[dict[str, frozenset[str] | None]] = {
    "OpenAIGPTConfig": None,
    "AnthropicConfig": _SHOWN | _THOUGHT | {"document", "file", "tool_reference"},
    "AmazonConverseConfig": _SHOWN | _THOUGHT | {"document", "file", "guarded_text"},
    "VertexGeminiConfig": _SHOWN | {"file", "input_audio"},
}
"""What litellm does not drop of a message's parts, by the class that translates for the provider.

None: the parts go out as they are. A class that is neither here nor derived from one takes what
every translation does.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one model is spoken to.

    Attributes:
        translates: fields that become arguments of litellm.
        open_body: whether anything else can be put into the body as it is.
        parts: types of content parts that arrive; None for all.
    """

    translates: frozenset[str] = frozenset()
    open_body: bool = False
    parts: frozenset[str] | None = None

    @classmethod
    def of(cls, litellm: Any, model: str, url: str | None) -> Self:
        """The dialect of a model.

        Raises:
            ConfigError: litellm does not know the provider.
        """
        try:
            name, provider, _, _ = litellm.get_llm_provider(model=model, api_base=url)
        except litellm.BadRequestError:
            raise ConfigError(
                f"litellm knows no provider of {model!r}: write it as provider/model", param="model"
            ) from None
        known = litellm.get_supported_openai_params(model=name, custom_llm_provider=provider)
        lost = {field for who, field in _LOST if who == provider}
        fields = _FIELDS.intersection(known or ()) - lost
        if provider in {"openai", "azure", *litellm.openai_compatible_providers}:
            return cls(
                translates=fields, open_body=True, parts=_parts(litellm, name, provider, None)
            )
        return cls(
            translates=fields | _PROVIDERS_OWN, parts=_parts(litellm, name, provider, _SHOWN)
        )

    def check(self, messages: Sequence[Json]) -> None:
        """Refuse what would not arrive.

        Raises:
            BackendRefusedError: a message has a part of a type that would be dropped.
        """
        if self.parts is None:
            return
        lost = {kind for message in messages for kind in _kinds(message)} - self.parts
        if lost:
            raise BackendRefusedError(
                f"this model takes no content of type {', '.join(sorted(lost))}"
            )

    def split(self, params: Json) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields that litellm translates, and those for the body.

        Raises:
            BackendRefusedError: a field can go neither way.
        """
        fields = {name: value for name, value in params.items() if name in self.translates}
        rest = {name: value for name, value in params.items() if name not in self.translates}
        if self.open_body:
            return fields, rest
        lost = [n for n, value in rest.items() if n not in _LABELS and not _says_nothing(n, value)]
        if lost:
            raise BackendRefusedError(f"this model takes no {', '.join(sorted(lost))}")
        return fields, {}


def _parts(
    litellm: Any, model: str, provider: str, otherwise: frozenset[str] | None
) -> frozenset[str] | None:
    """The types of content parts that litellm does not drop for a model."""
    try:
        known = litellm.LlmProviders(provider)
    except ValueError:  # a provider that is only a line in litellm's data
        return otherwise
    config = litellm.ProviderConfigManager.get_provider_chat_config(model, known)
    names = (base.__name__ for base in type(config).__mro__)
    return next((_PARTS[name] for name in names if name in _PARTS), otherwise)


def _kinds(message: Json) -> list[str]:
    """The types of a message's content parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [str(part.get("type")) if isinstance(part, dict) else "unknown" for part in content]


def _says_nothing(name: str, value: Any) -> bool:
    """Whether leaving the field out asks for the same."""
    return value is None or (name in _AS_USUAL and value == _AS_USUAL[name])
