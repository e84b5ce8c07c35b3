"""Conditions that an operator writes in the configuration, in the Common Expression Language.

CEL has no loops, no side effects and no access to Python, and its patterns take linear time, so a
condition can neither stall the service nor reach anything but the facts it is given. This is the
one module that knows the library.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from cascade.errors import ConfigError

Facts = Mapping[str, Any]
"""Names that a condition may use, with JSON values."""


class ConditionError(ValueError):
    """A condition has no value for the facts at hand."""


class Condition:
    """A compiled condition.

    Args:
        text: in CEL, such as `request.tenant == "acme" && size(request.tools) > 0`.
        example: facts that it must have a value for, so that mistakes show at start.

    Raises:
        ConfigError: it cannot be parsed, uses unknown names, or is not true or false.
    """

    def __init__(self, text: str, example: Facts) -> None:
        self.text = text
        try:
            cel = import_module("cel")
        except ModuleNotFoundError:
            raise ConfigError(
                "conditions need the package common-expression-language: install Cascade with the "
                "extra `rules`"
            ) from None
        try:
            self._program = cel.compile(text)
        except ValueError as error:
            first = " ".join(str(error).split())
            raise ConfigError(f"the condition {text!r} cannot be read: {first[:300]}") from None
        try:
            self(example)
        except ConditionError as error:
            raise ConfigError(
                f"the condition {text!r} has no value for a request without tags, tools and "
                f"parameters: {error}; ask has(request.tags.name) before you use a tag"
            ) from None

    def __call__(self, facts: Facts) -> bool:
        """Whether it holds.

        Raises:
            ConditionError: it has no value, or one that is neither true nor false.
        """
        try:
            value = self._program.execute(dict(facts))
        except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            first_sentence = str(error).partition(". ")[0]
            raise ConditionError(f"{type(error).__name__}: {first_sentence}") from None
        if not isinstance(value, bool):
            raise ConditionError(f"it gives {value!r}, which is neither true nor false")
        return value
