"""What is asked: one experiment, over some time, with one arm that the others are held against."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from serving.config import Config
from serving.experiment_config import Experiment

CONTROL: Final = "control"
"""What the control arm is called; without such an arm it is the first."""

UNIT_COLUMNS: Final[Mapping[str, str]] = {
    "session": "session",
    "tenant": "tenant",
    "user": "end_user",
}
"""By what is sticky, the column that has it on every request, also before the experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An experiment as its results need it.

    Attributes:
        name: of the experiment.
        control: the arm that the others are held against.
        weights: by arm, its share of the units; shares are not checked without any.
        unit: what is sticky: session, tenant, user, request, or header:NAME.
        since: seconds since the epoch from which on requests count; None: from the first.
        until: seconds since the epoch before which they count; None: to the last.
        margin: by how much an arm's quality may be lower and still count as no worse.
        guardrails: by what, the bound at which an arm is turned off; see `guardrails`.
        acting: judges by whose word some arm is known to act.
    """

    name: str
    control: str
    weights: Mapping[str, float] = field(default_factory=dict)
    unit: str = "session"
    since: float | None = None
    until: float | None = None
    margin: float = 0.01
    guardrails: Mapping[str, float] = field(default_factory=dict)
    acting: frozenset[str] = frozenset()


def trial_of(name: str, entry: Experiment, config: Config | None = None) -> Trial:
    """The experiment, as the configuration has it.

    Args:
        name: of the experiment.
        entry: its part of the configuration.
        config: all of it, which says by whose word the policies act; without it only the log does.
    """
    policies = [arm.policy for arm in entry.arms.values()]
    return Trial(
        name=name,
        control=CONTROL if CONTROL in entry.arms else next(iter(entry.arms)),
        weights=dict(entry.terms.weights),
        unit=entry.unit,
        margin=entry.margin,
        guardrails=entry.guardrails.model_dump(exclude_none=True),
        acting=frozenset(_acting(config, policies) if config else ()),
    )


def _acting(config: Config, policies: Iterable[str]) -> set[str]:
    """The judges that policies name, and those that these ask."""
    found: set[str] = set()
    waiting = [
        word
        for name in policies
        if name in config.policies
        for word in _words(config.policies[name].options)
    ]
    while waiting:
        word = waiting.pop()
        if word in config.judges and word not in found:
            found.add(word)
            judge = config.judges[word]
            waiting += [*(judge.members or ()), *([judge.of] if judge.of else ())]
    return found


def _words(options: Any) -> Iterator[str]:
    """Every text in the options of a policy, wherever it stands."""
    if isinstance(options, str):
        yield options
    elif isinstance(options, Mapping):
        for value in options.values():
            yield from _words(value)
    elif isinstance(options, Iterable):
        for value in options:
            yield from _words(value)
