"""The composition root: turns a configuration into objects. The one file that knows them all.

Every fault is a ConfigError whose `param` is the dotted path of the key at fault.
"""

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cascade.backends.registry import BACKENDS
from cascade.calibration import MonotoneMap, load_map
from cascade.errors import ConfigError
from cascade.experiments import Arm, Experiment
from cascade.policies.registry import POLICIES
from cascade.pricing import PriceCard, Rates
from cascade.protocols import DifficultyEstimator, Judge, RoutingPolicy
from cascade.registry import load
from cascade.snapshot import Snapshot
from cascade.tiers import Limits, ModelTier
from classifiers.registry import ESTIMATORS
from judges.calibrated import CalibratedJudge
from judges.registry import JUDGES
from serving import config as cfg
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
        options = entry.options
        if entry.launch is not None:
            if entry.backend != LAUNCHABLE or "url" in options:
                raise ConfigError(
                    f"a launched model needs backend {LAUNCHABLE} and no url", param=where
                )
            options |= {"url": "", "model": _launch(name, entry.launch).alias}
            options |= self._launched.get(name, {})
        if entry.api_key_env is not None:
            options["api_key"] = _secret(entry.api_key_env, where)
        return ModelTier(
            name=name,
            backend=_build(BACKENDS, "backend", entry.backend, where, options, key="backend"),
            prices=_card(entry.price),
            limits=Limits(context_tokens=entry.context_tokens, output_tokens=entry.output_tokens),
            capabilities=frozenset(entry.capabilities),
        )

    def _judge(self, name: str, where: str) -> Judge:
        if name in self._judges:
            return self._judges[name]
        if name not in self._config.judges:
            raise ConfigError(_missing("judge", name, self._config.judges), param=where)
        if name in self._building:
            raise ConfigError(f"{name} is a member of itself", param=where)
        self._building.append(name)
        entry, here = self._config.judges[name], f"judges.{name}"
        options = {"name": name, **entry.options}
        if entry.members is not None:
            options["members"] = [
                self._judge(member, f"{here}.members.{i}") for i, member in enumerate(entry.members)
            ]
        judge: Judge = _build(JUDGES, "judge", entry.type, here, options)
        if entry.calibration is not None:
            with _at(f"{here}.calibration"):
                self._maps[name] = load_map(self._base / entry.calibration)
            judge = CalibratedJudge(judge, self._maps[name])
        self._building.pop()
        self._judges[name] = judge
        return judge

    def _estimator(self, name: str, entry: cfg.Estimator) -> DifficultyEstimator:
        where = f"estimators.{name}"
        options = {"name": name, **entry.options}
        estimator: DifficultyEstimator = _build(ESTIMATORS, "estimator", entry.type, where, options)
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
        policy = _build(POLICIES, "policy", entry.type, where, {"name": name, **entry.options})
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
            if "logprobs" in needs and "logprobs" not in tiers[step.tier].capabilities:
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


def _build(  # noqa: PLR0917
    registry: Mapping[str, str],
    kind: str,
    name: str,
    where: str,
    options: Mapping[str, Any],
    key: str = "type",
) -> Any:
    """Call a registered factory with options from the configuration, naming the key at fault."""
    with _at(f"{where}.{key}"):
        factory = load(registry, kind, name)
    parameters = inspect.signature(factory).parameters
    if unknown := [option for option in options if option not in parameters]:
        raise ConfigError(
            f"unknown key: a {kind} of type {name} takes {_options_of(parameters)}",
            param=f"{where}.{unknown[0]}",
        )
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in options:
            raise ConfigError(f"the key {parameter.name} is missing", param=where)
    with _at(where):
        return factory(**options)


def _options_of(parameters: Mapping[str, inspect.Parameter]) -> str:
    return ", ".join(name for name in parameters if name != "name") or "no options"


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Put the path of what is being built in front of a fault's own."""
    try:
        yield
    except ConfigError as error:
        path = f"{where}.{error.param}" if error.param else where
        raise ConfigError(error.message, param=path) from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a value of the wrong kind: {error}", param=where) from None


def launches(config: cfg.Config) -> list[Launch]:
    """The model servers that a configuration wants to be run."""
    return [
        _launch(name, tier.launch) for name, tier in config.tiers.items() if tier.launch is not None
    ]


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
