"""Remembers which prompts were sent lately: what a new one could have been read from.

Of each conversation the prompts are kept that none has gone on from yet, usually one for each tier.
Memory is bounded: the conversations and the kinds of prompts that were heard of last are kept.
"""

from collections import OrderedDict
from collections.abc import Sequence

from cascade.prefix import Segment
from serving.doctor.calls import Call
from serving.doctor.compare import Comparison, compare

MAX_SESSIONS = 10_000
MAX_KINDS = 2_000
MAX_HEADS = 8

Held = tuple[Call, Comparison]
"""An earlier call, and what became of its prompt in the one that is looked at."""


class Memory:
    """Prompts by session, and by what the sessions of a tenant have in common.

    Args:
        max_sessions: how many conversations are remembered.
        max_kinds: of how many kinds of prompts, for conversations that are not known.
    """

    def __init__(self, *, max_sessions: int = MAX_SESSIONS, max_kinds: int = MAX_KINDS) -> None:
        self._sessions: OrderedDict[tuple[str, ...], list[Call]] = OrderedDict()
        self._kinds: OrderedDict[tuple[str, ...], list[Call]] = OrderedDict()
        self._max_sessions = max_sessions
        self._max_kinds = max_kinds

    def earlier(self, call: Call) -> tuple[list[Held], bool]:
        """Calls that a prompt may go back to, the best last; and whether they are its session's.

        Without any of its own session, those of the tenant whose tools and system prompt are the
        same but for dates, ids and order.
        """
        if own := self._sessions.get((call.tenant, call.session)):
            return _ranked(call, own), True
        return _ranked(call, self._kinds.get(_kind(call), ())), False

    def keep(self, call: Call, held: Sequence[Held]) -> None:
        """Remember a call in the place of those that it goes on from."""
        if call.prompt is None:
            return
        gone_on = [old for old, found in held if found.related and not _forked(found)]
        replaced = {id(old) for old in gone_on if old.tier == call.tier}
        if call.session:
            place = (call.tenant, call.session)
            _put(self._sessions, place, call, replaced)
            if len(self._sessions) > self._max_sessions:
                self._sessions.popitem(last=False)
        kind = _kind(call)
        replaced |= _of_its_session(call, self._kinds.get(kind, ()))
        _put(self._kinds, kind, call, replaced)
        if len(self._kinds) > self._max_kinds:
            self._kinds.popitem(last=False)


def _put(
    where: OrderedDict[tuple[str, ...], list[Call]],
    key: tuple[str, ...],
    call: Call,
    replaced: set[int],
) -> None:
    kept = [old for old in where.pop(key, ()) if id(old) not in replaced]
    where[key] = [*kept, call][-MAX_HEADS:]


def _of_its_session(call: Call, known: Sequence[Call]) -> set[int]:
    """Of a session one call for each tier is enough for others to be held against."""
    if not call.session:
        return set()
    return {id(c) for c in known if c.session == call.session and c.tier == call.tier}


def _forked(found: Comparison) -> bool:
    return found.cause is not None and found.cause.fork


def _ranked(call: Call, known: Sequence[Call]) -> list[Held]:
    """By how much they have in common; of equals the latest is the last."""
    if (prompt := call.prompt) is None:
        return []
    held = [(old, compare(old.prompt, prompt)) for old in known if old.prompt is not None]
    return sorted(held, key=lambda each: (each[1].common, each[1].turns))


def _kind(call: Call) -> tuple[str, ...]:
    segments = call.prompt.segments if call.prompt else {}
    return (call.tenant, *(_masked(segments.get(name)) for name in ("tools", "system")))


def _masked(segment: Segment | None) -> str:
    return segment.under("all") if segment else ""
