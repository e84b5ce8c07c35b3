"""What an operator, or the request itself, expects of an answer's text: a pattern, a set, a number.

For requests whose answers are known to have a form: a label of a fixed set, an order number, an
amount. What does not have it is not acceptable: score 0, final. What has it scores 1, and that is
no more than its form being right, unless a reference was there to hold it against.
"""

import re
from collections.abc import Sequence
from typing import Final

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

from cascade.errors import ConfigError
from cascade.types import ChatRequest, Completion, Json, Verdict

_NUMBER: Final = re.compile(r"(?<![\w.,])[-+\u2212]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")


class ExpectedJudge:
    """Holds the answer's text against all that is stated.

    Args:
        name: how verdicts call it.
        pattern: a regular expression that must be found in the text, in Rust's syntax, which has
            no look-around and no back-references and takes time linear in the text.
        one_of: the text must be one of these, case and outer white space and full stop aside.
        number: the text must have a number; the last one is the answer.
        reference_tag: the tag of a request that holds the right answer. A request without it is
            only held against the rest.
        tolerance: by how much the number may differ from the reference.
    """

    free = True

    def __init__(
        self,
        *,
        name: str = "expected",
        pattern: str | None = None,
        one_of: Sequence[str] | None = None,
        number: bool = False,
        reference_tag: str | None = None,
        tolerance: float = 1e-9,
    ) -> None:
        if pattern is None and not one_of and not number and reference_tag is None:
            raise ConfigError("it expects nothing: state pattern, one_of, number or reference_tag")
        if tolerance < 0:
            raise ConfigError("it is below 0", param="tolerance")
        self.name = name
        self.needs: Json = {}
        self._pattern = None if pattern is None else _compiled(pattern)
        self._one_of = [_plain(text) for text in one_of or ()]
        self._number = number
        self._reference_tag = reference_tag
        self._tolerance = tolerance

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """0 and final with the first thing that is not as expected, otherwise 1."""
        reference = request.tags.get(self._reference_tag) if self._reference_tag else None
        fault = self._formless(completion.text)
        if fault is None and reference is not None:
            fault = self._differing(completion.text, reference)
        compared = {"compared": float(reference is not None)}
        if fault:
            return Verdict(judge=self.name, score=0.0, final=True, reason=fault, features=compared)
        return Verdict(judge=self.name, score=1.0, reason="as expected", features=compared)

    def _formless(self, text: str) -> str | None:
        if self._pattern is not None and not self._pattern.is_valid(text):
            return "the answer does not match the pattern"
        if self._one_of and _plain(text) not in self._one_of:
            return "the answer is none of those expected"
        if self._number and last_number(text) is None:
            return "the answer has no number"
        return None

    def _differing(self, text: str, reference: str) -> str | None:
        wanted = last_number(reference) if _NUMBER.fullmatch(reference.strip()) else None
        if wanted is None:
            return None if _plain(text) == _plain(reference) else "it is not the reference"
        found = last_number(text)
        if found is not None and abs(found - wanted) <= self._tolerance:
            return None
        return f"the answer's number {found} is not the reference's {wanted}"


def last_number(text: str) -> float | None:
    """The last number in a text, thousands separated by commas or not."""
    found = _NUMBER.findall(text)
    return float(found[-1].replace(",", "").replace("\u2212", "-")) if found else None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def _compiled(pattern: str) -> Draft202012Validator:
    # The JSON Schema library's engine: Python's own can be stalled by a text made for it.
    try:
        return Draft202012Validator({"pattern": pattern}, pattern_options=RegexOptions())
    except (ValueError, ValidationError) as error:
        first_line = str(error).partition("\n")[0]
        raise ConfigError(f"it cannot be used: {first_line}", param="pattern") from None
