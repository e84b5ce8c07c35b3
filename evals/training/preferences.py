"""What a comparison of two answers says of each of them, where nobody said it outright.

A comparison says which answer is better and not whether either will do. Of two values that may be
anything between 0 and 1, the better one is 2/3 and the other 1/3 in the mean; when one of them is
known to be w, a better one is (1 + w)/2 in the mean and a worse one w/2. So a comparison becomes
labels that keep the order and claim no more, and a score that somebody gave always goes first.

It is a label of two tiers only when both answered the same prompt: else the prompts are compared as
much as the answers.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

BETTER, WORSE, EVEN = 2 / 3, 1 / 3, 1 / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One answer of a comparison.

    Attributes:
        tier: that answered.
        prompt: hash of the prompt; empty when it was not kept.
        word: what was said of the answer itself, in [0, 1]; None for nothing.
    """

    tier: str
    prompt: str
    word: float | None


def unfit(this: Answered, other: Answered) -> str | None:
    """Why two answers that were compared say nothing of their tiers; None when they do."""
    if not this.prompt or this.prompt != other.prompt:
        return "two answers were compared that are not to the same prompt"
    if this.tier == other.tier:
        return "two answers of one tier were compared"
    return None


def labels(pairs: Iterable[tuple[Answered, Answered, str]]) -> dict[str, float]:
    """By tier, the label that comparisons of answers to one prompt give.

    Args:
        pairs: this answer, the other one, and which is preferred: this, other or same.
    """
    told: dict[str, dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    for this, other, preferred in pairs:
        for mine, theirs, better in (
            (this, other, preferred == "this"),
            (other, this, preferred == "other"),
        ):
            outright = mine.word is not None
            word = mine.word
            if word is None:
                word = beside(theirs.word, None if preferred == "same" else better)
            told[mine.tier][outright].append(word)
    return {tier: _mean(words) for tier, words in told.items()}


def beside(theirs: float | None, better: bool | None) -> float:
    """What an answer is worth that was laid beside another one.

    Args:
        theirs: what was said of the other one, in [0, 1]; None for nothing.
        better: whether it is the better of the two; None: they are as good.
    """
    if better is None:
        return EVEN if theirs is None else theirs
    if theirs is None:
        return BETTER if better else WORSE
    return (1.0 + theirs) / 2.0 if better else theirs / 2.0


def _mean(words: Mapping[bool, list[float]]) -> float:
    """Of what was said outright, if anything was."""
    found = words[True] or words[False]
    return sum(found) / len(found)
