"""Whether an answer is in the language that was asked for, where that can be told cheaply.

Scripts tell most languages from each other, and a few dozen function words tell those that share
the Latin one. Both need some text: of a short answer nothing is said. Code counts as no language.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Final

from cascade.conversation import last_ask, text_of
from cascade.types import ChatRequest

NAMES: Final[Mapping[str, str]] = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "portuguese": "pt",
    "dutch": "nl",
    "russian": "ru",
    "chinese": "zh",
    "japanese": "ja",
    "korean": "ko",
    "arabic": "ar",
    "hebrew": "he",
    "greek": "el",
    "hindi": "hi",
    "thai": "th",
}
"""By the name that a request calls it."""

_SCRIPTS: Final[Mapping[str, tuple[str, ...]]] = {
    "ru": ("CYRILLIC",),
    "zh": ("CJK",),
    "ja": ("CJK", "HIRAGANA", "KATAKANA"),
    "ko": ("HANGUL",),
    "ar": ("ARABIC",),
    "he": ("HEBREW",),
    "el": ("GREEK",),
    "hi": ("DEVANAGARI",),
    "th": ("THAI",),
}
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the and of to is that it with for was are this be not have from they which you",
        "de": "der die das und ist nicht ein eine zu den von mit sich auf dass auch wird sind wie",
        "fr": "le les et est une des que dans pour qui sur pas au ce il sont avec vous cette",
        "es": "el los las y es una del que en por con para se no como su más pero este",
        "it": "il di che è un per non sono della con gli una si del le come anche nel più",
        "pt": "o os e é um uma que não do da em para com se na mais como dos são",
        "nl": "de het een en van is dat niet op te zijn voor met die aan er ook maar wordt",
    }.items()
}
_ASKED: Final = re.compile(
    r"(?:\A|[.!?:;,\n]\s*|\b(?:please|always|only|must|should|and)\s+)"
    r"(?:answer|reply|respond)\b[^.!?\n]{0,30}?\bin (" + "|".join(NAMES) + r")\b",
    re.IGNORECASE,
)
"""An instruction, not a question about a language or an order to translate."""
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_TOKEN: Final = re.compile(r"[^\W\d_]+")
_ENOUGH_CHARACTERS: Final = 20_000
FEWEST_LETTERS: Final = 40
"""A text with fewer is in no language."""
_FEWEST_HITS: Final = 6
_CLEARLY: Final = 2.0
_HARDLY: Final = 0.15


def asked_language(request: ChatRequest) -> str | None:
    """The language that the last ask, or else a system message, says to answer in, as "de"."""
    texts = [last_ask(request.messages)]
    texts += [
        text_of(m.get("content"))
        for m in request.messages
        if m.get("role") in {"system", "developer"}
    ]
    for text in texts:
        if found := _ASKED.findall(text):
            return NAMES[found[-1].lower()]
    return None


def foreign(text: str, language: str) -> str | None:
    """What is wrong with a text that had to be in a language; None also when it cannot be told."""
    text = _CODE.sub(" ", text[:_ENOUGH_CHARACTERS])
    scripts = Counter(filter(None, map(_script, text)))
    letters = sum(scripts.values())
    if letters < FEWEST_LETTERS:
        return None
    own = _SCRIPTS.get(language, ("LATIN",))
    if sum(scripts[script] for script in own) < _HARDLY * letters:
        return f"the answer is not in the asked language, {language}"
    found = spoken(text) if own == ("LATIN",) else None
    if found not in {None, language}:
        return f"the answer is in {found}, not in the asked language, {language}"
    return None


def spoken(text: str) -> str | None:
    """The language of a text in Latin letters; None unless it is clear."""
    words = _TOKEN.findall(text.casefold())
    hits = Counter({name: sum(w in known for w in words) for name, known in _WORDS.items()})
    (best, most), (_, second) = hits.most_common(2)
    return best if most >= _FEWEST_HITS and most >= _CLEARLY * second else None


def _script(character: str) -> str | None:
    if not character.isalpha():
        return None
    return unicodedata.name(character, "").partition(" ")[0].partition("-")[0]
