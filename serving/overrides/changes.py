"""What an operator can do: change an experiment, pin a tier, drain one, and take it back.

Each is checked against the configuration and what is in force, in the turn in which it is written.
So the one who does it hears what is wrong and not a log, and no two who are each right alone are
wrong together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine

from cascade.errors import RequestError
from serving.overrides import store
from serving.overrides.apply import Ground, check, drains_of, pin_of, terms_under
from serving.overrides.stacking import Value, layers
from serving.overrides.store import State, writing


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Whose change it is, and under what conditions; see `store.put`."""

    who: str
    why: str
    until: float | None = None
    expected: int | None = None


class Changes:
    """Writes changes; each method returns the version, and raises what `store.put` raises.

    Args:
        database: of the audit log.
        ground: what of the file they stand on.
    """

    def __init__(self, database: Engine, ground: Ground) -> None:
        self._database = database
        self._ground = ground

    def experiment(self, name: str, changes: Mapping[str, Any], note: Note) -> int:
        """Change some terms of an experiment; one that is None is as in the file again.

        What of the overrides before does not fit the file any more is not in force, and goes.

        Raises:
            RequestError: there is no such experiment, or it cannot be so, now or when what is in
                force for a while is over.
        """
        terms_under(self._ground, name, {})
        if not changes:
            raise RequestError("there is nothing to change")
        file = self._ground.experiments[name]

        def fitting(value: Value) -> Value:
            return value and (file.bearing(value)[0] or None)

        with writing(self._database, store.EXPERIMENT + name, note.until, note.expected) as turn:
            standing = [(fitting(value), until) for value, until in turn.standing()]
            rows = layers(standing, changes, note.until)
            self._check(name, [value for value, _ in rows])
            return turn.write(rows, who=note.who, why=note.why)

    def restore(self, name: str, note: Note) -> int:
        """Give an experiment back to the file.

        Raises:
            RequestError: there is no such experiment.
        """
        terms_under(self._ground, name, {})
        return self._put(store.EXPERIMENT + name, None, note)

    def pin(self, tier: str, note: Note) -> int:
        """Everything goes to one tier.

        Raises:
            RequestError: there is no such tier, or it is drained.
        """
        return self._set(store.PIN, {"tier": tier}, note)

    def unpin(self, note: Note) -> int:
        """What is asked for is answered again.

        Raises:
            RequestError: nothing is pinned.
        """

        def pinned(state: State) -> None:
            if pin_of(state) is None:
                raise RequestError("nothing is pinned")

        return self._put(store.PIN, None, note, pinned)

    def drain(self, tier: str, note: Note) -> int:
        """Nothing goes to a tier any more.

        Raises:
            RequestError: there is no such tier, or no other would be left.
        """
        return self._set(store.DRAIN + tier, {}, note)

    def undrain(self, tier: str, note: Note) -> int:
        """It may be asked again.

        Raises:
            RequestError: it is not drained.
        """

        def drained(state: State) -> None:
            if tier not in drains_of(state):
                raise RequestError(f"{tier!r} is not drained", param="tier")

        return self._put(store.DRAIN + tier, None, note, drained)

    def _check(self, name: str, values: Sequence[Value]) -> None:
        """Refuse what an experiment cannot be: the last of the values now, the others later."""
        *later, now = values
        terms_under(self._ground, name, now or {})
        try:
            for value in later:
                terms_under(self._ground, name, value or {})
        except RequestError as error:
            raise RequestError(
                f"when what is in force for a while ends, {error.message}", param=error.param
            ) from None

    def _set(self, subject: str, value: Mapping[str, Any], note: Note) -> int:
        return self._put(
            subject, value, note, lambda state: check(self._ground, subject, value, state)
        )

    def _put(
        self,
        subject: str,
        value: Value,
        note: Note,
        refuse: Callable[[State], None] = lambda _: None,
    ) -> int:
        with writing(self._database, subject, note.until, note.expected) as turn:
            refuse(turn.state())
            return turn.write([(value, note.until)], who=note.who, why=note.why)
