"""Two prompts side by side, segment by segment: what is equal, and what it is that is not."""

from dataclasses import dataclass

from cascade.prefix import Segment
from serving.doctor.calls import STABLE, Prompt, parts_of
from serving.doctor.compare import Comparison, change, compare

NAMES = (*STABLE, "history", "suffix")

_MASKED = {
    "dates": "the same but for dates and times",
    "ids": "the same but for ids",
    "mixed": "the same but for dates, ids and order",
    "order": "the same parts in another order",
    "keys": "the same but for the order of keys",
    "added": "only in the second",
    "removed": "only in the first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDifference:
    """One segment of two prompts; tokens are None where a prompt has none of it."""

    name: str
    before_tokens: int | None
    after_tokens: int | None
    equal: bool
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two prompts: by segment, and what that comes to.

    Attributes:
        common: share of the later prompt's tokens that come before the change, from 0 to 1; where
            in a part the change is, hashes do not tell, so it may be a part more.
    """

    segments: tuple[SegmentDifference, ...]
    found: Comparison
    common: float


def difference(before: Prompt, after: Prompt) -> Difference:
    """What two prompts have in common."""
    found = compare(before, after)
    return Difference(
        segments=tuple(_segments(before, after)),
        found=found,
        common=found.common / after.tokens if after.tokens else 1.0,
    )


def _segments(before: Prompt, after: Prompt) -> list[SegmentDifference]:
    names = [name for name in NAMES if name in before.segments or name in after.segments]
    return [_segment(name, before.segments.get(name), after.segments.get(name)) for name in names]


def _segment(name: str, old: Segment | None, new: Segment | None) -> SegmentDifference:
    cause = change(old, new, name)
    return SegmentDifference(
        name=name,
        before_tokens=old.tokens if old else None,
        after_tokens=new.tokens if new else None,
        equal=cause is None,
        said="equal" if cause is None else _MASKED.get(cause.kind) or _parts(old, new),
    )


def _parts(old: Segment | None, new: Segment | None) -> str:
    was, now = (tuple(each.parts) if each else () for each in (old, new))
    if max(parts_of(old), parts_of(new)) <= 1:
        return "changed"
    same = 0
    while same < min(len(was), len(now)) and was[same] == now[same]:
        same += 1
    kept = len(set(was) & set(now))
    return f"parts: {parts_of(old)}, now {parts_of(new)}; the first {same} are equal, {kept} in all"
