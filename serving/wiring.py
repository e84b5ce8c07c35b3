"""The composition root: turns a configuration into objects. The one file that knows them all.

Every fault is a ConfigError whose `param` is the dotted path of the key at fault.
"""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cascade.backends.registry import BACKENDS
from cascade.backends.wrappers.breaker import CoolDown, CoolingBackend
from cascade.backends.wrappers.limit import LimitedBackend, Limits
from cascade.backends.wrappers.retry import Retries, RetryingBackend
from cascade.calibration import MonotoneMap, load_map
from cascade.errors import ConfigError
from cascade.experiments import Arm, Experiment
from cascade.policies.registry import POLICIES
from cascade.pricing import PriceCard, Rates
from cascade.protocols import Backend, DifficultyEstimator, Judge, RoutingPolicy
from cascade.registry import load
from cascade.snapshot import Snapshot
from cascade.tiers import ModelTier
from classifiers.registry import ESTIMATORS
from judges.calibrated import CalibratedJudge
from judges.registry import JUDGES
from serving import config as cfg
from serving.models.catalogue import lookup
from serving.models.launch import Launch

LAUNCHABLE = "openai_http"


class Wiring:
    """Builds a snapshot, each thing after the things it names.

    Args:
        config: what to build.
        base: folder that relative paths in the configuration start from.
        launched: by tier, `url` and `api_key` of the model servers that Cascade launches itself;
            none to only check a configuration, for which they need not run.
    """

    def __init__(
        self,
        config: cfg.Config,
        base: Path,
        launched: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._config = config
        self._base = base
        self._launched = launched or {}
        self._maps: dict[str, MonotoneMap] = {}
        self._judges: dict[str, Judge] = {}
        self._building: list[str] = []

    def snapshot(self) -> Snapshot:
        """Everything, checked against everything it refers to.

        Raises:
            ConfigError: something cannot work.
        """
        config = self._config
        self._refuse_shared_names()
        launches(config)
        tiers = {name: self._tier(name, entry) for name, entry in config.tiers.items()}
        for name in config.judges:
            self._judge(name, "judges")
        estimators = {name: self._estimator(name, e) for name, e in config.estimators.items()}
        arms = {name: self._policy_arm(name, e, estimators) for name, e in config.policies.items()}
        for name, arm in arms.items():
            self._check_steps(name, arm.policy, tiers)
        fitted = {name: [list(m.x), list(m.y)] for name, m in self._maps.items()}
        return Snapshot(
            version=config.version(fitted),
            tiers=tiers,
            judges=self._judges,
            arms=arms,
            experiments={n: self._experiment(n, e, arms) for n, e in config.experiments.items()},
        )

    def _refuse_shared_names(self) -> None:
        config = self._config
        seen: dict[str, str] = {}
        for kind in ("tiers", "policies", "experiments"):
            for name in getattr(config, kind):
                if name in seen:
                    raise ConfigError(
                        f"the name is taken by {seen[name]}: a client's model field must say one "
                        "thing only",
                        param=f"{kind}.{name}",
                    )
                seen[name] = kind

    def _tier(self, name: str, entry: cfg.Tier) -> ModelTier:
        where = f"tiers.{name}"
        if "api_key" in entry.options:
            raise ConfigError(
                "a key does not belong in a file: put it into an environment variable and name "
                "that with api_key_env",
                param=f"{where}.api_key",
            )
        ours: dict[str, Any] = {}
        if entry.launch is not None:
            ours = self._launched_options(name, entry)
        if entry.api_key_env is not None:
            ours["api_key"] = _secret(entry.api_key_env, where)
        with _at(f"{where}.backend"):
            factory = load(BACKENDS, "backend", entry.backend)
        return ModelTier(
            name=name,
            backend=_guarded(_build(factory, where, entry.options, ours), entry),
            prices=_card(entry.price),
            capabilities=None if entry.capabilities is None else frozenset(entry.capabilities),
            context_tokens=entry.window,
            output_tokens=entry.output_tokens,
            accepts=frozenset(entry.accepts),
        )

    def _launched_options(self, name: str, entry: cfg.Tier) -> dict[str, Any]:
        where = f"tiers.{name}"
        if entry.launch is None or entry.backend != LAUNCHABLE or "url" in entry.options:
            raise ConfigError(
                f"a launched model needs backend {LAUNCHABLE} and no url", param=where
            )
        with _at(f"{where}.launch.model"):
            launch = _launch(name, entry.launch)
            if not launch.model.endswith(".gguf"):
                lookup(launch.model)
        # A configuration is also checked while no server runs that would have an address.
        address = self._launched.get(name, {"url": "http://127.0.0.1/v1"})
        return {**address, "model": launch.alias}

    def _judge(self, name: str, where: str) -> Judge:
        if name in self._judges:
            return self._judges[name]
        if name not in self._config.judges:
            raise ConfigError(_missing("judge", name, self._config.judges), param=where)
        if name in self._building:
            raise ConfigError(f"{name} is a member of itself", param=where)
        self._building.append(name)
        entry, here = self._config.judges[name], f"judges.{name}"
        ours: dict[str, Any] = {"name": name}
        if entry.members is not None:
            ours["members"] = [
                self._judge(member, f"{here}.members.{i}") for i, member in enumerate(entry.members)
            ]
        with _at(f"{here}.type"):
            factory = load(JUDGES, "judge", entry.type)
        judge: Judge = _build(factory, here, entry.options, ours)
        if entry.calibration is not None:
            with _at(f"{here}.calibration"):
                fitted = self._maps[name] = load_map(self._base / entry.calibration)
                _refuse_foreign(fitted, {"type": entry.type, **_settings(factory, entry.options)})
            judge = CalibratedJudge(judge, self._maps[name])
        self._building.pop()
        self._judges[name] = judge
        return judge

    def _estimator(self, name: str, entry: cfg.Estimator) -> DifficultyEstimator:
        where = f"estimators.{name}"
        with _at(f"{where}.type"):
            factory = load(ESTIMATORS, "estimator", entry.type)
        estimator: DifficultyEstimator = _build(factory, where, entry.options, {"name": name})
        for tier in entry.options.get("tiers", ()):
            if tier not in self._config.tiers:
                message = _missing("tier", tier, self._config.tiers)
                raise ConfigError(message, param=f"{where}.tiers.{tier}")
        return estimator

    def _policy_arm(
        self, name: str, entry: cfg.Policy, estimators: Mapping[str, DifficultyEstimator]
    ) -> Arm:
        where = f"policies.{name}"
        if entry.estimator is not None and entry.estimator not in estimators:
            message = _missing("estimator", entry.estimator, estimators)
            raise ConfigError(message, param=f"{where}.estimator")
        with _at(f"{where}.type"):
            factory = load(POLICIES, "policy", entry.type)
        policy: RoutingPolicy = _build(factory, where, entry.options, {"name": name})
        estimator = estimators[entry.estimator] if entry.estimator else None
        return Arm(name=None, policy=policy, estimator=estimator)

    def _check_steps(
        self, name: str, policy: RoutingPolicy, tiers: Mapping[str, ModelTier]
    ) -> None:
        where = f"policies.{name}"
        for step in policy.steps:
            if step.tier not in tiers:
                raise ConfigError(_missing("tier", step.tier, tiers), param=where)
            if step.judge is None:
                continue
            needs = self._judge(step.judge, where).needs
            if "logprobs" in needs and "logprobs" not in (tiers[step.tier].capabilities or ()):
                raise ConfigError(
                    f"judge {step.judge} needs log probabilities, which tier {step.tier} does not "
                    f"give (add logprobs to its capabilities if it does)",
                    param=where,
                )

    def _experiment(
        self, name: str, entry: cfg.Experiment, policies: Mapping[str, Arm]
    ) -> Experiment:
        arms = []
        for arm, setting in entry.arms.items():
            if setting.policy not in policies:
                message = _missing("policy", setting.policy, policies)
                raise ConfigError(message, param=f"experiments.{name}.arms.{arm}.policy")
            chosen = policies[setting.policy]
            arms.append(
                Arm(
                    name=arm,
                    policy=chosen.policy,
                    estimator=chosen.estimator,
                    weight=setting.weight,
                    experiment=name,
                )
            )
        return Experiment(name=name, arms=arms, salt=entry.salt, unit=entry.unit)


def _build(
    factory: Callable[..., Any], where: str, given: Mapping[str, Any], ours: Mapping[str, Any]
) -> Any:
    """Call a registered factory, naming the key at fault.

    Args:
        factory: a class, whose annotations say what each option may be.
        where: path of the entry.
        given: options from the configuration, held against the annotations.
        ours: further arguments, which a configuration cannot give.
    """
    parameters = inspect.signature(factory).parameters
    takes = [name for name in parameters if name not in ours]
    for option in given:
        if option not in takes:
            known = ", ".join(takes) or "no options"
            raise ConfigError(f"unknown key: it takes {known}", param=f"{where}.{option}")
    hints = get_type_hints(factory.__init__)
    for option, value in given.items():
        _check_type(hints[option], value, f"{where}.{option}")
    for name in takes:
        if parameters[name].default is inspect.Parameter.empty and name not in given:
            raise ConfigError(f"the key {name} is missing", param=where)
    with _at(where):
        return factory(**given, **ours)


def _guarded(backend: Backend, entry: cfg.Tier) -> Backend:
    """The backend behind its limit, its cool-down and its retries."""
    # Innermost the limit: a call holds a slot while it is asked, not while it waits to be retried.
    # Around it the cool-down: while it lasts nobody queues. Outermost the retries: every try counts
    # for the cool-down, whose beginning ends the tries of all calls, and a probe is one try.
    if entry.limits is not None:
        backend = LimitedBackend(backend, Limits(**entry.limits.model_dump()))
    if entry.cooldown is not None:
        backend = CoolingBackend(backend, CoolDown(**entry.cooldown.model_dump()))
    if entry.retry is not None:
        backend = RetryingBackend(backend, Retries(**entry.retry.model_dump()))
    return backend


def _settings(factory: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A factory's options as they are in force, defaults included."""
    parameters = inspect.signature(factory).parameters.values()
    return {each.name: each.default for each in parameters} | dict(given)


def _refuse_foreign(fitted: MonotoneMap, settings: Mapping[str, Any]) -> None:
    """A map only means something for the scores that it was fitted on."""
    for option, value in fitted.fitted_for.items():
        has = settings.get(option)
        if has != value:
            raise ConfigError(f"the map was fitted for {option} {value!r}, this judge has {has!r}")


def _check_type(hint: Any, value: Any, where: str) -> None:
    adapter = TypeAdapter[Any](hint, config=ConfigDict(arbitrary_types_allowed=True))
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        raise ConfigError(error.errors(include_url=False)[0]["msg"], param=where) from None


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Put the path of what is being built in front of a fault's own."""
    try:
        yield
    except ConfigError as error:
        path = f"{where}.{error.param}" if error.param else where
        raise ConfigError(error.message, param=path) from None


def launches(config: cfg.Config) -> list[Launch]:
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


def _launch(tier: str, entry: cfg.Launch) -> Launch:
    return Launch(tier=tier, **entry.model_dump(exclude={"engine"}))


def _card(price: cfg.TokenPrice | cfg.GpuPrice | None) -> PriceCard | None:
    if price is None:
        return None
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


def _rates(price: cfg.TokenPrice | cfg.LongPrompt) -> Rates:
    return Rates(
        input=price.input,
        cache_read=price.cache_read,
        cache_write=price.cache_write,
        output=price.output,
    )


def _secret(variable: str, where: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(
            f"the environment variable {variable} is not set", param=f"{where}.api_key_env"
        )
    return value


def _missing(kind: str, name: str, known: Mapping[str, Any]) -> str:
    there = ", ".join(known) or "none"
    return f"there is no {kind} {name!r}; there are: {there}"
