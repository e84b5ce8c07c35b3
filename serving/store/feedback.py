"""What somebody said of an answer, as it is kept beside the request."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

WORDS: Mapping[str, float] = MappingProxyType(
    {
        **dict.fromkeys(("good", "right", "correct", "up", "accept", "accepted", "yes"), 1.0),
        **dict.fromkeys(("bad", "wrong", "incorrect", "down", "reject", "rejected", "no"), 0.0),
    }
)
"""What a label stands for, in any case and without blanks around it, where there is no score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """One source's word on one request; a later one of the same source replaces it.

    Attributes:
        request_id: the request's, without what an API puts in front of it.
        tenant: who says so; it counts only when the request is this tenant's.
        source: a person, a program or a test; empty when it was not named.
        given_at: when it came in, seconds since the epoch.
        score: how good the answer is, in [0, 1].
        label: the same as a word, such as good or bad.
        correction: what the answer should have been.
        comment: anything else.
        compared_to: the request whose answer this one was laid beside; None when there was none.
        preferred: which was better: "this", "other" or "same".
    """

    request_id: str
    tenant: str
    source: str
    given_at: float
    score: float | None
    label: str | None
    correction: str | None
    comment: str | None
    compared_to: str | None = None
    preferred: str | None = None
