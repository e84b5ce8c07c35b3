"""When a growing answer may go out before it is whole, and the note that it did."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRule:
    """One look at the start of an answer; from there on a confident one streams live.

    Attributes:
        after_tokens: how long the start is that is looked at. An answer that ends before that is
            judged when it is whole, as any other.
        at: the score of the start from which on the answer is released.
        judge: who looks; None: the judge of the step.
    """

    after_tokens: int
    at: float
    judge: str | None = None

    def met_by(self, score: float | None) -> bool:
        """Whether a start with that score is released; one that nobody could tell about is not."""
        return score is not None and score >= self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """An answer was released while it grew: by whom, after how many tokens, and at what score."""

    judge: str
    tokens: int
    score: float
    at: float

    def __str__(self) -> str:
        return f"{self.judge} gives its first {self.tokens} tokens {self.score:.3f}"
