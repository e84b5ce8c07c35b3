"""Faults of an answer that its words show: it refuses, it loops, it is in another language.

All three err on the side of finding nothing. A fault ends the matter, so each is only found where a
person would not doubt it.
"""

import re
from typing import Final

REFUSAL_CHARACTERS: Final = 400
"""A longer answer gives something besides the refusal."""

_REFUSAL: Final = re.compile(
    r"""\W*(?:
      (?:i(?:['\u2019]?m|\s+am)\s+(?:very\s+|really\s+|so\s+)?|we(?:['\u2019]re|\s+are)\s+)?sorry
         [,.!]*\s+(?:but\s+)?(?:as\s+an\s+ai[^,]*,\s+)?
         (?:i|we)\s*(?:can(?:['\u2019]?t|not|\s+not)|am\s+(?:not\s+able|unable)|['\u2019]m\s+(?:not\s+able|unable)|won['\u2019]?t|do\s*n['\u2019]t\s+feel)
    | as\s+an?\s+(?:ai|artificial\s+intelligence|(?:large\s+)?language\s+model)\b[^.]{0,40}?,?\s+
         i\s*(?:can(?:['\u2019]?t|not)|am\s+(?:not\s+able|unable)|['\u2019]m\s+(?:not\s+able|unable)|do\s*n['\u2019]t)
    | i\s*(?:can(?:['\u2019]?t|not)|am\s+(?:not\s+able|unable)\s+to|['\u2019]m\s+(?:not\s+able|unable)\s+to|won['\u2019]?t)\s+
         (?:help\s+(?:you\s+)?with|assist|comply|fulfill|engage\s+in|participate)\b
    | (?:es\s+tut\s+mir\s+(?:sehr\s+)?leid|entschuldigung)[,.]?\s+(?:aber\s+)?(?:ich\s+kann|da(?:bei|mit|s)?\s+kann\s+ich|bei)\b
    | ich\s+kann\s+(?:dir|ihnen|dabei|damit)[^.]{0,30}\s+nicht\s+(?:helfen|weiterhelfen)
    | (?:je\s+suis\s+)?d[e\u00e9]sol[e\u00e9]e?[,.]?\s+(?:mais\s+)?je\s+ne\s+(?:peux|puis|suis)
    | je\s+ne\s+(?:peux|puis)\s+pas\s+(?:vous\s+|t['\u2019])?(?:aider|assister)
    | (?:lo\s+siento|lo\s+lamento)[,.]?\s+(?:pero\s+)?no\s+(?:puedo|me\s+es\s+posible)
    | no\s+puedo\s+(?:ayudar|asistir)
    | mi\s+dispiace[,.]?\s+(?:ma\s+)?non\s+(?:posso|sono\s+in\s+grado)
    | (?:desculpe|sinto\s+muito|lamento)[,.]?\s+(?:mas\s+)?(?:eu\s+)?n[a\u00e3]o\s+posso
    | (?:het\s+spijt\s+me|sorry)[,.]?\s+(?:maar\s+)?(?:dat\s+kan\s+ik|ik\s+kan)\b[^.]{0,40}\bniet
    | (?:\u043a\s+\u0441\u043e\u0436\u0430\u043b\u0435\u043d\u0438\u044e|\u0438\u0437\u0432\u0438\u043d\u0438\u0442\u0435|\u043f\u0440\u043e\u0441\u0442\u0438\u0442\u0435)[,.]?\s+(?:\u043d\u043e\s+)?\u044f\s+\u043d\u0435\s+\u043c\u043e\u0433\u0443
    | (?:\u5f88?\u62b1\u6b49|\u5bf9\u4e0d\u8d77)[\uff0c,\u3002]?\s*(?:\u4f46)?\u6211(?:\u4e0d\u80fd|\u65e0\u6cd5)
    | \u7533\u3057\u8a33(?:\u3042\u308a\u307e\u305b\u3093|\u3054\u3056\u3044\u307e\u305b\u3093).{0,60}(?:\u3067\u304d\u307e\u305b\u3093|\u3044\u305f\u3057\u304b\u306d\u307e\u3059)
    )""",  # noqa: E501  # one alternative a line reads better than any wrapping
    re.IGNORECASE | re.VERBOSE,
)

_WORD: Final = re.compile(r"\w+")
_ENOUGH_CHARACTERS: Final = 20_000
_LOOP_REPEATS: Final = 8
_LOOP_CHARACTERS: Final = 160
_LOOP_SHARE: Final = 0.5
_LONGEST_UNIT: Final = 200
_PHRASE_WORDS: Final = 4
_FEWEST_PHRASES: Final = 80
_DISTINCT_PHRASES: Final = 0.2


def refusal(text: str) -> str | None:
    """The answer is short and begins by refusing."""
    if len(text) <= REFUSAL_CHARACTERS and _REFUSAL.match(text):
        return "the answer is a refusal"
    return None


def repetition(text: str) -> str | None:
    """The answer ends in a loop that is most of it, or says few things many times.

    A model that is asked to repeat something does so too; a judge's option turns this off.
    """
    if _ends_in_a_loop(text.rstrip()):
        return "the answer ends in a loop"
    words = _WORD.findall(text[-_ENOUGH_CHARACTERS:].casefold())
    phrases = [tuple(words[i : i + _PHRASE_WORDS]) for i in range(len(words) - _PHRASE_WORDS + 1)]
    # Numbers may well come in long rows of the same.
    if len(phrases) < _FEWEST_PHRASES or sum(word.isdigit() for word in words) > len(words) // 2:
        return None
    if len(set(phrases)) < _DISTINCT_PHRASES * len(phrases):
        return "the answer says the same few things over and over"
    return None


def _ends_in_a_loop(text: str) -> bool:
    tail = text[-_LONGEST_UNIT * (_LOOP_REPEATS + 1) :]
    for unit in range(1, min(_LONGEST_UNIT, len(tail) // _LOOP_REPEATS) + 1):
        if tail[-1] != tail[-1 - unit] or not any(map(str.isalpha, tail[-unit:])):
            continue
        same = _same_at_distance(text, unit)
        long_enough = max(_LOOP_CHARACTERS, _LOOP_REPEATS * unit, _LOOP_SHARE * len(text))
        if same + unit >= long_enough:
            return True
    return False


def _same_at_distance(text: str, unit: int) -> int:
    """For how many characters, from the end, each equals the one that is a unit before it."""
    count = 0
    for at in range(len(text) - 1, unit - 1, -1):
        if text[at] != text[at - unit]:
            break
        count += 1
    return count
