"""Makes evals/prompts/tasks.jsonl from its written sources and the seeded exercises.

    python -m evals.tasks.make

The file is committed; a test compares it with what is made here. Every prompt belongs to a group,
which is a template with its fillings or a family of alike functions, and the whole group is on one
side of the split, so that nothing fitted has seen the wording it is tested on.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from evals.datasets import TASKS
from evals.files import write_whole
from evals.tasks import arithmetic

FOLDER = Path(__file__).parent

SPLIT_SALT = "cascade tasks 1470"
"""Chosen for parts of even size within every kind; nothing else was looked at."""

SHARES: Final = {"fit": 0.5, "calibrate": 0.2, "test": 0.3}

MAX_TOKENS: Final = {
    "arithmetic": 40,
    "extraction": 110,
    "classification": 16,
    "fact": 32,
    "code": 220,
    "rewriting": 64,
}

WORKING_TOKENS = 90
"""Of an exercise whose answer shows how it was found."""

CODE_ASKS: Final = (
    "Write a Python function `{signature}` that {says}.{examples} Reply with the code only.",
    "In Python, implement `{signature}`. It {says}.{examples} Give just the function.",
    "I need a function in Python, {signature}, which {says}.{examples} No explanation, only code.",
    "Complete this so that it {says}.{examples} Output the whole function.\n\ndef {signature}:",
    "Python task. Signature: {signature}. The function {says}.{examples} Answer with code alone.",
)


def rows() -> Iterator[dict[str, Any]]:
    """All rows of the file, in order; a group's rows stand together."""
    makers: tuple[Callable[[], Iterator[dict[str, Any]]], ...] = (
        _arithmetic,
        _extraction,
        _classification,
        _facts,
        _code,
        _rewriting,
    )
    for make in makers:
        numbers: dict[str, int] = {}
        for row in make():
            group = row["group"]
            numbers[group] = numbers.get(group, 0) + 1
            yield {
                "id": f"{group}-{numbers[group]:02}",
                "split": split(group),
                "max_tokens": MAX_TOKENS[row["kind"]],
                **row,
            }


def split(group: str, salt: str = SPLIT_SALT) -> str:
    """The part that a group belongs to, by a hash of its name."""
    digest = hashlib.sha256(f"{salt} {group}".encode()).digest()
    place = int.from_bytes(digest[:8]) / 2**64
    for part, share in SHARES.items():
        place -= share
        if place < 0:
            return part
    return part


def main() -> None:
    """Write the file, and print what is in it."""
    made = list(rows())
    lines = [json.dumps(row, ensure_ascii=False) for row in made]
    write_whole(TASKS, "\n".join(lines) + "\n")
    for line in summary(made):
        click.echo(line)


def summary(made: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Rows of a Markdown table: by kind the prompts, the groups, and the prompts of each part."""
    for kind in dict.fromkeys(row["kind"] for row in made):
        own = [row for row in made if row["kind"] == kind]
        parts = Counter(row["split"] for row in own)
        counts = (len(own), len({row["group"] for row in own}), *(parts[part] for part in SHARES))
        yield f"| {kind} | {' | '.join(map(str, counts))} |"


def sources(name: str) -> list[dict[str, Any]]:
    """What is written in a source file of this folder."""
    written: list[dict[str, Any]] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    return written


def code_source(item: Mapping[str, Any]) -> str:
    """The solution of a code item as a whole function."""
    body = "\n".join(f"    {line}" for line in item["is"].split("\n"))
    return f"def {item['def']}:\n{body}\n"


def _arithmetic() -> Iterator[dict[str, Any]]:
    for template, text, answer in arithmetic.exercises():
        family: dict[str, Any] = {"group": template.group, "ask": "{text}"}
        family["system"] = template.system
        if template.example:
            question, worked = template.example
            family["before"] = [{"user": question}, {"assistant": worked}]
        row = _row("arithmetic", family, text, "number", answer)
        yield {**row, "max_tokens": WORKING_TOKENS} if template.example else row


def _facts() -> Iterator[dict[str, Any]]:
    for family in sources("facts"):
        case = {"case": True} if family.get("accept_case") else {}
        for text, *accept in family["items"]:
            yield _row("fact", family, text, "phrase", {"accept": accept, **case})


def _classification() -> Iterator[dict[str, Any]]:
    for family in sources("classification"):
        for text, label in family["items"]:
            reference = {"label": label, "labels": family["labels"]}
            yield _row("classification", family, text, "label", reference)


def _extraction() -> Iterator[dict[str, Any]]:
    for family in sources("extraction"):
        for text, reference, *fields in family["items"]:
            row = _row("extraction", family, text, "json", reference)
            row["response_format"] = _schema(
                family["group"], fields[0] if fields else None or family["fields"]
            )
            yield row


def _rewriting() -> Iterator[dict[str, Any]]:
    for family in sources("rewriting"):
        for text, wanted in family["items"]:
            accept = [wanted] if isinstance(wanted, str) else wanted
            reference = wanted if isinstance(wanted, dict) else {"accept": accept}
            yield _row("rewriting", family, text, "text", reference)


def _code() -> Iterator[dict[str, Any]]:
    for number, item in enumerate(sources("code")):
        tests = _tests(item)
        shown = "".join(f"\n>>> {call}\n{value}" for call, value in tests[:2])
        examples = f"\n\nFor example:\n{shown}\n\n" if number % 2 else ""
        text = CODE_ASKS[number % len(CODE_ASKS)].format(
            signature=item["def"], says=item["says"], examples=examples
        )
        text = re.sub(r"\n{3,}", "\n\n", text.replace("\n\n ", "\n\n"))
        reference = {"tests": "\n".join(f"assert {call} == {value}" for call, value in tests)}
        yield _row("code", {"group": item["group"], "ask": "{text}"}, text, "code", reference)


def _tests(item: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each call with the text of what the solution returns."""
    names: dict[str, Any] = {}
    exec(code_source(item), names)  # noqa: S102 - our own solution, from this folder
    name = item["def"].partition("(")[0]
    return [
        (call, repr(eval(call, dict(names))))  # noqa: S307 - as above
        for call in (f"{name}({arguments})" for arguments in item["calls"])
    ]


def _row(
    kind: str, family: Mapping[str, Any], text: str, scorer: str, reference: Any
) -> dict[str, Any]:
    messages = [{"role": "system", "content": family["system"]}] if family.get("system") else []
    for turn in family.get("before", ()):
        messages += [{"role": role, "content": content} for role, content in turn.items()]
    messages.append({"role": "user", "content": family["ask"].replace("{text}", text)})
    return {
        "group": f"{kind}-{family['group']}",
        "kind": kind,
        "messages": messages,
        "scorer": scorer,
        "reference": reference,
    }


def _schema(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {field: _type(of) for field, of in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }
    name = name.replace("-", "_")
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "strict": True, "schema": schema},
    }


def _type(of: str | list[str]) -> dict[str, Any]:
    if isinstance(of, list):
        return {"type": "string", "enum": of}
    if of == "strings":
        return {"type": "array", "items": {"type": "string"}}
    return {"type": of}


if __name__ == "__main__":
    main()
