"""Finds where two prompts part, and what was done to the one to make the other.

Segments are compared in the order in which a model reads them: what comes after the first change is
cold whatever it is, so the first change is the cause.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cascade.prefix import Mask, Segment
from serving.doctor.calls import STABLE, Prompt, parts_of
from serving.doctor.causes import Cause

MASKS: tuple[Mask, ...] = ("dates", "ids")
_REPLACED = frozenset({"changed", "added", "removed"})


class Comparison(NamedTuple):
    """A prompt held against one that was sent before it. Tokens are the later prompt's, about.

    Attributes:
        cause: of the first change; None when the later prompt only goes on, or begins anew.
        detail: numbers of this case, to be put in brackets after the cause; may be empty.
        common: tokens before the first change.
        possible: tokens that could be common, had nothing been changed.
        turns: how many messages are the same from the first on.
        related: they are of one conversation.
        goes_on: the one is the beginning of the other.
    """

    common: int
    possible: int
    turns: int
    cause: Cause | None = None
    detail: str = ""
    related: bool = True
    goes_on: bool = False


def compare(before: Prompt, after: Prompt) -> Comparison:
    """What became of a prompt in a later one."""
    aligned = _aligned(before, after)
    if before.stable == after.stable:
        return _conversation(before, after, aligned)
    name, cause, shared = _first_change(before, after)
    old, new = before.segments.get(name), after.segments.get(name)
    possible = min(before.tokens, after.tokens)
    common = min(shared + _equal_parts(old, new), possible)
    if not aligned.same:
        return _apart(before, after, cause, common)
    return Comparison(
        cause=cause,
        detail=_counts(old, new),
        common=common,
        possible=possible,
        turns=aligned.same,
    )


def _first_change(before: Prompt, after: Prompt) -> tuple[str, Cause, int]:
    """The first segment that changed of those before the conversation; and tokens before it."""
    shared = 0
    for name in STABLE:
        new = after.segments.get(name)
        if cause := change(before.segments.get(name), new, name):
            return name, cause, shared
        shared += new.tokens if new else 0
    raise ValueError("nothing changed before the conversation")


def _apart(before: Prompt, after: Prompt, cause: Cause, common: int) -> Comparison:
    """Two conversations whose tools, system prompts or documents differ."""
    possible = min(before.tokens, after.tokens)
    if cause.kind not in _REPLACED:  # they could have their stable part in common
        possible = min(before.stable_tokens, after.stable_tokens)
    elif _replaced(before, after, "system"):
        cause = Cause("side_call")
    else:  # other tools, or other documents, for another task
        return Comparison(common=common, possible=common, turns=0, related=False)
    return Comparison(cause=cause, common=common, possible=possible, turns=0, related=False)


def change(old: Segment | None, new: Segment | None, name: str) -> Cause | None:
    """What was done to a segment; None when nothing was."""
    if old is None or new is None:
        return None if old is new else Cause("removed" if new is None else "added", name)
    if old.raw == new.raw:
        return None
    if old.under("order") == new.under("order"):
        moved = old.parts != new.parts and sorted(old.parts) == sorted(new.parts)
        return Cause("order" if moved else "keys", name)
    for mask in MASKS:
        if old.under(mask) == new.under(mask):
            return Cause(mask, name)
    return Cause("mixed" if old.under("all") == new.under("all") else "changed", name)


class _Aligned(NamedTuple):
    """Two conversations from the same message on: the first that the log has of both.

    Attributes:
        start: how many messages come before it.
        same: how many are the same from the first on, those before it taken as such.
    """

    old: Sequence[str]
    new: Sequence[str]
    start: int
    same: int


def _conversation(before: Prompt, after: Prompt, aligned: _Aligned) -> Comparison:
    """Prompts that are the same up to where the conversation begins."""
    same = aligned.same
    possible = min(before.tokens, after.tokens)
    if same in {before.messages, after.messages}:  # it goes on, or went back to an earlier turn
        return Comparison(common=possible, possible=possible, turns=same, goes_on=True)
    common = min(after.stable_tokens + after.tokens_until(same), possible)
    kind, kept = _rewriting(before, after, aligned)
    if kind is None:  # another conversation, or another last question
        return Comparison(common=common, possible=common, turns=same, related=same > 0)
    detail = ""
    if kind in {"cut", "rewritten"}:
        detail = f"{before.messages} messages are now {kept}"
    elif kind == "edited":
        detail = f"message {same + 1} of {after.messages}"
    cause = _dated(before, after) or Cause(kind)
    return Comparison(cause=cause, detail=detail, common=common, possible=possible, turns=same)


def _rewriting(before: Prompt, after: Prompt, aligned: _Aligned) -> tuple[str | None, int]:
    """How a conversation that does not simply go on was changed; and how long it is without news.

    The tail that both have, ending with what was asked last before, tells a cut (only left out)
    from a summary (something shorter instead) from a change in place.
    """
    old, new = aligned.old, aligned.new
    gone, same = after.messages - len(new), max(aligned.same - aligned.start, 0)
    if (last := _last(new, old[-1], same)) is None:
        if aligned.same >= before.history:
            return ("latest" if aligned.same < after.history else None), 0
        if not aligned.same and not after.history:
            return None, 0
        return ("rewritten" if after.messages < before.messages else "edited"), after.history
    kept = 1
    while kept < min(last + 1, len(old)) - same and new[last - kept] == old[-1 - kept]:
        kept += 1
    instead, dropped = last + 1 - kept - same, len(old) - kept - same
    if not instead:
        return "cut", gone + last + 1
    return ("rewritten" if instead < dropped else "edited"), gone + last + 1


def _dated(before: Prompt, after: Prompt) -> Cause | None:
    """A history as long as before that differs in dates or ids only."""
    old, new = before.segments.get("history"), after.segments.get("history")
    if old is None or new is None or parts_of(old) != parts_of(new):
        return None
    cause = change(old, new, "history")
    return cause if cause and cause.kind in {*MASKS, "mixed"} else None


def _aligned(before: Prompt, after: Prompt) -> _Aligned:
    """The two from the first message on that the log has of both.

    Where there is none they are compared from the first that each has: a long history was cut.
    """
    start = max(before.skipped, after.skipped)
    if start >= min(before.messages, after.messages):
        return _Aligned(before.turns, after.turns, 0, 0)
    old, new = before.turns[start - before.skipped :], after.turns[start - after.skipped :]
    same = _common(old, new)
    return _Aligned(old, new, start, start + same if same else 0)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    length = min(len(old), len(new))
    if old[:length] == new[:length]:
        return length
    return next(i for i in range(length) if old[i] != new[i])


def _last(parts: Sequence[str], wanted: str, first: int) -> int | None:
    return next((i for i in range(len(parts) - 1, first - 1, -1) if parts[i] == wanted), None)


def _replaced(before: Prompt, after: Prompt, name: str) -> bool:
    cause = change(before.segments.get(name), after.segments.get(name), name)
    return cause is not None and cause.kind in _REPLACED


def _equal_parts(old: Segment | None, new: Segment | None) -> int:
    """Tokens of the parts that are equal from the first on."""
    if old is None or new is None or not new.parts:
        return 0
    return new.tokens * _common(old.parts, new.parts) // len(new.parts)


def _counts(old: Segment | None, new: Segment | None) -> str:
    was, now = parts_of(old), parts_of(new)
    return f"{was} are now {now}" if was != now else ""
