"""What becomes of the fields that a client sent, on their way through litellm to one model.

litellm takes request fields as arguments, beside its own arguments, which hold keys, addresses and
callbacks, and which grow in number. So a closed list says what may become an argument. Whatever
else a client sends goes into the body as it is, where the provider's API is OpenAI's; elsewhere
there is no such way, and it is refused rather than lost.
"""

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
"""Fields that tell OpenAI's platform something and do not touch the answer."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one model is spoken to.

    Attributes:
        translates: fields that become arguments of litellm.
        open_body: whether anything else can be put into the body as it is.
    """

    translates: frozenset[str] = frozenset()
    open_body: bool = False

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
        fields = _FIELDS.intersection(known or ())
        if provider in {"openai", "azure", *litellm.openai_compatible_providers}:
            return cls(translates=fields, open_body=True)
        return cls(translates=fields | _PROVIDERS_OWN)

    def split(self, params: Json) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields that litellm translates, and those for the body.

        Raises:
            BackendRefusedError: a field can go neither way.
        """
        fields = {name: value for name, value in params.items() if name in self.translates}
        rest = {name: value for name, value in params.items() if name not in self.translates}
        if self.open_body:
            return fields, rest
        lost = [name for name in rest if name not in _LABELS and rest[name] is not None]
        if lost:
            raise BackendRefusedError(f"this model takes no {', '.join(sorted(lost))}")
        return fields, {}
