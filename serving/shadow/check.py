"""Refuses what of the configuration's shadow calls cannot work."""

from collections.abc import Iterable, Mapping, Sequence

from cascade.errors import ConfigError
from cascade.experiments import Arm
from cascade.protocols import Judge
from cascade.tiers import ModelTier
from serving import config as cfg

ALL = "all"


def tiers_of(entry: cfg.Shadow, tiers: Mapping[str, ModelTier]) -> Sequence[str]:
    """The tiers that may be asked, in the order of the configuration."""
    return [name for name in tiers if entry.tiers == ALL or name in entry.tiers]


def tiers_asked(judges: Mapping[str, cfg.Judge], name: str) -> frozenset[str]:
    """The tiers that a judge asks by name, its members and the judges that it looks at included."""
    entry = judges[name]
    named = (entry.options.get(option) for option in ("tier", "against"))
    found = frozenset(tier for tier in named if isinstance(tier, str))
    inner = [*(entry.members or ()), *([entry.of] if entry.of else ())]
    return found.union(*(tiers_asked(judges, each) for each in inner))


def checked(
    entry: cfg.Shadow,
    tiers: Mapping[str, ModelTier],
    judges: Mapping[str, Judge],
    arms: Mapping[str, Arm],
    entries: Mapping[str, cfg.Judge],
) -> list[str]:
    """What may not work as it was meant.

    Args:
        entry: of the shadow calls.
        tiers: by name.
        judges: by name, as they were built.
        arms: by the policy's name.
        entries: the judges' own, by name.

    Raises:
        ConfigError: a tier or a judge is not there, a tier that is asked, be it by a judge, has no
            price by which it could be held to the budget, or a judge cannot judge what a tier
            answers.
    """
    for i, name in enumerate([] if entry.tiers == ALL else entry.tiers):
        if name not in tiers:
            raise ConfigError(_missing("tier", name, tiers), param=f"shadow.tiers.{i}")
    for i, name in enumerate(entry.judges):
        if name not in judges:
            raise ConfigError(_missing("judge", name, judges), param=f"shadow.judges.{i}")
    for name in tiers_of(entry, tiers):
        _check_tier(tiers[name], [judges[each] for each in entry.judges])
    for name in entry.judges:
        _check_prices(name, tiers_asked(entries, name).intersection(tiers), tiers)
    return [
        f"shadow: judge {name} is acted on by policy {policy}; what it says of that policy's "
        "answers is no independent sign of their quality"
        for policy, arm in arms.items()
        for name in dict.fromkeys(step.judge for step in arm.policy.steps)
        if name in entry.judges
    ]


def _check_tier(tier: ModelTier, judges: Sequence[Judge]) -> None:
    if tier.prices is None:
        raise ConfigError(
            "it has no price, so shadow calls to it cannot be held to shadow.usd_per_day; state "
            "one, or leave the tier out of shadow.tiers",
            param=f"tiers.{tier.name}.price",
        )
    for judge in judges:
        if "logprobs" in judge.needs and "logprobs" not in (tier.capabilities or ()):
            raise ConfigError(
                f"judge {judge.name} needs log probabilities, which tier {tier.name} does not give",
                param="shadow.judges",
            )


def _check_prices(judge: str, asked: Iterable[str], tiers: Mapping[str, ModelTier]) -> None:
    for name in sorted(asked):
        if tiers[name].prices is None:
            raise ConfigError(
                f"it has no price, and judge {judge} asks it, so what shadow.judges cost cannot be "
                "held to shadow.usd_per_day; state one, or leave the judge out of shadow.judges",
                param=f"tiers.{name}.price",
            )


def _missing(kind: str, name: str, known: Mapping[str, object]) -> str:
    return f"there is no {kind} {name!r}; there are: {', '.join(known) or 'none'}"
