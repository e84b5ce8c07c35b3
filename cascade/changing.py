"""A changed copy of one of our values, in half of the time that `dataclasses.replace` takes.

A request makes a dozen of such copies. The library's function gathers all fields in a dictionary
and calls the constructor, which sets them one by one through the check that the class is frozen;
here each field goes from the one slot to the other.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")

_Slot = tuple[str, Callable[[Any], Any], Callable[[Any, Any], None]]
_known: dict[type[Any], list[_Slot]] = {}


def changed(value: T, **changes: Any) -> T:
    """A copy of a slotted dataclass without `__post_init__`, with other values for some fields.

    Raises:
        TypeError: it has no such field, or is not of that kind.
    """
    kind: type[Any] = type(value)
    copy: T = object.__new__(kind)
    slots = _known.get(kind) or _slots(kind)
    for name, get, put in slots:
        put(copy, changes.pop(name) if name in changes else get(value))
    if changes:
        raise TypeError(f"{kind.__name__} has no field {', '.join(changes)}")
    return copy


def _slots(kind: type[Any]) -> list[_Slot]:
    if hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind.__name__} checks itself when it is made: use dataclasses.replace")
    if not all(hasattr(getattr(kind, field.name, None), "__set__") for field in fields(kind)):
        raise TypeError(f"{kind.__name__} has no slots: use dataclasses.replace")
    found = ((field.name, getattr(kind, field.name)) for field in fields(kind))
    _known[kind] = [(name, slot.__get__, slot.__set__) for name, slot in found]
    return _known[kind]
