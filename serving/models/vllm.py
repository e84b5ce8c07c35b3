"""How vLLM has to be started so that a tier gets from it what the configuration says of the tier.

What a tier states (address, model, window, capabilities) is turned into vLLM's options; what a
configuration cannot know (where the weights lie, how a model writes its tool calls) is given, or
stays in the line as a word in capitals that says what is missing.
"""

import ipaddress
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit

from cascade.errors import ConfigError
from serving.tier_config import Tier

WEIGHTS: Final = "MODEL_PATH"
TOOL_CALL_PARSER: Final = "TOOL_CALL_PARSER"
REASONING_PARSER: Final = "REASONING_PARSER"

_MISSING: Final[Mapping[str, str]] = {
    WEIGHTS: "a hub id or a folder with the weights; --weights fills it in",
    TOOL_CALL_PARSER: "how this model writes tool calls, e.g. hermes; --tool-call-parser "
    "fills it in, `vllm serve --help=tool-call-parser` lists them",
    REASONING_PARSER: "how this model marks its reasoning, e.g. qwen3; --reasoning-parser "
    "fills it in, `vllm serve --help=reasoning-parser` lists them",
}
_MOST_TOP_LOGPROBS: Final = 20  # as many as a client may ask Cascade for


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstated:
    """What vLLM must be told and no configuration says.

    Attributes:
        weights: hub id or folder of the model; None where the tier's `model` is a hub id, or open.
        tool_call_parser: vLLM's name for the form of the model's tool calls.
        reasoning_parser: vLLM's name for the form of its reasoning.
        gpus: how many a copy of the model is spread over; None leaves it to vLLM.
        adapters: LoRA adapters to load, as NAME=PATH.
        others: further options of vLLM's, as they are.
    """

    weights: str | None = None
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    gpus: int | None = None
    adapters: Sequence[str] = ()
    others: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A command line.

    Attributes:
        arguments: the program and what it is given.
        environment: variables it needs, each with the name of the variable that holds its value.
        placeholders: words in it that are still to be replaced, and by what.
        notes: what else its reader should know.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    placeholders: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def shell(self) -> str:
        """As it is typed."""
        variables = [f'{name}="${source}"' for name, source in self.environment.items()]
        return " ".join([*variables, shlex.join(self.arguments)])


def serve_line(name: str, tiers: Mapping[str, Tier], unstated: Unstated) -> Line:
    """The `vllm serve` line for a tier.

    Args:
        name: of a tier with an address and a model.
        tiers: all of the configuration; tiers with the same address share the server.
        unstated: what they do not say.

    Raises:
        ConfigError: the tier has no good address or no model, or an adapter is not NAME=PATH.
    """
    tier = tiers[name]
    url, model = _split(name, _text(name, tier, "url")), _text(name, tier, "model")
    arguments = [
        "vllm",
        "serve",
        *_model(model, unstated),
        *_address(url),
        *_claims(tier, unstated),
    ]
    arguments += [*_adapters(unstated), *unstated.others]
    return Line(
        arguments=arguments,
        environment={"VLLM_API_KEY": tier.api_key_env} if tier.api_key_env else {},
        placeholders={word: what for word, what in _MISSING.items() if word in arguments},
        notes=[*_address_notes(url, tier), *_neighbours(name, tiers, unstated)],
    )


def _text(name: str, tier: Tier, key: str) -> str:
    value = tier.options.get(key)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"it has no {key}", param=f"tiers.{name}.{key}")
    return value


def _model(model: str, unstated: Unstated) -> Iterator[str]:
    """The weights, and the name that Cascade asks for; an adapter brings its own name."""
    is_adapter = model in _adapter_names(unstated)
    is_hub_id = "/" in model and not is_adapter
    yield unstated.weights or (model if is_hub_id else WEIGHTS)
    if not is_adapter:
        yield from ("--served-model-name", model)


def _address(url: SplitResult) -> Iterator[str]:
    everywhere = "0.0.0.0"  # noqa: S104 - it is to be reached from another machine
    yield from ("--host", url.hostname or "" if _is_loopback(url) else everywhere)
    yield from ("--port", str(url.port or (443 if url.scheme == "https" else 80)))


def _claims(tier: Tier, unstated: Unstated) -> Iterator[str]:
    """What the stated limits and capabilities take."""
    capabilities = tier.capabilities or ()
    if tier.context_tokens is not None:
        yield from ("--max-model-len", str(tier.context_tokens))
    yield "--enable-prompt-tokens-details"  # else it does not say what it read from its cache
    if "logprobs" in capabilities:
        yield from ("--max-logprobs", str(_MOST_TOP_LOGPROBS))
    if "tools" in capabilities:
        parser = unstated.tool_call_parser or TOOL_CALL_PARSER
        yield from ("--enable-auto-tool-choice", "--tool-call-parser", parser)
    if "reasoning" in capabilities:
        yield from ("--reasoning-parser", unstated.reasoning_parser or REASONING_PARSER)
    if unstated.gpus is not None:
        yield from ("--tensor-parallel-size", str(unstated.gpus))


def _adapters(unstated: Unstated) -> Iterator[str]:
    if unstated.adapters:
        yield from ("--enable-lora", "--lora-modules", *unstated.adapters)


def _adapter_names(unstated: Unstated) -> list[str]:
    for adapter in unstated.adapters:
        name, _, path = adapter.partition("=")
        if not name or not path:
            raise ConfigError(f"--lora {adapter}: write it as NAME=PATH")
    return [adapter.partition("=")[0] for adapter in unstated.adapters]


def _address_notes(url: SplitResult, tier: Tier) -> Iterator[str]:
    if not _is_loopback(url):
        yield f"run it on {url.hostname}"
        if not tier.api_key_env:
            yield "whoever reaches that port can use it: name a key's variable in api_key_env"
    if url.scheme == "https":
        yield (
            "the address is https: add --ssl-keyfile and --ssl-certfile, or put a proxy in front "
            "and choose the port behind it"
        )
    if url.path.rstrip("/") != "/v1":
        yield f"vLLM answers below /v1, the address says {url.path or '/'}: a proxy must map it"


def _neighbours(name: str, tiers: Mapping[str, Tier], unstated: Unstated) -> Iterator[str]:
    """Other models that this server is asked for."""
    mine = tiers[name].options
    served = {mine["model"], *_adapter_names(unstated)}
    for other, tier in tiers.items():
        model = tier.options.get("model")
        if tier.options.get("url") == mine["url"] and model not in served:
            yield (
                f"tier {other} asks the same server for {model}: an adapter is added with "
                f"--lora {model}=PATH"
            )


def _is_loopback(url: SplitResult) -> bool:
    try:
        return ipaddress.ip_address(url.hostname or "").is_loopback
    except ValueError:
        return url.hostname == "localhost"


def _split(name: str, address: str) -> SplitResult:
    try:
        url = urlsplit(address)
        if url.scheme in {"http", "https"} and url.hostname and url.port != 0:
            return url
    except ValueError:
        pass
    raise ConfigError(
        f"{address!r} is no address of a server, such as http://127.0.0.1:8000/v1",
        param=f"tiers.{name}.url",
    )
