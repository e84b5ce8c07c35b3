"""Which prefixes were used and when, so that a long prompt costs a few comparisons and not a walk.

A radix tree of runs: each holds consecutive elements of chains that were last used together. An
element is reached by exactly one path, so a prefix that many prompts share is kept once. A run is
never younger than the one it hangs from, and of one prompt the tail counts as the oldest: the
oldest run of all is therefore always a leaf, and what goes first is its tail.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from cascade.prefix import Chain

_NEVER = float("-inf")


class Held(NamedTuple):
    """What a cache holds of a chain: bytes from its beginning, when last used, and whether sure."""

    length: int
    last: float
    estimated: bool


Trail = list[tuple[int, float]]
"""Of a chain's known part: where each run on its path ends, in bytes, and when it was last used."""

NOTHING = Held(0, _NEVER, estimated=False)


def common(one: bytes, start: int, other: bytes, width: int) -> int:
    """Bytes of whole elements that `one`, from `start` on, shares with the beginning of `other`.

    Equality of prefixes is monotone, so halves are compared instead of elements: no byte is
    compared more than twice.
    """
    low, high = 0, min(len(one) - start, len(other)) // width
    while low < high:
        middle = (low + high + 1) // 2
        if other.startswith(one[start + low * width : start + middle * width], low * width):
            low = middle
        else:
            high = middle - 1
    return low * width


class Run:
    """Consecutive elements with the same last use; its children go on where it ends."""

    __slots__ = ("children", "elements", "estimated", "last", "parent", "width")

    def __init__(self, elements: bytes, width: int, parent: "Run | None", last: float) -> None:
        self.elements = elements
        self.width = width
        self.parent = parent
        self.children: dict[bytes, Run] | None = None
        self.last = last
        self.estimated = False


class RunTree:
    """Runs by salt, in the order of their last use.

    Attributes:
        size: elements held.
    """

    def __init__(self) -> None:
        self.size = 0
        self._roots: dict[tuple[str, int], Run] = {}
        self._order: OrderedDict[Run, tuple[str, int]] = OrderedDict()

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self._order)

    @property
    def oldest(self) -> float | None:
        """When that was last used which goes next; None when there is nothing."""
        return next(iter(self._order)).last if self._order else None

    def find(self, chain: Chain, since: float = _NEVER) -> Held:
        """The longest prefix of the chain all of which was used since then."""
        node = self._roots.get((chain.salt, chain.width))
        if node is None:
            return NOTHING
        elements, width, at = chain.elements, chain.width, 0
        last, estimated = _NEVER, False
        while (children := node.children) is not None:
            node = children.get(elements[at : at + width])
            if node is None or node.last < since:
                break
            last = node.last
            estimated = estimated or node.estimated
            if not elements.startswith(node.elements, at):
                at += common(elements, at, node.elements, width)
                break
            at += len(node.elements)
        return Held(at, last, estimated)

    def trail(self, chain: Chain) -> Trail:
        """The chain's known part, run by run."""
        return [(end, run.last) for end, run in self._path(chain)]

    def mark(self, chain: Chain, *, estimated: bool) -> None:
        """Says of the runs that make up the chain whether they rest on an estimate."""
        at = 0
        for end, run in self._path(chain):
            if end - at == len(run.elements):
                run.estimated = estimated
            at = end

    def use(self, chain: Chain, now: float) -> Trail:
        """The whole chain is in the cache; `now` is later than at any use before.

        Returns:
            The trail of what was known of it before.
        """
        trail: Trail = []
        path: list[Run] = []
        elements, width, at = chain.elements, chain.width, 0
        if not elements:
            return trail
        key = (chain.salt, width)
        node = self._roots.get(key) or self._roots.setdefault(key, Run(b"", width, None, _NEVER))
        while at < len(elements):
            child = node.children.get(elements[at : at + width]) if node.children else None
            if child is None:
                self.size += (len(elements) - at) // width
                _extend(path, node, elements[at:])
                break
            if elements.startswith(child.elements, at):
                at += len(child.elements)
            else:
                shared = common(elements, at, child.elements, width)
                child = _split(child, shared)
                at += shared
            trail.append((at, child.last))
            path.append(child)
            node = child
        self._touch(path, key, now)
        return trail

    def trim(self, size: int) -> list[tuple[int, float]]:
        """Drops what is the oldest until so many elements are left.

        Returns:
            How many were dropped at a time, and when they were last used.
        """
        dropped: list[tuple[int, float]] = []
        while self.size > size:
            run = next(iter(self._order))
            held = len(run.elements) // run.width
            gone = min(self.size - size, held)
            dropped.append((gone, run.last))
            if gone == held:
                self._remove(run)
            else:
                self.size -= gone
                run.elements = run.elements[: (held - gone) * run.width]
        return dropped

    def forget(self, last: float, *, at_most: int | None = None) -> None:
        """Drops what was last used then or before; at most so many runs, the oldest first."""
        while at_most != 0 and self._order:
            run = next(iter(self._order))
            if run.last > last:
                return
            self._remove(run)
            if at_most is not None:
                at_most -= 1

    def _path(self, chain: Chain) -> Iterator[tuple[int, Run]]:
        """The runs of the chain's known part, each with where the chain leaves it, in bytes."""
        node = self._roots.get((chain.salt, chain.width))
        elements, width, at = chain.elements, chain.width, 0
        while node is not None and node.children is not None:
            node = node.children.get(elements[at : at + width])
            if node is None:
                return
            whole = elements.startswith(node.elements, at)
            at += len(node.elements) if whole else common(elements, at, node.elements, width)
            yield at, node
            if not whole:
                return

    def _touch(self, path: list[Run], key: tuple[str, int], now: float) -> None:
        order = self._order
        for run in reversed(path):
            run.last = now
            order[run] = key
            order.move_to_end(run)

    def _remove(self, run: Run) -> None:
        """Drops a leaf, and its salt with its last one."""
        key = self._order.pop(run)
        self.size -= len(run.elements) // run.width
        parent = run.parent
        if parent is None or parent.children is None:
            return
        del parent.children[run.elements[: run.width]]
        if not parent.children:
            parent.children = None
            if parent.parent is None:
                del self._roots[key]


def _extend(path: list[Run], node: Run, rest: bytes) -> None:
    """Adds what is new below the end of a path; a leaf that is used now anyway only grows."""
    if node.children is None and path:
        node.elements += rest
        return
    run = Run(rest, node.width, node, _NEVER)
    if node.children is None:
        node.children = {}
    node.children[rest[: node.width]] = run
    path.append(run)


def _split(run: Run, length: int) -> Run:
    """Cuts a run in two, in bytes: a new one before it takes its beginning and its place."""
    head = Run(run.elements[:length], run.width, run.parent, run.last)
    head.estimated = run.estimated
    if run.parent is not None and run.parent.children is not None:
        run.parent.children[run.elements[: run.width]] = head
    run.elements = run.elements[length:]
    run.parent = head
    head.children = {run.elements[: run.width]: run}
    return head
