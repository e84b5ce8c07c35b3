"""Builds tiers: a backend with what guards it, its price card, its claims, and what is launched.

A part of the composition root, with `wiring`, which puts the tiers to use.
"""

import hashlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cascade.backends.litellm_prices import cache_of, card_of
from cascade.backends.registry import BACKENDS
from cascade.backends.wrappers.breaker import CoolDown, CoolingBackend
from cascade.backends.wrappers.counted import CountedBackend
from cascade.backends.wrappers.limit import LimitedBackend, Limits
from cascade.backends.wrappers.retry import Retries, RetryingBackend
from cascade.caches import CacheCard
from cascade.errors import ConfigError
from cascade.pricing import PriceCard, Rates
from cascade.protocols import Backend
from cascade.registry import load
from cascade.tiers import ModelTier
from serving import tier_config as cfg
from serving.config import Config
from serving.factories import at, build
from serving.models.catalogue import lookup
from serving.models.launch import Launch
from serving.replica_wiring import Guards, Server, guarded_by, replicated
from serving.warming import keeping_warm

LAUNCHABLE = "openai_http"
MARK_SECONDS = {"5m": 300.0, "1h": 3600.0}


def build_tier(name: str, entry: cfg.Tier, address: Mapping[str, str] | None) -> ModelTier:
    """The tier of an entry in the configuration.

    Args:
        name: what it is called.
        entry: its keys.
        address: `url` and `api_key` of its model's server if Cascade launches that and it is known.

    Raises:
        ConfigError: it cannot work.
    """
    where = f"tiers.{name}"
    ours = {} if entry.launch is None else _launched_options(name, entry, address)
    ours |= _secrets(entry, where)
    with at(f"{where}.backend"):
        factory = load(BACKENDS, "backend", entry.backend)

    def server(url: str | None = None) -> Server:
        there = {} if url is None else {"url": url}
        backend: Backend = build(factory, where, entry.options, ours | there)
        return guarded_by(*_guarded(backend, entry), backend.tokenizer)

    cache = _cache(entry)
    asked = (
        replicated(entry.replicas, server, where, rule=entry.replica_rule, cached=cache is not None)
        if entry.replicas
        else server()
    )
    with at(f"{where}.price"):
        prices = _written_as_marked(_card(entry), entry)
    with at(where):
        warmed = keeping_warm(_retrying(asked.backend, entry), entry, cache)
    return ModelTier(
        name=name,
        backend=warmed,
        prices=prices,
        capabilities=None if entry.capabilities is None else frozenset(entry.capabilities),
        context_tokens=entry.window,
        output_tokens=entry.output_tokens,
        accepts=frozenset(entry.accepts),
        tokenizer=asked.tokenizer,
        recovered=asked.recovered,
        cooling=asked.cooling,
        cache=cache,
        salted=entry.salt_tenants,
        replicated=bool(entry.replicas),
        watch=asked.watch,
        loads=asked.loads,
    )


def _launched_options(
    name: str, entry: cfg.Tier, address: Mapping[str, str] | None
) -> dict[str, Any]:
    where = f"tiers.{name}"
    if entry.launch is None or entry.backend != LAUNCHABLE or "url" in entry.options:
        raise ConfigError(f"a launched model needs backend {LAUNCHABLE} and no url", param=where)
    with at(f"{where}.launch.model"):
        launch = _launch(name, entry.launch)
        if not launch.model.endswith(".gguf"):
            lookup(launch.model)
    # A configuration is also checked while no server runs that would have an address.
    address = address or {"url": "http://127.0.0.1/v1"}
    counts = {} if "tokenizer" in entry.options else {"tokenizer": entry.launch.engine}
    return {**address, **counts, "model": launch.alias}


def _guarded(backend: Backend, entry: cfg.Tier) -> tuple[Backend, Guards]:
    """A server's backend behind its limit and its cool-down, and these themselves."""
    # Inside the limit: a call holds a slot while it is asked, not while it waits to be retried.
    # Around it the cool-down: while it lasts nobody queues.
    limited: LimitedBackend | None = None
    circuit: CoolingBackend | None = None
    if entry.limits is not None:
        backend = limited = LimitedBackend(backend, Limits(**entry.limits.model_dump()))
    if entry.cooldown is not None:
        backend = circuit = CoolingBackend(backend, CoolDown(**entry.cooldown.model_dump()))
    counting: LimitedBackend | CoolingBackend | CountedBackend | None = limited or circuit
    if counting is None:  # nothing that is there anyway counts its calls
        backend = counting = CountedBackend(backend)
    return backend, Guards(counting.load, circuit)


def _retrying(backend: Backend, entry: cfg.Tier) -> Backend:
    """The backend, asked again where that may help."""
    # Outermost: every try counts for the cool-down, whose beginning ends the tries of all calls,
    # and a probe is one try.
    if entry.retry is None:
        return backend
    return RetryingBackend(backend, Retries(**entry.retry.model_dump()))


