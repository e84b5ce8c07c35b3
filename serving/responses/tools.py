"""Translates tool definitions, choices and calls from the Responses API."""

from typing import Any

from cascade.errors import RequestError
from cascade.types import Json
from serving.messages.tools import rest
from serving.responses.body import AllowedTools, Function, FunctionCall, Typed
from serving.schemas import validated

_CHOICES = ("auto", "none", "required")


def tool(given: Json, at: str) -> dict[str, Any]:
    """A function in the shape of a chat completion.

    Raises:
        RequestError: it is wrong, or a tool that the service would have to run.
    """
    kind = validated(Typed, given, at).type
    if kind != "function":
        field = f"{at}.type"
        raise RequestError(
            f"{field}: {kind!r} is not offered, nor is any tool but functions, which the client "
            "runs: describe it as one",
            param=field,
        )
    validated(Function, given, at)
    known = ("name", "description", "parameters", "strict")
    function = {name: given[name] for name in known if given.get(name) is not None}
    return {**rest(given, *known), **_function(function)}


def tool_choice(given: Any) -> Any:
    """A choice in the shape of a chat completion.

    Raises:
        RequestError: it is none, or one of a tool that is not offered.
    """
    if isinstance(given, str):
        if given not in _CHOICES:
            raise _no_choice(given, "tool_choice", _CHOICES)
        return given
    kind = validated(Typed, given, "tool_choice").type
    if kind == "function":
        return _function({"name": validated(Function, given, "tool_choice").name})
    if kind != "allowed_tools":
        raise _no_choice(kind, "tool_choice.type", ("function", "allowed_tools"))
    allowed = validated(AllowedTools, given, "tool_choice")
    tools = [_named(one, f"tool_choice.tools[{i}]") for i, one in enumerate(allowed.tools)]
    return {"type": kind, kind: {"mode": allowed.mode, "tools": tools}}


def tool_call(item: Json, at: str) -> dict[str, Any]:
    """A function_call item as a tool call.

    Raises:
        RequestError: it is wrong.
    """
    call = validated(FunctionCall, item, at)
    function = {"name": call.name, "arguments": call.arguments}
    kept = rest(item, "id", "call_id", "name", "arguments", "parsed_arguments", "status")
    return {**kept, "id": call.call_id, **_function(function)}


def _named(given: Json, at: str) -> dict[str, Any]:
    kind = validated(Typed, given, at).type
    if kind != "function":
        raise _no_choice(kind, f"{at}.type", ("function",))
    return _function({"name": validated(Function, given, at).name})


def _no_choice(given: str, field: str, known: tuple[str, ...]) -> RequestError:
    taken = ", ".join(known)
    return RequestError(
        f"{field}: {given!r} is not taken here; what is taken: {taken}", param=field
    )


def _function(function: Json) -> dict[str, Any]:
    return {"type": "function", "function": function}
