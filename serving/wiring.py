"""The composition root: turns a configuration into objects. The one file that knows them all.

Every fault is a ConfigError whose `param` is the dotted path of the key at fault.
"""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cascade.asking.rubric import load as load_question
from cascade.calibration import MonotoneMap, load_map
from cascade.early import growing
from cascade.errors import ConfigError
from cascade.experiments import Arm, Experiment
from cascade.policies.registry import POLICIES
from cascade.posterior import Model
from cascade.protocols import DifficultyEstimator, Embedder, Judge, RoutingPolicy
from cascade.registry import load
from cascade.snapshot import Snapshot
from cascade.tiers import ModelTier
from classifiers.llm import FOLDER
from classifiers.registry import EMBEDDERS, ESTIMATORS
from judges.calibrated import CalibratedJudge
from judges.fitted import Manifest
from judges.panel import PanelJudge
from judges.registry import JUDGES
from judges.rubrics import load as load_rubric
from judges.rules import TierRules
from serving import config as cfg
from serving.beliefs import believing
from serving.experiment_wiring import ExperimentWiring
from serving.factories import at, build
from serving.identities import prices_version
from serving.posteriors import Surroundings
from serving.prewarm.recorded import POLICY as PREWARM
from serving.shadow.check import checked
from serving.tier_wiring import LAUNCHABLE, build_tier, launches

__all__ = ["LAUNCHABLE", "Wiring", "launches", "settings_of"]


