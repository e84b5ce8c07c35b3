"""The keys of a tier in cascade.yaml: where its model is, what it costs, what it can do."""

from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from cascade.backends.replica_choice import RuleName

BY_TOKEN, BY_GPU = "price by token", "price by GPU hour"
BY_MAP, BY_MODEL = "price in litellm's map", "price of the tier's model in litellm's map"
PRICES = (BY_TOKEN, BY_GPU, BY_MAP, BY_MODEL)

BY_BLOCKS, BY_SLOTS = "cache of blocks", "cache of slots"
BY_TTL, BY_WORD = "cache by time", "cache by one word"
FORMS = (*PRICES, BY_BLOCKS, BY_SLOTS, BY_TTL, BY_WORD)

FROM_MAP: Literal["litellm"] = "litellm"

Capability = Literal["logprobs", "json_schema", "tools", "vision", "reasoning"]
Bound = Literal["cache_control", "prompt_cache", "thinking"]
Rate = Annotated[Decimal, Field(ge=0)]
Speed = Annotated[Decimal, Field(gt=0)]


class Strict(BaseModel):
    """No keys beyond the stated ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Open(BaseModel):
    """Keys beyond the stated ones are options of the implementation that `type` names."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def options(self) -> dict[str, Any]:
        """The keys that are not stated."""
        return dict(self.model_extra or {})


class LongPrompt(Strict):
    """Rates of a prompt longer than so many tokens, for the whole of it."""

    above: int = Field(gt=0)
    input: Rate
    cache_read: Rate
    output: Rate
    cache_write: dict[str, Rate] = {}


class TokenPrice(Strict):
    """Dollars per million tokens. The cache rate must be stated: it is never guessed."""

    input: Rate
    cache_read: Rate
    output: Rate
    cache_write: dict[str, Rate] = {}
    long_prompts: list[LongPrompt] = []


class GpuPrice(Strict):
    """The price of a self-hosted model, from what its machine costs and how fast it is."""

    gpu_usd_per_hour: Rate
    prefill_tokens_per_second: Speed
    cached_tokens_per_second: Speed
    decode_tokens_per_second: Speed


class MapPrice(Strict):
    """The price that litellm's map has for a model, by litellm's name for it."""

    litellm: str


def _form(price: Any) -> str:
    """Which form of price it is, or is meant to be."""
    if isinstance(price, str):
        return BY_MODEL
    keys: Any = type(price).model_fields if isinstance(price, BaseModel) else price
    keys = keys if isinstance(keys, dict) else ()
    return BY_GPU if "gpu_usd_per_hour" in keys else BY_MAP if FROM_MAP in keys else BY_TOKEN


Price = Annotated[
    Annotated[TokenPrice, Tag(BY_TOKEN)]
    | Annotated[GpuPrice, Tag(BY_GPU)]
    | Annotated[MapPrice, Tag(BY_MAP)]
    | Annotated[Literal["litellm"], Tag(BY_MODEL)],
    Discriminator(_form),
]


class BlockCache(Strict):
    """Full blocks of so many tokens are kept until memory runs out, as vLLM does."""

    blocks: int = Field(ge=1)
    capacity_tokens: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _holds_a_block(self) -> "BlockCache":
        if self.capacity_tokens is not None and self.capacity_tokens < self.blocks:
            raise ValueError(
                f"capacity_tokens {self.capacity_tokens} does not hold a block of {self.blocks}"
            )
        return self


class SlotCache(Strict):
    """The last prompt of each of so many slots is kept, as llama.cpp does.

    Attributes:
        capacity_tokens: how many tokens are kept besides, of prompts that no slot holds any more.
    """

    slots: int = Field(ge=1)
    capacity_tokens: int | None = Field(default=None, ge=1)


class TtlCache(Strict):
    """What was used in the last `ttl` seconds is kept, as API providers do.

    Attributes:
        minimum: tokens below which a prompt is not cached.
        step: tokens in which a cached prefix grows.
    """

    ttl: float = Field(gt=0)
    minimum: int = Field(default=0, ge=0)
    step: int = Field(default=1, ge=1)


