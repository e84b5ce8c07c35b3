"""Which tiers may be asked, and why the others may not: they cannot serve it, or it costs too much.

A budget compares expectations, so a call that turns out dearer or slower than it was quoted can go
over. What cannot be expected is treated by what is at stake: money that was spent is gone, so a
call without a known price is not begun, while a call that is too slow is cut when its time is over.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cascade.quote import Quote
from cascade.types import Attempt, Budget, Cost, Kind, Step, total


@dataclass(slots=True, kw_only=True)
class Candidates:
    """The tiers of one request.

    Attributes:
        steps: those that its policy may ever take.
        quotes: of the tiers that may be asked.
        unfit: why the others may not, by tier.
        dearest: the largest quote of a tier that can serve the request; None without any price.
        over_budget: whether any is left out for the budget's sake.
    """

    steps: Sequence[Step]
    quotes: dict[str, Quote] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    dearest: Quote | None = None
    over_budget: bool = False
    _untold: list[str] = field(default_factory=list)

    def add(self, quote: Quote) -> None:
        """A tier that can serve the request."""
        self.quotes[quote.tier] = quote
        if quote.dollars is None:
            return
        if self.dearest is None or quote.dollars > (self.dearest.dollars or 0):
            self.dearest = quote

    def leave_out(self, tier: str, why: str) -> None:
        """A tier may not be asked from here on; why is the rest of a sentence about it."""
        self.quotes.pop(tier, None)
        self.unfit[tier] = why
        self._untold.append(tier)

    def hold_to(self, budget: Budget, attempts: Sequence[Attempt], elapsed: float) -> None:
        """Leave out the tiers whose next call does not fit into what the client allows.

        Args:
            budget: for the whole request.
            attempts: so far.
            elapsed: seconds since the request began.
        """
        spent = total([attempt.cost for attempt in attempts])
        asked = Counter(a.step.tier for a in attempts if a.kind is Kind.ANSWER)
        for name, times in Counter(step.tier for step in self.steps).items():
            if name not in self.quotes or times <= asked[name]:
                continue
            judged = all(step.judge for step in self.steps if step.tier == name)
            if why := _excess(budget, self.quotes[name], spent, elapsed, judged=judged):
                self.over_budget = True
                self.leave_out(name, why)

    def news(self) -> str:
        """Why tiers of the policy are left out, as far as it was not told yet."""
        told, self._untold = self._why(self._untold), []
        return told

    def why(self) -> str:
        """Why tiers of the policy are left out; empty when none is."""
        return self._why(self.unfit)

    def _why(self, names: Iterable[str]) -> str:
        wanted, names = dict.fromkeys(step.tier for step in self.steps), set(names)
        return "; ".join(f"{name} {self.unfit[name]}" for name in wanted if name in names)


def _excess(
    budget: Budget, quote: Quote, spent: Cost | None, elapsed: float, *, judged: bool
) -> str | None:
    """Why a call does not fit into what is left of the budget; None when it does.

    Where its answer is judged in any case, what that is expected to cost is a part of it.
    """
    expected = quote.dollars
    if expected is not None and judged:
        expected += quote.judge_dollars
    if budget.dollars is not None and (why := _dearer(budget.dollars, expected, spent)):
        return why
    return None if budget.seconds is None else _slower(budget.seconds, quote.seconds, elapsed)


def _dearer(allowed: Decimal, expected: Decimal | None, spent: Cost | None) -> str | None:
    if expected is None:
        return f"has no known price to hold against the {_usd(allowed)} allowed"
    if spent is None:
        return f"is not asked, as what was spent of the {_usd(allowed)} allowed is not known"
    if spent.total + expected <= allowed:
        return None
    more = " more" if spent.total else ""
    left = _usd(max(Decimal(0), allowed - spent.total))
    return f"is expected to cost {_usd(expected)}{more}, and {left} is left"


def _usd(dollars: Decimal) -> str:
    return f"${dollars.normalize():f}"


def _slower(allowed: float, expected: float | None, elapsed: float) -> str | None:
    left = allowed - elapsed
    if left <= 0.0:
        return f"cannot begin, as the {allowed:g} s allowed are over"
    if expected is None or expected <= left:
        return None
    return f"is expected to take {expected:.3g} s, and {left:.3g} s is left"
