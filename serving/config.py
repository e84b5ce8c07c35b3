"""Reads cascade.yaml and refuses what cannot work, naming file, line and key.

The shape is checked here; whether the named things fit together is checked by `wiring`, which
builds them. Both report a dotted path, and the line of that path is looked up in the file.
"""

import hashlib
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from cascade.errors import ConfigError

DEFAULT_FILE = "cascade.yaml"

BY_TOKEN, BY_GPU = "price by token", "price by GPU hour"

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")]
Capability = Literal["logprobs", "json_schema", "tools", "vision", "reasoning"]
Bound = Literal["cache_control", "prompt_cache", "thinking"]
Rate = Annotated[Decimal, Field(ge=0)]
Speed = Annotated[Decimal, Field(gt=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Open(BaseModel):
    """Keys beyond the stated ones are options of the implementation that `type` names."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def options(self) -> dict[str, Any]:
        """The keys that are not stated."""
        return dict(self.model_extra or {})


class Server(_Strict):
    """Where the service listens."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    max_body_bytes: int = Field(default=32 * 1024 * 1024, gt=0)


class LongPrompt(_Strict):
    """Rates of a prompt longer than so many tokens, for the whole of it."""

    above: int = Field(gt=0)
    input: Rate
    cache_read: Rate
    output: Rate
    cache_write: dict[str, Rate] = {}


class TokenPrice(_Strict):
    """Dollars per million tokens. The cache rate must be stated: it is never guessed."""

    input: Rate
    cache_read: Rate
    output: Rate
    cache_write: dict[str, Rate] = {}
    long_prompts: list[LongPrompt] = []


class GpuPrice(_Strict):
    """The price of a self-hosted model, from what its machine costs and how fast it is."""

    gpu_usd_per_hour: Rate
    prefill_tokens_per_second: Speed
    cached_tokens_per_second: Speed
    decode_tokens_per_second: Speed


Price = Annotated[
    Annotated[TokenPrice, Tag(BY_TOKEN)] | Annotated[GpuPrice, Tag(BY_GPU)],
    Discriminator(
        lambda price: (
            BY_GPU if isinstance(price, dict) and "gpu_usd_per_hour" in price else BY_TOKEN
        )
    ),
]


class Launch(_Strict):
    """A model server that Cascade starts and watches itself."""

    engine: Literal["llama_cpp"]
    model: str
    context: int = Field(default=8192, ge=256)
    slots: int = Field(default=2, ge=1)
    threads: int | None = Field(default=None, ge=1)
    cache_ram_mib: int = Field(default=256, ge=0)
    port: int | None = Field(default=None, ge=1, le=65535)


class Limits(_Strict):
    """Calls at once to a tier, and how many more wait how long for one of them to end."""

    concurrent: int = Field(ge=1)
    waiting: int = Field(default=64, ge=0)
    wait_seconds: float = Field(default=10.0, gt=0)


class Retry(_Strict):
    """Tries after the first, for faults that may pass before the answer has begun.

    The defaults are over within a second: there is another tier to ask. `within_seconds` keeps a
    request that waited two minutes for its first token from waiting four more.
    """

    times: int = Field(default=2, ge=1, le=10)
    base_seconds: float = Field(default=0.2, ge=0)
    cap_seconds: float = Field(default=2.0, ge=0)
    retry_after_seconds: float = Field(default=5.0, ge=0)
    within_seconds: float = Field(default=30.0, ge=0)


class CoolDown(_Strict):
    """When a tier that fails is left alone, and for how long.

    The first cool-down is short, since a probe of a server that is down costs next to nothing.
    """

    rate: float = Field(default=0.5, gt=0, le=1)
    calls: int = Field(default=20, ge=1)
    window_seconds: float = Field(default=300.0, gt=0)
    min_calls: int = Field(default=5, ge=1)
    seconds: float = Field(default=2.0, gt=0)
    max_seconds: float = Field(default=60.0, gt=0)

    @model_validator(mode="after")
    def _can_open_and_grow(self) -> "CoolDown":
        if self.min_calls > self.calls:
            raise ValueError("min_calls above calls: it would never cool down")
        if self.max_seconds < self.seconds:
            raise ValueError("max_seconds is below seconds")
        return self


class Tier(_Open):
    """A model, where it is, what it costs and what it can do; other keys go to the backend.

    Capabilities and token limits that are not stated exclude no request; a stated list of
    capabilities is complete. What it `accepts` of content that is bound to a provider must be
    stated, since most servers refuse it; everything else of the kind is taken out of the request.
    A null `retry` or `cooldown` switches it off. There is no limit unless one is stated: only the
    operator knows what a server can take, and a wrong guess would turn requests away.
    """

    backend: str
    launch: Launch | None = None
    price: Price | None = None
    api_key_env: str | None = None
    capabilities: tuple[Capability, ...] | None = None
    context_tokens: int | None = Field(default=None, ge=1)
    output_tokens: int | None = Field(default=None, ge=1)
    accepts: tuple[Bound, ...] = ()
    limits: Limits | None = None
    retry: Retry | None = Retry()
    cooldown: CoolDown | None = CoolDown()

    @property
    def window(self) -> int | None:
        """How many tokens it holds: as stated, else as launched, else unknown."""
        return self.context_tokens or (self.launch.context if self.launch else None)

    @model_validator(mode="after")
    def _claims_no_more_than_is_launched(self) -> "Tier":
        if self.launch and self.context_tokens and self.context_tokens > self.launch.context:
            raise ValueError(
                f"context_tokens {self.context_tokens} is above the {self.launch.context} that "
                "launch.context gives the model"
            )
        return self


class Estimator(_Open):
    """A difficulty estimator; other keys go to its constructor."""

    type: str


class Judge(_Open):
    """A judge; `members` name other judges, `calibration` a fitted map, other keys are its own."""

    type: str
    members: list[str] | None = None
    calibration: Path | None = None


class Policy(_Open):
    """A routing policy; other keys go to its constructor."""

    type: str
    estimator: str | None = None


class ArmEntry(_Strict):
    """One arm of an experiment."""

    policy: str
    weight: float = Field(default=1.0, ge=0)


class Experiment(_Strict):
    """Arms, and what is sticky."""

    unit: Literal["session", "tenant", "request"] = "session"
    salt: str = ""
    arms: dict[Name, ArmEntry]

    @model_validator(mode="after")
    def _somebody_gets_in(self) -> "Experiment":
        if not any(arm.weight > 0 for arm in self.arms.values()):
            raise ValueError("at least one arm needs a weight above 0")
        return self


class Audit(_Strict):
    """Where the audit log is kept. CASCADE_AUDIT_URL overrides the url."""

    url: str = "sqlite:///cascade.db"
    spill: Path | None = None
    spill_max_bytes: int = Field(default=1024**3, gt=0)
    flush_seconds: float = Field(default=0.2, gt=0)


class Config(_Strict):
    """The whole file."""

    server: Server = Server()
    tiers: dict[Name, Tier] = Field(min_length=1)
    estimators: dict[Name, Estimator] = {}
    judges: dict[Name, Judge] = {}
    policies: dict[Name, Policy] = {}
    experiments: dict[Name, Experiment] = {}
    audit: Audit = Audit()

    def version(self, fitted: Any = None) -> str:
        """Hash of everything that can change a decision or a price, fitted artifacts included."""
        parts = [self.model_dump(mode="json", exclude={"server", "audit"}), fitted]
        return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]


class ConfigFile:
    """A configuration and the file it came from, so that an error can name the line.

    Raises:
        ConfigError: on construction, when the file is missing or is not a valid configuration.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, int] = {}
        self.config = self._parse(self._read())

    @property
    def audit_url(self) -> str:
        """The audit database; a relative SQLite file lies beside the configuration."""
        url = self.config.audit.url
        file = url.removeprefix("sqlite:///")
        if file == url or file.startswith("/"):
            return url
        return f"sqlite:///{self.path.absolute().parent / file}"

    def explain(self, error: ConfigError) -> ConfigError:
        """The error with file and line in front, if its path is in the file."""
        where = f"{self.path}"
        if error.param:
            where += f":{self._line(error.param)}: {error.param}"
        return ConfigError(f"{where}: {error.message}", param=error.param)

    def _read(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ConfigError(
                f"{self.path}: no such file. Name one with --config, or run in a folder with a "
                f"{DEFAULT_FILE}"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.path}: cannot be read: {error}") from None

    def _parse(self, text: str) -> Config:
        try:
            tree = yaml.compose(text, Loader=yaml.SafeLoader)
            self._lines = dict(_lines(tree)) if tree else {}
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{self.path}: not YAML: {error}") from None
        if not isinstance(data, dict):
            raise ConfigError(f"{self.path}: a configuration is a mapping with at least `tiers`")
        if url := os.environ.get("CASCADE_AUDIT_URL"):
            data = {**data, "audit": {**(data.get("audit") or {}), "url": url}}
        try:
            return Config.model_validate(data)
        except ValidationError as error:
            raise self._first(error) from None

    def _first(self, error: ValidationError) -> ConfigError:
        """The first fault; the rest would only repeat it in other words."""
        fault = error.errors(include_url=False)[0]
        path = ".".join(str(step) for step in fault["loc"] if step not in {BY_TOKEN, BY_GPU})
        message = "unknown key" if fault["type"] == "extra_forbidden" else fault["msg"]
        return self.explain(ConfigError(message.removeprefix("Value error, "), param=path))

    def _line(self, path: str) -> int:
        """The line of a dotted path, or of the nearest parent that is in the file."""
        while path and path not in self._lines:
            path = path.rpartition(".")[0]
        return self._lines.get(path, 1)


def find(given: Path | None) -> Path:
    """The configuration to use: the one given, CASCADE_CONFIG, or ./cascade.yaml."""
    return given or Path(os.environ.get("CASCADE_CONFIG") or DEFAULT_FILE)


def _lines(node: yaml.Node, path: str = "") -> Iterator[tuple[str, int]]:
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = f"{path}.{key.value}" if path else str(key.value)
            yield below, key.start_mark.line + 1
            for inner, line in _lines(value, below):
                if inner != below:
                    yield inner, line
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield from _lines(value, f"{path}.{i}")