def _cache_form(cache: Any) -> str:
    """Which form of cache it is, or is meant to be."""
    keys: Any = type(cache).model_fields if isinstance(cache, BaseModel) else cache
    if not isinstance(keys, dict):
        return BY_WORD
    return BY_BLOCKS if "blocks" in keys else BY_SLOTS if "slots" in keys else BY_TTL


Cache = Annotated[
    Annotated[BlockCache, Tag(BY_BLOCKS)]
    | Annotated[SlotCache, Tag(BY_SLOTS)]
    | Annotated[TtlCache, Tag(BY_TTL)]
    | Annotated[Literal["slots", "none"], Tag(BY_WORD)],
    Discriminator(_cache_form),
]


class Launch(Strict):
    """A model server that Cascade starts and watches itself."""

    engine: Literal["llama_cpp"]
    model: str
    context: int = Field(default=8192, ge=256)
    slots: int = Field(default=2, ge=1)
    threads: int | None = Field(default=None, ge=1)
    cache_ram_mib: int = Field(default=256, ge=0)
    port: int | None = Field(default=None, ge=1, le=65535)


class Limits(Strict):
    """Calls at once to a tier, and how many more wait how long for one of them to end."""

    concurrent: int = Field(ge=1)
    waiting: int = Field(default=64, ge=0)
    wait_seconds: float = Field(default=10.0, gt=0)


class Retry(Strict):
    """Tries after the first, for faults that may pass before the answer has begun.

    The defaults are over within a second: there is another tier to ask. `within_seconds` keeps a
    request that waited two minutes for its first token from waiting four more.
    """

    times: int = Field(default=2, ge=1, le=10)
    base_seconds: float = Field(default=0.2, ge=0)
    cap_seconds: float = Field(default=2.0, ge=0)
    retry_after_seconds: float = Field(default=5.0, ge=0)
    within_seconds: float = Field(default=30.0, ge=0)


class CoolDown(Strict):
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


class Breakpoints(Strict):
    """How long what is marked for Anthropic's cache is kept after its last use."""

    ttl: Literal["5m", "1h"] = "5m"


class CacheKeys(Strict):
    """Requests a minute that one `prompt_cache_key` of OpenAI's can take, of this process's."""

    per_minute: float = Field(default=15.0, gt=0)


class FanOut(Strict):
    """How long requests wait for the first of those that share a cold prefix, and from which size.

    Ten seconds are what a large model takes to compute 50,000 tokens or more.
    """

    wait_seconds: float = Field(default=10.0, gt=0)
    min_tokens: int = Field(default=1024, ge=0)


def _switched(value: Any) -> Any:
    """True stands for the defaults, False for nothing."""
    return {} if value is True else None if value is False else value


_Switch = BeforeValidator(_switched)
_OPENAI = ("openai/", "azure/")


