"""Translates tool definitions and calls from the Messages API."""

from typing import Any

import orjson

from cascade.errors import RequestError
from cascade.types import Json
from serving.messages.body import Tool, ToolUse
from serving.schemas import validated

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def tool(given: Json, at: str) -> dict[str, Any]:
    """A tool as a function.

    Raises:
        RequestError: it is wrong, or one that the service would have to run.
    """
    if given.get("type") not in (None, "custom"):
        field = f"{at}.type"
        raise RequestError(
            f"{field}: tools that the service runs, such as {given['type']!r}, are not offered: "
            "use tools with an input_schema, which the client runs",
            param=field,
        )
    validated(Tool, given, at)
    function = {"name": given["name"], "parameters": given["input_schema"]}
    function |= {k: given[k] for k in ("description", "strict") if given.get(k) is not None}
    return {**rest(given, "name", "input_schema", "description", "strict"), **_function(function)}


def tool_choice(given: Json) -> dict[str, Any]:
    """The fields of a chat completion that say the same.

    Raises:
        RequestError: a tool is to be called and not named.
    """
    kind, name = given["type"], given.get("name")
    if kind == "tool" and name is None:
        raise RequestError("tool_choice.name: is missing", param="tool_choice.name")
    choice = _function({"name": name}) if kind == "tool" else _CHOICES[kind]
    parallel = {"parallel_tool_calls": False} if given.get("disable_parallel_tool_use") else {}
    return {"tool_choice": choice, **parallel}


def tool_call(block: Json, at: str) -> dict[str, Any]:
    """A tool_use block as a tool call.

    Raises:
        RequestError: it is wrong.
    """
    validated(ToolUse, block, at)
    arguments = orjson.dumps(block["input"]).decode()
    return {
        **rest(block, "id", "name", "input"),
        "id": block["id"],
        **_function({"name": block["name"], "arguments": arguments}),
    }


def rest(given: Json, *translated: str) -> dict[str, Any]:
    """What is left of an object beside the fields that were translated, and its type."""
    known = {"type", *translated}
    return {name: v for name, v in given.items() if name not in known and v is not None}


def _function(function: Json) -> dict[str, Any]:
    return {"type": "function", "function": function}