class Wiring:
    """Builds a snapshot, each thing after the things it names.

    Args:
        config: what to build.
        base: folder that relative paths in the configuration start from.
        launched: by tier, `url` and `api_key` of the model servers that Cascade launches itself;
            none to only check a configuration, for which they need not run, and no embedding model
            needs to be loaded.
        around: what a tier becomes before anything else gets hold of it.
    """

    def __init__(
        self,
        config: cfg.Config,
        base: Path,
        launched: Mapping[str, Mapping[str, str]] | None = None,
        around: Callable[[ModelTier], ModelTier] = lambda tier: tier,
    ) -> None:
        self._config = config
        self._base = base
        self._serves = launched is not None
        self._launched = launched or {}
        self._around = around
        self._maps: dict[str, MonotoneMap] = {}
        self._tiers: dict[str, ModelTier] = {}
        self._embedders: dict[str, Embedder] = {}
        self._judges: dict[str, Judge] = {}
        self._building: list[str] = []
        self._warnings: list[str] = []

    def snapshot(self) -> Snapshot:
        """Everything, checked against everything it refers to.

        Raises:
            ConfigError: something cannot work.
        """
        config = self._config
        self._refuse_shared_names()
        launches(config)
        tiers = self._tiers = {
            name: self._around(build_tier(name, entry, self._launched.get(name)))
            for name, entry in config.tiers.items()
        }
        self._embedders = {n: self._embedder(n, entry) for n, entry in config.embedders.items()}
        for name in config.judges:
            self._judge(name, "judges")
        estimators = {name: self._estimator(name, e) for name, e in config.estimators.items()}
        arms = {name: self._policy_arm(name, e, estimators) for name, e in config.policies.items()}
        for name, arm in arms.items():
            self._check_steps(name, arm.policy, tiers)
            arms[name], doubts = believing(
                name, arm, tiers, Surroundings(config, self._base, self._judges)
            )
            self._warnings += doubts
        if config.shadow is not None:
            self._warnings += checked(config.shadow, tiers, self._judges, arms, config.judges)
        with at("rules"):
            rules = TierRules(
                [rule.model_dump(exclude_none=True) for rule in config.rules], list(tiers)
            )
        return Snapshot(
            version=config.version(self._fitted(estimators, arms)),
            prices_version=prices_version(tiers),
            tiers=tiers,
            judges=self._judges,
            arms=arms,
            experiments=self._experiments(arms, estimators),
            warnings=tuple(self._warnings),
            ruled_out=rules.removed,
        )

    def _experiments(
        self, arms: Mapping[str, Arm], estimators: Mapping[str, DifficultyEstimator]
    ) -> Mapping[str, Experiment]:
        among = Surroundings(self._config, self._base, self._judges)
        wiring = ExperimentWiring(arms, estimators, self._tiers, among)
        built = wiring.experiments()
        self._warnings += wiring.warnings
        return built

    def _fitted(
        self, estimators: Mapping[str, DifficultyEstimator], arms: Mapping[str, Arm]
    ) -> dict[str, Any]:
        """What can change a decision or a price and is not in the configuration itself."""
        config = self._config
        fitted: dict[str, Any] = {n: [list(m.x), list(m.y)] for n, m in self._maps.items()}
        fitted |= {
            f"model of {n}": judge.model.digest
            for n, judge in self._judges.items()
            if isinstance(judge, PanelJudge) and judge.model is not None
        }
        fitted |= {f"price of {n}": repr(self._tiers[n].prices) for n in config.priced_by_map}
        fitted |= {
            f"cache of {n}": repr(tier.cache)
            for n, tier in self._tiers.items()
            if tier.cache and config.tiers[n].cache is None
        }
        fitted |= {
            f"rubric of {n}": repr(load_rubric(judge.options["rubric"], self._base))
            for n, judge in config.judges.items()
            if judge.options.get("rubric")
        }
        fitted |= {
            f"rubric of estimator {n}": repr(load_question(e.options["rubric"], self._base, FOLDER))
            for n, e in config.estimators.items()
            if e.options.get("rubric")
        }
        fitted |= {
            f"model of estimator {n}": each.digest
            for n, each in estimators.items()
            if hasattr(each, "digest")
        }
        fitted |= {
            f"posterior of policy {n}": arm.posterior.digest
            for n, arm in arms.items()
            if isinstance(arm.posterior, Model)
        }
        return fitted

    def _refuse_shared_names(self) -> None:
        config = self._config
        seen = {PREWARM: "requests that only fill a cache"}
        for kind in ("tiers", "policies", "experiments"):
            for name in getattr(config, kind):
                if name in seen:
                    raise ConfigError(
                        f"the name is taken by {seen[name]}: a client's model field, and the log, "
                        "must say one thing only",
                        param=f"{kind}.{name}",
                    )
                seen[name] = kind

    def _judge(self, name: str, where: str) -> Judge:
        if name in self._judges:
            return self._judges[name]
        if name not in self._config.judges:
            raise ConfigError(_missing("judge", name, self._config.judges), param=where)
        if name in self._building:
            raise ConfigError(f"{name} is a member of itself", param=where)
        self._building.append(name)
        entry, here = self._config.judges[name], f"judges.{name}"
        with at(f"{here}.type"):
            factory = load(JUDGES, "judge", entry.type)
        judge: Judge = build(factory, here, entry.options, self._for_judge(name, factory))
        if entry.calibration is not None:
            with at(f"{here}.calibration"):
                fitted = self._maps[name] = load_map(self._base / entry.calibration)
                _refuse_foreign(fitted.fitted_for, settings_of(entry), "this judge")
            judge = CalibratedJudge(judge, self._maps[name])
        if isinstance(judge, PanelJudge) and judge.model is not None:
            with at(f"{here}.artifact"):
                self._check_fitted(entry, judge, judge.model.manifest)
        self._building.pop()
        self._judges[name] = judge
        return judge

    def _check_fitted(self, entry: cfg.Judge, panel: PanelJudge, manifest: Manifest) -> None:
        """A model only means something for the members and the models that it was fitted on."""
        has = {name: self._config.judges[name] for name in entry.members or ()}
        if has.keys() != manifest.members.keys():
            raise ConfigError(
                f"it was fitted on the members {', '.join(manifest.members)}, "
                f"this panel has {', '.join(has)}"
            )
        for name, member in has.items():
            _refuse_foreign(manifest.members[name], settings_of(member), f"its member {name}")
        for tier, model in manifest.models.items():
            if tier not in self._config.tiers:
                raise ConfigError(_missing("tier", tier, self._config.tiers))
            if (served := self._config.tiers[tier].served_model) != model:
                found = f"it was fitted on answers of {model}, and tier {tier} serves {served}"
                if panel.strict:
                    raise ConfigError(found)
                self._warnings.append(f"judge {panel.name}: {found}; its scores may mean nothing")

    def _for_judge(self, name: str, factory: Callable[..., Any]) -> dict[str, Any]:
        """What a judge gets besides its own options: its name, other judges, and what it takes."""
        entry, here = self._config.judges[name], f"judges.{name}"
        takes = inspect.signature(factory).parameters
        ours: dict[str, Any] = {"name": name}
        if entry.members is not None:
            ours["members"] = [
                self._judge(member, f"{here}.members.{i}") for i, member in enumerate(entry.members)
            ]
        if entry.of is not None:
            ours["of"] = self._judge(entry.of, f"{here}.of")
        ours |= self._embedder_of(entry, here)
        for option in ours.keys() - takes:
            raise ConfigError(
                f"unknown key: {entry.type} does not take it", param=f"{here}.{option}"
            )
        offered = {"tiers": self._tiers, "base": self._base}
        return ours | {option: value for option, value in offered.items() if option in takes}

    def _embedder(self, name: str, entry: cfg.Embedder) -> Embedder:
        from classifiers.embedder import BatchedEmbedder  # noqa: PLC0415 - numpy, if it is used

        where = f"embedders.{name}"
        with at(f"{where}.type"):
            factory = load(EMBEDDERS, "embedder", entry.type)
        takes = inspect.signature(factory).parameters
        ours = {"base": self._base} if "base" in takes else {}
        model = build(factory, where, entry.options, ours)
        if self._serves:
            with at(where):
                model.load()
        return BatchedEmbedder(
            model, most=entry.most, waiting=entry.waiting, cache_mib=entry.cache_mib
        )

    def _embedder_of(self, entry: cfg.Judge | cfg.Estimator, where: str) -> dict[str, Embedder]:
        """The embedder that an entry names, if it names one."""
        if entry.embedder is None:
            return {}
        if entry.embedder not in self._embedders:
            message = _missing("embedder", entry.embedder, self._config.embedders)
            raise ConfigError(message, param=f"{where}.embedder")
        return {"embedder": self._embedders[entry.embedder]}

    def _estimator(self, name: str, entry: cfg.Estimator) -> DifficultyEstimator:
        where = f"estimators.{name}"
        with at(f"{where}.type"):
            factory = load(ESTIMATORS, "estimator", entry.type)
        takes = inspect.signature(factory).parameters
        offered = {
            "name": name,
            "served": self._tiers,
            "base": self._base,
            "models": {tier: each.served_model for tier, each in self._config.tiers.items()},
        }
        ours = {option: value for option, value in offered.items() if option in takes}
        ours |= self._embedder_of(entry, where)
        if "embedder" in ours.keys() - takes:
            raise ConfigError(
                f"unknown key: {entry.type} does not take it", param=f"{where}.embedder"
            )
        estimator: DifficultyEstimator = build(factory, where, entry.options, ours)
        for warning in getattr(estimator, "warnings", ()):
            self._warnings.append(f"estimator {name}: {warning}")
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
        if entry.estimator is None and entry.options.get("when_unsure") is not None:
            raise ConfigError(
                "without an estimator there is no telling which request it is unsure of; name one "
                "as `estimator`, or leave this key out",
                param=f"{where}.when_unsure",
            )
        with at(f"{where}.type"):
            factory = load(POLICIES, "policy", entry.type)
        policy: RoutingPolicy = build(factory, where, entry.options, {"name": name})
        estimator = estimators[entry.estimator] if entry.estimator else None
        return Arm(name=None, policy=policy, estimator=estimator)

    def _check_steps(
        self, name: str, policy: RoutingPolicy, tiers: Mapping[str, ModelTier]
    ) -> None:
        where = f"policies.{name}"
        for i, step in enumerate(policy.steps):
            if step.tier not in tiers:
                raise ConfigError(_missing("tier", step.tier, tiers), param=where)
            if step.judge is not None:
                self._check_judge(step.judge, tiers[step.tier], where)
            if step.commit is not None:
                here, name = f"{where}.steps.{i}.commit", str(step.commit.judge or step.judge)
                self._check_judge(name, tiers[step.tier], here)
                self._refuse_unless_growing(name, here)

    def _check_judge(self, name: str, tier: ModelTier, where: str) -> None:
        needs = self._judge(name, where).needs
        if "logprobs" in needs and "logprobs" not in (tier.capabilities or ()):
            raise ConfigError(
                f"judge {name} needs log probabilities, which tier {tier.name} does not "
                f"give (add logprobs to its capabilities if it does)",
                param=where,
            )

    def _refuse_unless_growing(self, name: str, where: str) -> None:
        if growing(self._judge(name, where)):
            return
        members = self._config.judges[name].members or ()
        unable = [member for member in members if not growing(self._judge(member, where))]
        raise ConfigError(
            f"judge {name} cannot look at an answer that is still growing"
            f"{f' (its {unable[0]} cannot)' if unable else ''}; name one as `judge` that can: of "
            "the type logprob, or a panel of nothing but such",
            param=where,
        )


def settings_of(entry: cfg.Judge) -> dict[str, Any]:
    """A judge's type and its options as they are in force, defaults included."""
    known = inspect.signature(load(JUDGES, "judge", entry.type)).parameters.values()
    ours = {"name", "members", "of", "embedder", "tiers", "base"}
    settings = {p.name: p.default for p in known if p.name not in ours} | entry.options
    # As JSON has them, which is what an artifact kept of them.
    listed = {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}
    return {"type": entry.type, **listed}


def _refuse_foreign(fitted_for: Mapping[str, Any], settings: Mapping[str, Any], whose: str) -> None:
    """What was fitted only means something for the scores that it was fitted on."""
    for option, value in fitted_for.items():
        has = settings.get(option)
        if has != value:
            raise ConfigError(f"it was fitted for {option} {value!r}, {whose} has {has!r}")


def _missing(kind: str, name: str, known: Mapping[str, Any]) -> str:
    there = ", ".join(known) or "none"
    return f"there is no {kind} {name!r}; there are: {there}"
