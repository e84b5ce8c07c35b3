"""Whether an answer is right. Strict about the content, lenient about how it is dressed.

Each scorer takes the answer's text and the reference in the form it needs, and is total: any text
gives True or False. What cannot be read as an answer is wrong, so that a model that rambles loses.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from cascade.errors import JudgeError
from cascade.types import ChatRequest, Choice, Completion
from judges.sandbox import run_python
from judges.structure import misshapen

NUMBER = re.compile(r"(?<![\w.,])[-\u2212]?\d[\d,]*(?:\.\d+)?(?![\w])")
FENCED = re.compile(r"\A```\w*\s*(.*?)\s*```\Z", re.DOTALL)
ALONE = re.compile(r"\A\W*([A-D])(?:\W*\Z|\W*[.:)\]\n*]|\s+(?![a-z]))")
NAMED = re.compile(
    r"\b(?:answer|option|choice|letter)\b[^A-Za-z]*(?:is\b)?[^A-Za-z]*([A-D])\b", re.IGNORECASE
)
CODE_BLOCK = re.compile(r"```\w*\n(.*?)(?:```|\Z)", re.DOTALL)
ARTICLE = re.compile(r"\A(?:the|a|an)\s+")

MOST_WORDS = 20
"""A short answer has no more."""

CODE_SECONDS = 10.0


def number(answer: str, reference: float) -> bool:
    """The last number in the answer equals the reference: "43", "43.", "20 + 23 = 43"."""
    found = NUMBER.findall(answer)
    return bool(found) and _float(found[-1]) == float(reference)


def choice(answer: str, reference: str) -> bool:
    """The answer names the letter: "B", "B)", "B. Paris", "The answer is (B)".

    A letter counts when the answer begins with it or calls it the answer; naming two is wrong.
    """
    begun = ALONE.match(answer)
    named = set(NAMED.findall(answer))
    letters = {letter.upper() for letter in named} or ({begun[1]} if begun else set())
    return letters == {reference} and (begun is None or begun[1] == reference)


def label(answer: str, reference: Mapping[str, Any]) -> bool:
    """The one label that the answer mentions is the right one.

    Args:
        answer: the model's text.
        reference: "label", the right one, and "labels", all that the prompt offers.
    """
    mentioned = {
        name
        for name in reference["labels"]
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", answer, re.IGNORECASE)
    }
    return mentioned == {reference["label"]}


def json_object(answer: str, reference: Mapping[str, Any]) -> bool:
    """The answer is a JSON object with the reference's keys and equal values.

    Strings are compared without case, spare space, outer punctuation and a leading article;
    numbers by value; a string never equals a number, nor a number a truth value.
    """
    fenced = FENCED.match(answer.strip())
    try:
        found = json.loads(fenced[1] if fenced else answer)
    except (ValueError, RecursionError):
        return False
    return _same(found, reference)


def phrase(answer: str, reference: Mapping[str, Any]) -> bool:
    """The answer mentions an accepted phrase as whole words, and is about nothing else.

    Args:
        answer: the model's text; longer than MOST_WORDS it is a lecture, which is wrong.
        reference: "accept", the phrases that count, and "case", true where case matters.
    """
    fold = _same_case if reference.get("case") else _unaccented
    text = fold(answer)
    return len(text.split()) <= MOST_WORDS and any(
        re.search(rf"(?<!\w){re.escape(fold(one))}(?!\w)", text) for one in reference["accept"]
    )


def text(answer: str, reference: Mapping[str, Any]) -> bool:
    """The answer is an accepted text, or passes every check that the reference states.

    Surrounding space, quotes and a code fence do not count; case, words and punctuation do.

    Args:
        answer: the model's text.
        reference: "accept", the texts that count, or checks by their names in TEXT_CHECKS; "fold"
            makes the checks blind to case.
    """
    bare = _bare(answer)
    if "accept" in reference:
        return bare in {_bare(one) for one in reference["accept"]}
    if reference.get("fold"):
        bare = bare.casefold()
    checks = reference.keys() & TEXT_CHECKS.keys()
    return all(TEXT_CHECKS[name](bare, reference[name]) for name in checks)


def code(answer: str, reference: Mapping[str, Any]) -> bool:
    """The answer's code passes the reference's "tests", in a process of its own.

    Lines of prose around a fenced block are passed over; without a fence the whole answer is code.
    """
    blocks = CODE_BLOCK.findall(answer)
    source = "\n".join(blocks) if blocks else answer
    return run_python(source, tests=reference["tests"], seconds=CODE_SECONDS).ok


def exact(answer: str, reference: str) -> bool:
    """The answer is the reference; surrounding space, quotes and a code fence do not count."""
    return _bare(answer) == _bare(reference)


def regex(answer: str, reference: str) -> bool:
    """The pattern is found in the answer; `^` and `$` are the ends of the whole."""
    return re.search(reference, answer.strip()) is not None


def schema(answer: str, reference: Mapping[str, Any]) -> bool:
    """The answer is JSON that keeps to the reference, a JSON Schema; fences do not count."""
    fenced = FENCED.match(answer.strip())
    asked = {"type": "json_schema", "json_schema": {"schema": reference}}
    request = ChatRequest(id="scored", messages=(), params={"response_format": asked})
    choice = Choice(text=fenced[1] if fenced else answer, finish_reason="stop")
    return misshapen(request, Completion(choices=(choice,))) is None


def suits_schema(reference: object) -> bool:
    """Whether it is a JSON Schema that answers can be held against."""
    try:
        return isinstance(reference, Mapping) and schema("null", reference) in {True, False}
    except JudgeError:
        return False


TEXT_CHECKS: Mapping[str, Callable[[str, Any], bool]] = {
    "contains": lambda found, wanted: all(one in found for one in wanted),
    "excludes": lambda found, unwanted: not any(one in found for one in unwanted),
    "max_words": lambda found, most: len(found.split()) <= most,
    "min_words": lambda found, least: len(found.split()) >= least,
    "lines": lambda found, count: len(found.split("\n")) == count,
    "matches": lambda found, pattern: re.search(pattern, found) is not None,
}
"""What the scorer `text` can check, by name."""

SCORERS: Mapping[str, Callable[[str, Any], bool]] = {
    "number": number,
    "choice": choice,
    "label": label,
    "json": json_object,
    "phrase": phrase,
    "text": text,
    "code": code,
    "exact": exact,
    "regex": regex,
    "schema": schema,
}
"""The scorers by the name that a prompt's row gives."""

SIMILARITY, JUDGE = "similarity", "judge"
MODELLED = (SIMILARITY, JUDGE)
"""Scorers that ask a model, which `evals.collecting.scoring` has; they give numbers in [0, 1]."""


def _float(text: str) -> float:
    return float(text.replace(",", "").replace("\u2212", "-"))


def _same(found: object, wanted: object) -> bool:
    if isinstance(found, dict) and isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(
            _same(found[key], wanted[key]) for key in wanted
        )
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    if isinstance(found, str) and isinstance(wanted, str):
        return _plain(found) == _plain(wanted)
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9)
    return found is None and wanted is None


def _plain(text: str) -> str:
    return ARTICLE.sub("", " ".join(text.casefold().split()).strip("\"'`.,;:!? "))


def _same_case(text: str) -> str:
    return text


def _unaccented(text: str) -> str:
    marks = unicodedata.normalize("NFKD", text.casefold())
    return "".join(mark for mark in marks if not unicodedata.combining(mark))


def _bare(text: str) -> str:
    stripped = text.strip()
    fenced = FENCED.match(stripped)
    lines = (fenced[1] if fenced else stripped).strip().strip("\"'`\u201c\u201d").split("\n")
    return "\n".join(" ".join(line.split()) for line in lines)
