"""What the log itself says, in the visitor's language: reasons of steps, words of judges, alerts.

The log keeps sentences in English, as the commands and programs show them. Most of them have a
known form, so a language's phrases have the English form as their key, with names where values
stand, and the same names in their own words. What has no known form stays as it is, and is marked
as English.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Final

import orjson
from markupsafe import Markup

from serving.dashboard.formats import coded
from serving.doctor.causes import WHERE

JOINT: Final = "; "
"""What stands between the parts of a sentence that each have a form of their own."""

LONGEST: Final = 2000
"""Characters of a sentence that is looked at; a model may have written far longer ones."""

_SENTENCES: Final = frozenset({"said", "worth"})
"""Values that are sentences themselves, or several with commas between."""

_WORDS: Final = frozenset({"why", "flags", "text", "counts", "label", "model", "error", "judged"})
"""Values of several words; others are a name or a number."""

_PLACE: Final = "where"


class Phrases:
    """The sentences of one language.

    Args:
        phrases: by English form, the form in the language.
    """

    def __init__(self, phrases: Mapping[str, str]) -> None:
        forms = sorted(phrases, key=lambda form: -len(re.sub(r"\{\w+\}", "", form)))
        self._forms = [(_pattern(form), phrases[form]) for form in forms]

    def told(self, sentence: str) -> Markup:
        """A sentence of the log; what of it has no known form is marked as English."""
        if not self._forms or not sentence:
            return coded(sentence)
        if len(sentence) > LONGEST:
            return _english(sentence)
        known = self._known(sentence)
        if known is not None:
            return coded(known)
        return coded(JOINT).join(self._part(part) for part in sentence.split(JOINT))

    def _part(self, part: str) -> Markup:
        known = self._known(part)
        return _english(part) if known is None else coded(known)

    def _known(self, sentence: str) -> str | None:
        """A sentence, or what somebody who is named says."""
        found = self._formed(sentence)
        who, _, said = sentence.partition(": ")
        if found is None and said and " " not in who:
            told = self._formed(said)
            return None if told is None else f"{who}: {told}"
        return found

    def _formed(self, sentence: str) -> str | None:
        for pattern, form in self._forms:
            found = pattern.fullmatch(sentence)
            if found is not None:
                return form.format_map({n: self._value(n, v) for n, v in found.groupdict().items()})
        return None

    def _value(self, name: str, value: str) -> str:
        if name != _PLACE and name not in _SENTENCES:
            return value
        return self._known(value) or ", ".join(self._known(p) or p for p in value.split(", "))


@cache
def phrases(language: str) -> Phrases:
    """A language's; English needs none."""
    file = files("serving.dashboard") / "texts" / f"{language}.phrases.json"
    return Phrases(orjson.loads(file.read_bytes()) if file.is_file() else {})


def _english(text: str) -> Markup:
    return Markup('<span lang="en">{}</span>').format(coded(text))


def _pattern(form: str) -> re.Pattern[str]:
    return re.compile("".join(_pieces(form)), re.DOTALL)


def _pieces(form: str) -> Iterator[str]:
    for literal, name, _, _ in Formatter().parse(form):
        yield re.escape(literal)
        if name is not None:
            yield f"(?P<{name}>{_value_pattern(name)})"


def _value_pattern(name: str) -> str:
    if name == _PLACE:
        return "|".join(map(re.escape, WHERE.values()))
    if name in _SENTENCES:
        return ".+?"
    return "[^;]+?" if name in _WORDS else r"\S+?"
