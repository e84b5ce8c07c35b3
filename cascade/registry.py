"""Looks implementations up by name and imports them when asked for, not before.

A registry is a plain dict from a name to "module:factory". A heavy dependency is loaded only by the
one implementation that uses it, and only when the configuration names it.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from cascade.errors import ConfigError


def load(registry: Mapping[str, str], kind: str, name: str) -> Callable[..., Any]:
    """The factory registered under a name.

    Args:
        registry: name to "module:factory".
        kind: what is looked up, for the error.
        name: which one.

    Raises:
        ConfigError: there is none of that name, or what it imports is not installed.
    """
    if name not in registry:
        raise ConfigError(f"no {kind} of type {name!r}; there are: {', '.join(sorted(registry))}")
    module, _, factory = registry[name].partition(":")
    try:
        return getattr(import_module(module), factory)  # type: ignore[no-any-return]
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{kind} {name!r} needs the package {error.name!r}, which is not installed"
        ) from None
