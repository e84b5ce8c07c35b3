"""What keeps a prompt from being warm, in words, and what to change about it.

The one place for these sentences: findings, differences of two requests and the documentation all
say the same.
"""

from dataclasses import dataclass

WHERE = {
    "tools": "the tools",
    "system": "the system prompt",
    "pack": "the retrieved documents",
    "history": "the history",
}

_MANY = frozenset({"tools", "pack"})
"""Segments whose name is a plural."""

_VOLATILE = {
    "dates": "a date or time in {where} changes from request to request",
    "ids": "an id in {where} changes from request to request",
    "mixed": "dates, ids or the order of parts in {where} change from request to request",
}
_SAID = {
    "order": "{where} came in another order",
    "keys": "the keys within {where} came in another order",
    "added": "{where} {were} not there before",
    "removed": "{where} {were} left out",
    "changed": "{where} changed",
    "cut": "the history was cut",
    "rewritten": "the history was rewritten (summary or compaction)",
    "edited": "a message of the history was changed after it had been sent",
    "latest": "the latest message was sent differently once it was history",
    "side_call": "a sub-agent call: the same session with another system prompt",
    "expired": "nothing changed: the entry expired",
    "evicted": "nothing changed: the entry was gone before its time",
    "together": "sent before the first answer had begun: until then there is no entry to read",
    "replica": "another replica was asked, which had not seen this prompt",
    "too_short": "shorter than the shortest prompt that the tier caches",
    "first_here": "another tier answered before: the tier had not seen this conversation",
    "between": "another tier answered in between: the tier had not seen the last turns",
}

_MOVE = (
    "Put it into the latest message, or round it (a date instead of a time): what comes before it "
    "stays warm, what comes after it does not."
)
_ADVICE = {
    "dates": _MOVE,
    "ids": _MOVE,
    "mixed": _MOVE,
    "order": "Sort them by a key that does not change.",
    "keys": "Write the JSON with its keys in one order, for example sorted.",
    "changed": "Send the same in every turn of a conversation; put what differs into the latest "
    "message.",
    "cut": "Cut rarely and much at once: each cut makes the rest of the history cold.",
    "rewritten": "Compact rarely, and ask for the summary in the same conversation (same tools and "
    "system prompt), so that the call that writes it reads the warm prefix.",
    "edited": "Only ever append: leave messages that were sent as they are.",
    "latest": "Send reminders as messages of their own that stay, or leave them out.",
    "side_call": "Give side calls the same tools and system prompt and put their task into the "
    "latest message, or accept that each begins cold.",
    "expired": "See `cascade cache ttl`: a longer time to live or a ping may pay.",
    "evicted": "The cache is too small for what is asked of it, or requests go elsewhere: see the "
    "ledger's capacity and the replicas' rule.",
    "together": "Send one request first, or set `fan_out` on the tier.",
    "replica": "Let the sessions stick to their replica, or let the choice look at the ledger.",
    "too_short": "Nothing is to be gained here, unless the prompt's stable part grows.",
    "first_here": "Escalation has this price; the `utility` policy weighs it before it goes up.",
    "between": "Escalation has this price; the `utility` policy weighs it before it goes up.",
}
_OF_PACK = {
    "changed": "Documents that change with each question belong behind the history, into the "
    "latest message.",
    "order": "Sort them by their id rather than by their score.",
}

FORKS = frozenset({"rewritten", "cut", "side_call"})
"""Prompts that leave the one they come from, and with it what was warm."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why tokens were not read from the cache: what happened, and in which segment if in one."""

    kind: str
    segment: str = ""

    @property
    def key(self) -> str:
        """Its name for programs."""
        return f"{self.segment}_{self.kind}" if self.segment else self.kind

    @property
    def fork(self) -> bool:
        """Whether the prompt branched off another."""
        return self.kind in FORKS

    @property
    def said(self) -> str:
        """What happened, without the numbers of a case."""
        template = _VOLATILE.get(self.kind) or _SAID[self.kind]
        were = "were" if self.segment in _MANY else "was"
        return template.format(where=WHERE.get(self.segment, ""), were=were)

    def told(self, detail: str) -> str:
        """The same with the numbers of a case, if there are any."""
        if not detail:
            return self.said
        said = self.said
        return f"{said[:-1]}: {detail})" if said.endswith(")") else f"{said} ({detail})"

    @property
    def advice(self) -> str:
        """What to change, in a sentence."""
        if self.segment == "pack" and self.kind in _OF_PACK:
            return _OF_PACK[self.kind]
        return _ADVICE["changed" if self.kind in {"added", "removed"} else self.kind]
