"""What of an experiment may change while it runs, and how a change is read and refused.

Times are seconds since the epoch here, and ISO 8601 with an offset from UTC wherever a person or a
file states them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from cascade.errors import ConfigError

_FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""Between these a time can be written as a date."""


class Timed(Protocol):
    """What can be off, begin and end."""

    @property
    def enabled(self) -> bool:
        """Not off."""
        ...

    @property
    def start(self) -> float | None:
        """Seconds since the epoch; None: from the beginning."""
        ...

    @property
    def end(self) -> float | None:
        """Seconds since the epoch; None: for good."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What of an experiment may change while it runs.

    Attributes:
        enabled: off: nobody is in.
        ramp: share of its units that are in, from 0 to 1.
        weights: of each arm.
        start: nobody is in before, in seconds since the epoch; None: from the beginning.
        end: nobody is in from then on; None: for good.

    Raises:
        ConfigError: on construction, when they cannot be; `param` is the one at fault.
    """

    enabled: bool = True
    ramp: float = 1.0
    weights: Mapping[str, float]
    start: float | None = None
    end: float | None = None

    def __post_init__(self) -> None:
        _check_share("ramp", self.ramp)
        for arm, weight in self.weights.items():
            if not 0 <= weight < math.inf:
                raise ConfigError("a weight is a number from 0 on", param=f"weights.{arm}")
        if not any(weight > 0 for weight in self.weights.values()):
            raise ConfigError("at least one arm needs a weight above 0", param="weights")
        if None not in (self.start, self.end) and not self.start < self.end:  # type: ignore[operator]
            raise ConfigError("it must be after start", param="end")

    def changed(self, value: Mapping[str, Any]) -> "Terms":
        """These terms with those that a mapping of JSON values names; a time is ISO 8601.

        Raises:
            ConfigError: one of them cannot be; `param` is its key.
        """
        read: dict[str, Any] = {}
        for key, given in value.items():
            if key not in _READERS:
                raise ConfigError(f"unknown; there are: {', '.join(_READERS)}", param=key)
            read[key] = _READERS[key](key, given)
        for arm in read.get("weights", ()):
            if arm not in self.weights:
                known = ", ".join(self.weights)
                raise ConfigError(
                    f"there is no arm {arm!r}; there are: {known}", param=f"weights.{arm}"
                )
        if "weights" in read:
            read["weights"] = {**self.weights, **read["weights"]}
        return replace(self, **read)

    def bearing(self, value: Mapping[str, Any]) -> tuple[dict[str, Any], list[ConfigError]]:
        """Of a value what these terms have room for, key by key, and what is wrong with the rest.

        That an arm is gone must not let in whom another key of the same value keeps out.
        """
        try:
            self.changed(value)
        except ConfigError:
            kept: dict[str, Any] = {}
        else:
            return dict(value), []
        faults = []
        for part in self._parts(value):
            try:
                self.changed({**kept, **part})
            except ConfigError as fault:
                faults.append(fault)
            else:
                kept |= part
        return kept, faults

    def _parts(self, value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The keys one by one, and the weights of arms that there are apart from the others."""
        for key, given in value.items():
            if key != "weights" or not isinstance(given, Mapping):
                yield {key: given}
                continue
            known = {arm: weight for arm, weight in given.items() if arm in self.weights}
            if known:
                yield {key: known}
            yield from ({key: {arm: given[arm]}} for arm in given if arm not in self.weights)


def running(what: Timed, now: float) -> bool:
    """Whether anybody can be in at a time, in seconds since the epoch."""
    begun = what.start is None or what.start <= now
    return what.enabled and begun and (what.end is None or now < what.end)


def instant(text: str) -> float:
    """Seconds since the epoch of a time in ISO 8601 with its offset from UTC.

    Raises:
        ValueError: it is none.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("it says no offset from UTC")
    return moment.timestamp()


def timestamp(seconds: float) -> str:
    """A time in ISO 8601, in UTC, from seconds since the epoch; at most in the year 9999."""
    return datetime.fromtimestamp(min(max(seconds, _FIRST), _LAST), UTC).isoformat()


def _check_share(key: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ConfigError("a share is a number from 0 to 1", param=key)


def _read_switch(key: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise ConfigError("it is true or false", param=key)
    return given


def _read_number(key: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ConfigError("it is not a number", param=key)
    return float(given)


def _read_weights(key: str, given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise ConfigError("it takes a weight for each arm that it names", param=key)
    return {arm: _read_number(f"{key}.{arm}", weight) for arm, weight in given.items()}


def _read_time(key: str, given: Any) -> float:
    try:
        return instant(given)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"write a time as 2027-01-31T09:00:00+09:00 ({error})", param=key
        ) from None


_READERS = {
    "enabled": _read_switch,
    "ramp": _read_number,
    "weights": _read_weights,
    "start": _read_time,
    "end": _read_time,
}
