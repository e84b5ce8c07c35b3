"""Calls registered factories with what a configuration says, and names the key at fault."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cascade.errors import ConfigError


def build(
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
    with at(where):
        return factory(**given, **ours)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Put the path of what is being built in front of a fault's own."""
    try:
        yield
    except ConfigError as error:
        path = f"{where}.{error.param}" if error.param else where
        raise ConfigError(error.message, param=path) from None


def _check_type(hint: Any, value: Any, where: str) -> None:
    adapter = TypeAdapter[Any](hint, config=ConfigDict(arbitrary_types_allowed=True))
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        raise ConfigError(error.errors(include_url=False)[0]["msg"], param=where) from None
