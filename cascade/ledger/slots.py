"""A cache of slots, each with the last prompt and answer that it worked on (llama.cpp's server).

Its rules are the server's own. A prompt goes to the idle slot that shares the largest part of it,
if that is more than a tenth; otherwise to the slot whose last use is the longest ago. Where most
of what a slot holds would be lost, its prompt is first copied to the host's memory, if there is
such a cache, and one from there is put in its place that fits the new prompt better. Whenever a
prompt begins, those of idle slots are copied there as well.
"""

from dataclasses import dataclass, replace

from cascade.caches import CacheCard
from cascade.ledger.cache import COLD, WEIGHT, Measure, Recent, Warm, differs
from cascade.ledger.runs import common
from cascade.prefix import Chain

SIMILARITY = 0.1
"""Of the new prompt, what must lie in a slot for it to go there: --slot-prompt-similarity."""

LOST = 0.5
"""A slot of which less than this is kept is saved to the host's memory first."""

RESTORED = 0.25
"""What of a saved prompt the new one must share for it to be restored."""

_NEVER = float("-inf")


@dataclass(slots=True, kw_only=True, eq=False)
class _Prompt:
    """What a slot, or the host's memory, holds.

    Attributes:
        certain: bytes of it that were sent; the rest is what an answer's text is cut into.
    """

    salt: str = ""
    elements: bytes = b""
    width: int = 1
    block: float = 1
    last: float = _NEVER
    certain: int = 0
    estimated: bool = False
    busy: bool = False

    @property
    def tokens(self) -> int:
        return int(len(self.elements) // self.width * self.block)

    def shared(self, chain: Chain) -> int:
        """Bytes of the longest common prefix."""
        if self.salt != chain.salt or self.width != chain.width:
            return 0
        return common(self.elements, 0, chain.elements, self.width)

    def begins(self, chain: Chain) -> bool:
        """Whether the chain is all of this, and maybe more."""
        return self.last > _NEVER and self.shared(chain) == len(self.elements)

    def continued_by(self, chain: Chain) -> bool:
        """Whether the chain is all of this and more."""
        return len(self.elements) < len(chain.elements) and self.begins(chain)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a prompt goes: its slot, what is restored into it, and how much it finds, in bytes.

    Saving what the slot holds comes before restoring, and may push something out: `host` is what
    there is in the host's memory then, and `lost` what is nowhere any more.
    """

    slot: _Prompt
    restored: _Prompt | None
    shared: int
    host: list[_Prompt]
    lost: list[_Prompt]

    @property
    def source(self) -> _Prompt:
        """The prompt that is shared."""
        return self.restored or self.slot

    @property
    def found(self) -> "_Found":
        """What the prompt finds there, as it is now."""
        return _Found(shared=self.shared, certain=self.source.certain, last=self.source.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What a prompt shared with another when it was sent, what of that is certain, and its use."""

    shared: int
    certain: int
    last: float


class SlotCache:
    """The slots of one server, and the prompts that its host's memory keeps.

    Args:
        card: how the cache works; its capacity is that of the host's memory.
    """

    def __init__(self, card: CacheCard) -> None:
        self._measure = Measure(card)
        self._host_tokens = card.capacity_tokens or 0
        self._slots = [_Prompt() for _ in range(card.slots)]
        self._host: list[_Prompt] = []
        self._begun: Recent[_Found] = Recent()
        self._lost_age: float | None = None

    def warm(self, chain: Chain, now: float) -> Warm:
        """What of a prompt is warm now, in the slot that it would go to."""
        place = self._place(chain)
        tokens = self._measure.tokens(chain, place.shared)
        if not tokens:
            return COLD
        source = place.source
        age = max(now - source.last, 0.0)
        return Warm(tokens=tokens, age_seconds=age, estimated=source.estimated)

    def began(self, chain: Chain, now: float, call: str = "") -> None:
        """From now on the prompt is in its slot, and the slot is at work."""
        place = self._place(chain)
        self._begun.keep(chain, place.found, call)
        self._fill(place, chain, now)
        place.slot.busy = True

    def ended(self, chain: Chain, now: float, prompt: Chain | None = None) -> None:
        """The slot holds the prompt and its answer, and is idle."""
        working = [slot for slot in self._slots if slot.busy and slot.begins(chain)]
        if working:
            slot = max(working, key=lambda each: len(each.elements))
            _write(slot, chain, now)
        else:
            place = self._place(chain)
            slot = place.slot
            self._fill(place, chain, now)
        if prompt is not None:
            slot.certain = len(prompt.elements)
        slot.busy = False

    def reported(
        self, chain: Chain, cached_tokens: int | None, asked: float, _now: float, call: str = ""
    ) -> None:
        """What was read from the cache for a prompt that was sent after `asked`.

        If what was expected is gone, so is what was last used before it: the server overwrites
        what is the least recently used.
        """
        begun = self._begun.take(chain, call)
        self._mark(chain, estimated=cached_tokens is None)
        if cached_tokens is None:
            return
        found = self._place(chain).found if begun is None else begun
        expected = self._measure.tokens(chain, found.shared)
        if cached_tokens >= expected or not differs(chain, expected, cached_tokens):
            return
        was_guessed = self._measure.length(chain, cached_tokens) >= found.certain
        if found.last <= asked and not was_guessed:
            self._forget(found.last)

    def residence_seconds(self) -> float | None:
        """The age at which prompts are lost lately; None while none was."""
        return self._lost_age

    def oldest(self) -> float | None:
        """When the prompt was last used that goes next; None when a slot is empty."""
        last = min(slot.last for slot in self._slots)
        return None if last == _NEVER else last

    def held_tokens(self, _now: float) -> int:
        """Tokens in the slots and in the host's memory, copies included."""
        return sum(each.tokens for each in (*self._slots, *self._host))

    def _place(self, chain: Chain) -> _Place:
        slots = [s for s in self._slots if not s.busy or s.continued_by(chain)] or self._slots
        slot = max(slots, key=lambda each: each.shared(chain))
        shared = slot.shared(chain)
        if shared > SIMILARITY * len(chain.elements):
            displaces = shared < LOST * len(slot.elements)
        else:
            slot = min(reversed(slots), key=lambda each: each.last)
            shared, displaces = slot.shared(chain), True
        host, lost = self._saved(self._host, slot) if displaces else (self._host, [])
        restored = _restorable(host, slot, chain) if displaces else None
        if restored is not None:
            shared = restored.shared(chain)
        return _Place(slot=slot, restored=restored, shared=shared, host=host, lost=lost)

    def _fill(self, place: _Place, chain: Chain, now: float) -> None:
        slot = place.slot
        lost = place.lost
        host = [each for each in place.host if each is not place.restored]
        _write(slot, chain, now)
        for other in self._slots:
            if other is not slot and not other.busy:
                host, pushed = self._saved(host, other)
                lost = lost + pushed
        self._host = host
        for each in lost:
            self._lose(each, now)

    def _saved(self, host: list[_Prompt], prompt: _Prompt) -> tuple[list[_Prompt], list[_Prompt]]:
        """The host's memory once a slot was copied to it, and what is pushed out of it.

        It holds no prompt that is in another, and none that is longer than itself.
        """
        if not prompt.elements or any(_within(prompt, each) for each in host):
            return host, []
        copy = replace(prompt, busy=False)
        if prompt.tokens > self._host_tokens:
            return host, [copy]
        kept = [each for each in host if not _within(each, prompt)]
        room = self._host_tokens - prompt.tokens - sum(each.tokens for each in kept)
        gone = 0
        while room < 0:
            room += kept[gone].tokens
            gone += 1
        return [*kept[gone:], copy], kept[:gone]

    def _lose(self, prompt: _Prompt, now: float) -> None:
        if any(_within(prompt, slot) for slot in self._slots):
            return
        age, known = now - prompt.last, self._lost_age
        self._lost_age = age if known is None else known + WEIGHT * (age - known)

    def _mark(self, chain: Chain, *, estimated: bool) -> None:
        for slot in self._slots:
            if slot.salt == chain.salt and slot.elements.startswith(chain.elements):
                slot.estimated = estimated

    def _forget(self, last: float) -> None:
        self._host = [each for each in self._host if each.last > last]
        for number, slot in enumerate(self._slots):
            if slot.last <= last:
                self._slots[number] = _Prompt()


def _restorable(host: list[_Prompt], slot: _Prompt, chain: Chain) -> _Prompt | None:
    """The saved prompt that the server would put back: both shares must beat those so far."""
    shared = slot.shared(chain)
    best, kept = None, shared / len(slot.elements) if slot.elements else -1.0
    for each in host:
        found = each.shared(chain)
        share = found / len(each.elements)
        if share >= RESTORED and share > kept and found > shared:
            best, kept, shared = each, share, found
    return best


def _within(one: _Prompt, other: _Prompt) -> bool:
    """Whether one prompt is the beginning of another."""
    return (
        one.salt == other.salt
        and one.width == other.width
        and other.elements.startswith(one.elements)
    )


def _write(slot: _Prompt, chain: Chain, now: float) -> None:
    slot.salt, slot.elements, slot.width = chain.salt, chain.elements, chain.width
    slot.block, slot.last, slot.estimated = chain.block, now, False
    slot.certain = len(chain.elements)