def _place(url: str) -> tuple[str, str]:
    """Where a server is, whoever asks it."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2], parts.path.rstrip("/")


class Tier(Open):
    """A model, where it is, what it costs and what it can do; other keys go to the backend.

    Capabilities and token limits that are not stated exclude no request; a stated list of
    capabilities is complete. What it `accepts` of content that is bound to a provider must be
    stated, since most servers refuse it; everything else of the kind is taken out of the request.
    How its `cache` works is known of launched models, and of a litellm_api tier's model where
    litellm's map says so. With `salt_tenants` each tenant's requests carry a `cache_salt` of their
    own, so that no tenants share a prefix cache; it is made with the secret that `salt_key_env`
    names, else with one that ends with the process. A null `retry` or `cooldown` switches it off.
    There is no limit unless one is stated: only the operator knows what a server can take, and a
    wrong guess would turn requests away. Of `replicas`, addresses of servers of the same model, the
    `replica_rule` chooses; each has limits and cool-down of its own. `breakpoints`, `cache_key` and
    `fan_out` keep caches warm; true switches one on with its defaults.
    """

    backend: str
    launch: Launch | None = None
    replicas: tuple[str, ...] | None = None
    replica_rule: RuleName | None = None
    price: Price | None = None
    cache: Cache | None = None
    api_key_env: str | None = None
    capabilities: tuple[Capability, ...] | None = None
    context_tokens: int | None = Field(default=None, ge=1)
    output_tokens: int | None = Field(default=None, ge=1)
    accepts: tuple[Bound, ...] = ()
    salt_tenants: bool = False
    salt_key_env: str | None = None
    limits: Limits | None = None
    retry: Retry | None = Retry()
    cooldown: CoolDown | None = CoolDown()
    breakpoints: Annotated[Breakpoints | None, _Switch] = None
    cache_key: Annotated[CacheKeys | None, _Switch] = None
    fan_out: Annotated[FanOut | None, _Switch] = None

    @property
    def window(self) -> int | None:
        """How many tokens it holds: as stated, else as launched, else unknown."""
        return self.context_tokens or (self.launch.context if self.launch else None)

    @property
    def served_model(self) -> str | None:
        """The name of the model behind it, as the configuration knows it."""
        return self.launch.model if self.launch else self.options.get("model")

    @model_validator(mode="after")
    def _claims_no_more_than_is_launched(self) -> "Tier":
        if self.launch and self.context_tokens and self.context_tokens > self.launch.context:
            raise ValueError(
                f"context_tokens {self.context_tokens} is above the {self.launch.context} that "
                "launch.context gives the model"
            )
        return self

    @model_validator(mode="after")
    def _has_the_slots_that_it_says(self) -> "Tier":
        if self.cache == "slots" and self.launch is None:
            raise ValueError(
                "cache: slots goes by the slots of a launched model; here say how many the server "
                "has, e.g. cache: {slots: 4}"
            )
        if self.launch is None or self.cache in (None, "slots", "none"):
            return self
        if not isinstance(self.cache, SlotCache) or self.cache.slots != self.launch.slots:
            raise ValueError(
                f"the launched model has a cache of {self.launch.slots} slots: say cache: slots"
            )
        return self

    @model_validator(mode="after")
    def _says_what_its_keys_are_for(self) -> "Tier":
        if self.price == FROM_MAP and self.backend != "litellm_api":
            raise ValueError(
                "price: litellm goes by the model of a litellm_api tier; here say which model's "
                "price it is, e.g. price: {litellm: openai/gpt-5-mini}"
            )
        if self.salt_tenants and self.backend != "openai_http":
            raise ValueError("salt_tenants is for backend openai_http")
        if self.salt_key_env and not self.salt_tenants:
            raise ValueError("salt_key_env without salt_tenants: true has no effect")
        return self

    @model_validator(mode="after")
    def _has_one_way_to_its_servers(self) -> "Tier":
        if self.replicas is None and self.replica_rule is not None:
            raise ValueError("replica_rule without replicas has no effect")
        if self.replicas is None:
            return self
        if self.backend != "openai_http" or self.launch is not None:
            raise ValueError("replicas are for backend openai_http without launch")
        if "url" in self.options:
            raise ValueError("url and replicas: say one of them; replicas lists all servers")
        return self

    @field_validator("replicas")
    @classmethod
    def _lists_servers(cls, urls: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if urls is None:
            return None
        if not urls:
            raise ValueError("list each server's address, or say url")
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"{url!r}: an address begins with http:// or https://")
        if len(set(map(_place, urls))) < len(urls):
            raise ValueError("an address stands there twice")
        return urls

    @model_validator(mode="after")
    def _hints_to_whoever_understands(self) -> "Tier":
        model = str(self.served_model or "")  # what it is not is said by the backend
        if self.breakpoints and "claude" not in model:
            raise ValueError(
                "breakpoints are for Anthropic's models, whose names have claude in them, not for "
                f"{model or 'a tier without a model'}"
            )
        other = self.backend != "openai_http" and "/" in model and not model.startswith(_OPENAI)
        if self.cache_key and (self.launch or not model or other):
            raise ValueError(
                "cache_key is for OpenAI's models: litellm_api with openai/... or azure/..., or "
                "openai_http with the url of a server that knows prompt_cache_key"
            )
        return self
