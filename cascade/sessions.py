"""Remembers of each conversation how much it had to go up lately: the next turn may have to again.

What a person asks one after the other is about equally hard, and a short "go on" shows none of it.
One escalation counts at once; it takes several turns without one to be forgotten.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from cascade.types import Attempt, ChatRequest, Kind, Outcome

UP = 0.5
"""Of the way to 1 that a turn brings the history which had to go up."""

DOWN = 0.85
"""What is left of it after a turn that did not."""

MAX_SESSIONS = 100_000
_FORGOTTEN = 0.01


class SessionHistory:
    """Escalation by session, from 0 (none lately) to 1; only what is above 0 takes memory.

    Args:
        max_sessions: how many are remembered, those that were heard of last.
    """

    def __init__(self, *, max_sessions: int = MAX_SESSIONS) -> None:
        self._max_sessions = max_sessions
        self._known: OrderedDict[bytes, float] = OrderedDict()

    @property
    def remembered(self) -> int:
        """How many sessions there is anything to remember of."""
        return len(self._known)

    def recall(self, request: ChatRequest) -> ChatRequest:
        """The request with its session's escalation; the same object when there is none."""
        if not self._known or not request.session:
            return request
        escalation = self._known.get(_key(request), 0.0)
        return replace(request, escalation=escalation) if escalation else request

    def learn(self, request: ChatRequest, attempts: Sequence[Attempt]) -> None:
        """A turn is over: it had to go up, or it did not, or nothing answered and nothing is said.

        Args:
            request: whose turn it was.
            attempts: all that were made for it.
        """
        if not request.session or not any(attempt.answered for attempt in attempts):
            return
        known = self._known
        if not (went_up := any(map(_gone_beyond, attempts))) and not known:
            return
        key = _key(request)
        before = known.pop(key, 0.0)
        after = before + (1.0 - before) * UP if went_up else before * DOWN
        if after < _FORGOTTEN:
            return
        known[key] = after
        if len(known) > self._max_sessions:
            known.popitem(last=False)


def _gone_beyond(attempt: Attempt) -> bool:
    """Whether a judge looked at an answer and it was not taken.

    A failed judge or tier also sends a request up, but says nothing of what was asked.
    """
    return (
        attempt.kind is Kind.ANSWER
        and attempt.outcome is Outcome.REJECTED
        and attempt.verdict is not None
    )


def _key(request: ChatRequest) -> bytes:
    whose = f"{len(request.tenant)}:{request.tenant}{request.session}"
    return hashlib.blake2b(whose.encode(errors="surrogatepass"), digest_size=16).digest()
