"""Makes the traces of a service from its configuration."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from cascade.errors import ConfigError
from serving.config import Config
from serving.telemetry.tracing import Tracing, exporter
from serving.tier_config import Tier

_HOSTS: Mapping[str, str] = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.x.ai": "x_ai",
}
"""Well-known values of `gen_ai.provider.name`, by where they are asked."""
_MAPPED: Mapping[str, str] = {
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "bedrock": "aws.bedrock",
    "vertex_ai": "gcp.vertex_ai",
    "gemini": "gcp.gemini",
    "azure": "azure.ai.openai",
}
"""The same by what litellm puts in front of a model, where it has another name for it."""


def tracing(config: Config) -> Tracing:
    """What is configured.

    Raises:
        ConfigError: a variable of the environment that it names is not set.
    """
    settings = config.server.tracing
    if settings is None:
        raise AssertionError("no traces are configured")
    headers = {}
    for name, variable in settings.headers_env.items():
        if variable not in os.environ:
            raise ConfigError(
                f"the variable {variable} is not set",
                param=f"server.tracing.headers_env.{name}",
            )
        headers[name] = os.environ[variable]
    return Tracing(
        {name: provider(tier) for name, tier in config.tiers.items()},
        exporter(settings.endpoint, headers),
        service=settings.service,
        sample=settings.sample,
    )


def provider(tier: Tier) -> str:
    """Who serves a tier: a well-known value of the conventions, or its backend's name."""
    if tier.launch is not None:
        return str(tier.launch.engine)
    model = str(tier.options.get("model") or "")
    if tier.backend == "litellm_api":
        whose, named, _ = model.partition("/")
        return _MAPPED.get(whose, whose) if named else "openai"
    address = (tier.replicas or (str(tier.options.get("url") or ""),))[0]
    return _HOSTS.get(urlsplit(address).hostname or "", tier.backend)
