"""Prompts as the service takes their fingerprints, told apart by the doctor."""

from collections.abc import Sequence
from typing import Any

import pytest

from cascade.audit import record
from cascade.prefix import fingerprint
from serving.doctor.calls import Prompt, prompt_of
from serving.doctor.compare import compare
from tests.builders import request, result

ASK = {"role": "user", "content": "What is the plan?"}
ANSWER = {"role": "assistant", "content": "To begin."}
NEXT = {"role": "user", "content": "And then?"}
PACK = "<documents><document>{}</document><document>{}</document></documents> Which is it?"


def tool(name: str, *, turned: bool = False) -> dict[str, Any]:
    fields = {"name": name, "parameters": {"type": "object"}}
    items = list(fields.items())
    return {"type": "function", "function": dict(items[::-1] if turned else items)}


def prompt(
    *messages: dict[str, str], system: str = "You help.", tools: Sequence[dict[str, Any]] = ()
) -> Prompt:
    said = [{"role": "system", "content": system}, *messages]
    asked = request(messages=said, tools=list(tools) or None)
    taken = fingerprint(asked, tokens_per_byte=0.25)
    made = prompt_of(record(result(fingerprint=taken)).segments)
    assert made is not None
    return made


CASES: list[tuple[str | None, dict[str, Any], dict[str, Any]]] = [
    (None, {}, {}),
    (
        "system_dates",
        {"system": "You help. It is 2026-11-30T07:41:05Z."},
        {"system": "You help. It is 2026-11-30T07:42:11Z."},
    ),
    (
        "system_ids",
        {"system": "Request 5e6b2f4c-8f0e-4c1d-9b53-0a1f6f1f2d3e."},
        {"system": "Request 1c9d2a77-30a2-4a3b-8c8e-7d1b5e0c9f42."},
    ),
    (
        "system_mixed",
        {"system": "At 2026-11-30T07:41:05Z, 5e6b2f4c-8f0e-4c1d-9b53-0a1f6f1f2d3e."},
        {"system": "At 2026-12-01T08:00:00Z, 1c9d2a77-30a2-4a3b-8c8e-7d1b5e0c9f42."},
    ),
    ("system_changed", {"system": "You help."}, {"system": "You help with care."}),
    ("tools_order", {"tools": [tool("a"), tool("b")]}, {"tools": [tool("b"), tool("a")]}),
    ("tools_keys", {"tools": [tool("a")]}, {"tools": [tool("a", turned=True)]}),
    ("tools_changed", {"tools": [tool("a"), tool("b")]}, {"tools": [tool("a")]}),
]


@pytest.mark.parametrize(("cause", "before", "after"), CASES)
def test_what_the_service_logs_tells_the_cause(
    cause: str | None, before: dict[str, Any], after: dict[str, Any]
) -> None:
    found = compare(prompt(ASK, **before), prompt(ASK, ANSWER, NEXT, **after))
    assert (found.cause.key if found.cause else None) == cause


def test_retrieved_documents_in_another_order_are_told() -> None:
    old = {"role": "user", "content": PACK.format("one", "two")}
    new = {"role": "user", "content": PACK.format("two", "one")}
    found = compare(prompt(old), prompt(new, ANSWER, NEXT))
    assert found.cause is not None
    assert found.cause.key == "pack_order"


def test_a_history_of_hundreds_of_messages_goes_on_and_is_cut() -> None:
    talk = [{**(ANSWER if n % 2 else ASK), "content": f"message {n}"} for n in range(601)]
    more = [*talk, ANSWER, NEXT]
    assert compare(prompt(*talk), prompt(*more)).goes_on
    found = compare(prompt(*talk), prompt(*more[-22:]))
    assert found.cause is not None
    assert (found.cause.key, found.detail) == ("cut", "601 messages are now 20")