def launches(config: Config) -> list[Launch]:
    """The model servers that a configuration wants to be run.

    Raises:
        ConfigError: two want the same port.
    """
    wanted = [
        _launch(name, tier.launch) for name, tier in config.tiers.items() if tier.launch is not None
    ]
    ports: dict[int, str] = {}
    for launch in wanted:
        if launch.port is not None and ports.setdefault(launch.port, launch.tier) != launch.tier:
            raise ConfigError(
                f"port {launch.port} is also that of {ports[launch.port]}",
                param=f"tiers.{launch.tier}.launch.port",
            )
    return wanted


def kv_bytes_per_token(config: Config) -> dict[str, int]:
    """Memory of a cached token, of the tiers whose models say it."""
    models = {name: tier.launch.model for name, tier in config.tiers.items() if tier.launch}
    return {
        name: lookup(model).kv_bytes_per_token
        for name, model in models.items()
        if not model.endswith(".gguf")
    }


def _launch(tier: str, entry: cfg.Launch) -> Launch:
    return Launch(tier=tier, **entry.model_dump(exclude={"engine"}))


def _card(entry: cfg.Tier) -> PriceCard | None:
    price = entry.price
    if price is None:
        return None
    if price == cfg.FROM_MAP:
        return card_of(entry.options["model"])
    if isinstance(price, cfg.MapPrice):
        return card_of(price.litellm)
    if isinstance(price, cfg.GpuPrice):
        return PriceCard.from_gpu(
            usd_per_hour=price.gpu_usd_per_hour,
            prefill_tokens_per_second=price.prefill_tokens_per_second,
            cached_tokens_per_second=price.cached_tokens_per_second,
            decode_tokens_per_second=price.decode_tokens_per_second,
        )
    longer = sorted(price.long_prompts, key=lambda rates: rates.above)
    return PriceCard(
        rates=_rates(price), long_prompt_rates=[(rates.above, _rates(rates)) for rates in longer]
    )


def _written_as_marked(card: PriceCard | None, entry: cfg.Tier) -> PriceCard | None:
    """The card, which says for how long prompts are written where the tier's marks say so."""
    if card is None or entry.breakpoints is None:
        return card
    return replace(card, kept_for=entry.breakpoints.ttl)


def _rates(price: cfg.TokenPrice | cfg.LongPrompt) -> Rates:
    return Rates(
        input=price.input,
        cache_read=price.cache_read,
        cache_write=price.cache_write,
        output=price.output,
    )


def _cache(entry: cfg.Tier) -> CacheCard | None:
    """How the tier's servers keep prompts: as stated, else as its launch or litellm's map says."""
    cache = entry.cache
    if cache is None or cache == "slots":
        return _known_cache(entry)
    if isinstance(cache, cfg.BlockCache):
        return CacheCard(kind="blocks", block=cache.blocks, capacity_tokens=cache.capacity_tokens)
    if isinstance(cache, cfg.SlotCache):
        return CacheCard(kind="slots", slots=cache.slots, capacity_tokens=cache.capacity_tokens)
    if isinstance(cache, cfg.TtlCache):
        return CacheCard(
            kind="ttl", ttl_seconds=cache.ttl, minimum_tokens=cache.minimum, block=cache.step
        )
    return None


def _known_cache(entry: cfg.Tier) -> CacheCard | None:
    if (launch := entry.launch) is not None:
        return CacheCard(kind="slots", slots=launch.slots, capacity_tokens=_kept_besides(launch))
    model = entry.options.get("model")  # held against what the backend takes where that is built
    if entry.backend != "litellm_api" or not isinstance(model, str):
        return None
    cache = cache_of(model)
    if cache is None or not cache.marked:
        return cache
    if entry.breakpoints is not None:
        # What a request is sent with is then marked up to its end.
        return replace(cache, ttl_seconds=MARK_SECONDS[entry.breakpoints.ttl], marked=False)
    # Without marks the provider keeps nothing; clients set their own where the tier takes them.
    return cache if "cache_control" in entry.accepts else None


def _kept_besides(launch: cfg.Launch) -> int | None:
    """Tokens that fit into the memory for prompts without a slot; None where that is not known."""
    if launch.model.endswith(".gguf"):
        return None
    return (launch.cache_ram_mib << 20) // lookup(launch.model).kv_bytes_per_token or None


def _secrets(entry: cfg.Tier, where: str) -> dict[str, Any]:
    """Backend options that no file may hold.

    Raises:
        ConfigError: the file holds one, or a variable that it names is not set.
    """
    for key in ("api_key", "salt_key"):
        if key in entry.options:
            raise ConfigError(
                "a key does not belong in a file: put it into an environment variable and name "
                f"that with {key}_env",
                param=f"{where}.{key}",
            )
    found: dict[str, Any] = {}
    if entry.api_key_env is not None:
        found["api_key"] = _secret(entry.api_key_env, f"{where}.api_key_env")
    if entry.salt_key_env is not None:
        secret = _secret(entry.salt_key_env, f"{where}.salt_key_env")
        found["salt_key"] = hashlib.sha256(secret.encode()).digest()
    elif entry.salt_tenants:
        found["salt_key"] = secrets.token_bytes(32)
    return found


def _secret(variable: str, where: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"the environment variable {variable} is not set", param=where)
    return value
