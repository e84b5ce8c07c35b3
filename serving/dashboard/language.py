"""Every word on the page, in each of its languages, and which of them a visitor reads.

One file a language, all with the same keys, so that no text is written into a template. What the
commands say as well is in English where they have it from.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import orjson
from markupsafe import Markup

from serving.dashboard.phrases import phrases
from serving.results.clauses import ENGLISH, Clause

LANGUAGES = {"en": "English", "ko": "한국어"}
"""Their names, in themselves."""

DEFAULT = "en"


class Texts:
    """The texts of one language.

    Args:
        language: one of LANGUAGES.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = catalogue(language)

    def __call__(self, key: str, **values: object) -> str:
        """A text, with values put into it.

        Raises:
            KeyError: there is no such text, or it asks for a value that is not given.
        """
        return self._texts[key].format_map(values) if values else self._texts[key]

    def told(self, clause: Clause) -> str:
        """A sentence that was decided elsewhere."""
        return clause.told(self._texts)

    def logged(self, sentence: str) -> Markup:
        """A sentence of the log, as far as it can be said in the language."""
        return phrases(self.language).told(sentence)

    def named(self, kind: str, word: str | None) -> str:
        """The text of a word of the log, such as an outcome; the word itself where there is none.

        Args:
            kind: of word: the first part of the texts' keys.
            word: as the log has it; None is not known.
        """
        if word is None:
            return self._texts["unknown"]
        return self._texts.get(f"{kind}.{word}", word)


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """All texts of a language by key."""
    file = files("serving.dashboard") / "texts" / f"{language}.json"
    texts: dict[str, str] = orjson.loads(file.read_bytes())
    return {**ENGLISH, **texts} if language == DEFAULT else texts


def wanted(chosen: str | None, accepted: str) -> str:
    """The language to answer in.

    Args:
        chosen: what the visitor chose here before; None for nothing.
        accepted: the Accept-Language header, which may be empty.
    """
    if chosen in LANGUAGES:
        return chosen
    ranked = sorted(map(_weighed, accepted.split(",")), key=lambda each: -each[0])
    return next((tag for weight, tag in ranked if weight > 0 and tag in LANGUAGES), DEFAULT)


def _weighed(item: str) -> tuple[float, str]:
    tag, _, rest = item.strip().partition(";")
    try:
        weight = float(rest.strip().removeprefix("q=") or 1)
    except ValueError:
        weight = 0.0
    return weight, tag.strip().partition("-")[0].lower()
