"""Looks over an answer's own working: what a careful reader notices without knowing the answer.

Are the sums right, does the last number come out of them, were the numbers of the question used,
does the text end where a sentence ends, does it hedge. It calls no model and costs microseconds.
None of it is a verdict by itself: the features are made for a panel's model to weigh.
"""

import math
import re
from collections.abc import Sequence
from typing import Final

from cascade.types import ChatRequest, Completion, Json, Verdict
from judges.equations import Equation, equations, numbers, same
from judges.vocabulary import EVERYDAY, FILLERS, SPELLED, TELLING

LONGEST: Final = 20_000
"""Characters of a question and of an answer that are looked at: their end, where the ask is."""
MONEY: Final = re.compile(
    r"[$\u20ac\u00a3]|\b(?:dollars?|euros?|cents?|cost|price)\b", re.IGNORECASE
)
COUNTED: Final = re.compile(r"how many (?:more |fewer |of the |total )?([a-z]+)", re.IGNORECASE)
UNKNOWN: Final = re.compile(r"\b[xyz]\b\s*[=+\-]|=\s*\d*[xyz]\b", re.IGNORECASE)
SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
NUMBERED_END: Final = re.compile(r"[.!?)\]}\"'\d%]\Z")
MARKUP_LINE: Final = re.compile(r"\n?#+[^\n]*\Z")


class WorkingJudge:
    """Gives features; its score says only whether a sum in the answer is wrong (0) or not (1)."""

    free = True

    def __init__(self, *, name: str = "working") -> None:
        self.name = name
        self.needs: Json = {}

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """Cannot tell of an answer without text."""
        if not completion.text.strip():
            return Verdict(judge=self.name, score=None, reason="there is no text")
        features = features_of(asked(request), completion.text)
        wrong = int(features["wrong_sums"])
        return Verdict(
            judge=self.name,
            score=float(wrong == 0),
            features=features,
            reason=f"{wrong} of {features['sums']:.0f} sums do not work out",
        )


def asked(request: ChatRequest) -> str:
    """The text of the last thing that a person said."""
    for message in reversed(request.messages):
        if message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            parts = content if isinstance(content, list | tuple) else ()
            return "\n".join(str(part["text"]) for part in parts if part.get("type") == "text")
    return ""


def features_of(question: str, answer: str) -> dict[str, float]:
    """All features; the same names for any two texts."""
    question, answer = question[-LONGEST:], answer[-LONGEST:].strip()
    body = MARKUP_LINE.sub("", answer).strip()
    found = equations(body)
    given = numbers(question)
    final = _final(answer)
    return {
        **_sums(found, given + _spelled(question)),
        **_final_number(final, found, given),
        **_expected(question, final),
        **_use(question, body, found, given),
        **_form(body),
        **{name: float(len(p.findall(body.lower()))) for name, p in TELLING.items()},
        "algebra": float(UNKNOWN.search(body) is not None),
        "questions": float(body.count("?")),
    }


def _sums(found: Sequence[Equation], known: list[float]) -> dict[str, float]:
    """Whether sums work out, and whether their numbers come from somewhere."""
    known = list(known)
    sums = wrong = operands = untraced = 0
    for equation in found:
        if equation.is_sum:
            sums += 1
            wrong += not equation.works_out
            operands += len(equation.operands)
            untraced += sum(not _traced(number, known) for number in equation.operands)
        known.append(equation.result)
    return {
        "equations": float(len(found)),
        "sums": float(sums),
        "wrong_sums": float(wrong),
        "wrong_share": wrong / max(1, sums),
        "operands": float(operands),
        "untraced": float(untraced),
        "untraced_share": untraced / max(1, operands),
        "fractional_results": float(sum(not e.result.is_integer() for e in found)),
        "negative_results": float(sum(e.result < 0 for e in found)),
    }


def _traced(number: float, known: Sequence[float]) -> bool:
    return number in EVERYDAY or any(
        same(number, other) or same(number / 100, other) or same(number * 100, other)
        for other in known
    )


def _final_number(
    final: float | None, found: Sequence[Equation], given: Sequence[float]
) -> dict[str, float]:
    """What the answer comes to, and where that comes from."""
    value = final or 0.0
    size = math.log1p(abs(value))
    return {
        "has_final": float(final is not None),
        "final_whole": float(value.is_integer()),
        "final_negative": float(value < 0),
        "final_beyond_cents": float(not same(value * 100, round(value * 100))),
        "final_size": size,
        "final_given": float(value in given),
        "final_computed": float(any(same(value, e.result) for e in found)),
        "final_computed_last": float(bool(found) and same(value, found[-1].result)),
        "final_to_largest": size - math.log1p(max(map(abs, given), default=0.0)),
    }


def _expected(question: str, final: float | None) -> dict[str, float]:
    """Whether the number can be of the kind that was asked for."""
    money = MONEY.search(question) is not None
    fractional = not (final or 0.0).is_integer()
    counted = COUNTED.search(_sentences(question)[-1] if question.strip() else "") is not None
    return {
        "money": float(money),
        "fraction_counted": float(counted and fractional),
        "fraction_not_money": float(not money and fractional),
    }


def _use(
    question: str, body: str, found: Sequence[Equation], given: Sequence[float]
) -> dict[str, float]:
    """How much of the question the answer takes up."""
    wanted = set(given)
    mentioned, summed = set(numbers(body)), {n for e in found for n in e.operands}
    ask = _sentences(question)[-1] if question.strip() else ""
    last = _sentences(body)[-1] if body else ""
    asked_words, told = _words(question), set(re.findall(r"[a-z]+", body.lower()))
    counted = COUNTED.search(ask)
    return {
        "unused": float(len(wanted - mentioned)),
        "unused_share": len(wanted - mentioned) / max(1, len(wanted)),
        "unused_in_sums": len(wanted - summed) / max(1, len(wanted)),
        "question_covered": len(asked_words & told) / max(1, len(asked_words)),
        "new_words": len(told - asked_words - FILLERS) / max(1, len(told)),
        "ask_in_last": len(_words(ask) & _words(last)) / max(1, len(_words(ask))),
        "counted_in_last": float(counted[1][:4].lower() in last.lower()) if counted else 0.5,
    }


def _form(body: str) -> dict[str, float]:
    """How the text is built, and whether it was broken off."""
    return {
        "ends_sentence": float(body.endswith((".", "!"))),
        "ends_well": float(NUMBERED_END.search(body) is not None),
        "unclosed": float(any(body.count(a) != body.count(b) for a, b in ("()", "[]", "<>"))),
        "length": math.log1p(len(body)),
        "sentences": float(len(_sentences(body))),
        "lines": float(body.count("\n")),
        "words_to_numbers": len(body.split()) / max(1, len(numbers(body))),
        "starts_small": float(body[:1].islower()),
    }


def _final(answer: str) -> float | None:
    """The number that the answer comes to: of its last sentence with one, what it is equal to."""
    for sentence in reversed(_sentences(answer)):
        if not (found := numbers(sentence)):
            continue
        told = numbers(sentence.rsplit("=", 1)[1]) if "=" in sentence else []
        return told[0] if told else found[-1]
    return None


def _spelled(text: str) -> list[float]:
    return [SPELLED[word] for word in re.findall(r"[a-z]+", text.lower()) if word in SPELLED]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower())) - FILLERS


def _sentences(text: str) -> list[str]:
    """At least one; none of several is empty."""
    return [piece for piece in SENTENCE_END.split(text) if piece.strip()] or [text]
