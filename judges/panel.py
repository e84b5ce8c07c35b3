"""Several judges in order, cheapest first, as one: an answer is as good as its worst verdict.

A final verdict ends the panel, so that a hard fault spares the dearer judges. One member that
cannot tell makes the panel unable to tell, unless a final verdict settles it.
"""

from collections.abc import Sequence
from typing import Any

from cascade.errors import ConfigError
from cascade.protocols import Judge
from cascade.types import ChatRequest, Completion, Json, Verdict, total


class PanelJudge:
    """Asks its members in order; the score is the smallest of theirs."""

    def __init__(self, *, name: str, members: Sequence[Judge]) -> None:
        if not members:
            raise ConfigError(f"judge {name!r}: a panel needs at least one member")
        self.name = name
        self._members = tuple(members)
        needs: dict[str, Any] = {}
        for member in members:
            for need, value in member.needs.items():
                needs[need] = max(value, needs.get(need, value))
        self.needs: Json = needs

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """The worst verdict, with the features of all that were asked."""
        verdicts: list[Verdict] = []
        for member in self._members:
            verdicts.append(await member.judge(request, completion))
            if verdicts[-1].final:
                return self._verdict(verdicts, verdicts[-1])
        unsure = [verdict for verdict in verdicts if verdict.score is None]
        return self._verdict(verdicts, unsure[0] if unsure else min(verdicts, key=_score))

    def _verdict(self, asked: Sequence[Verdict], decisive: Verdict) -> Verdict:
        return Verdict(
            judge=self.name,
            score=decisive.score,
            final=decisive.final,
            features={f"{v.judge}.{k}": x for v in asked for k, x in v.features.items()},
            reason=f"{decisive.judge}: {decisive.reason}",
            cost=total([verdict.cost for verdict in asked]),
        )


def _score(verdict: Verdict) -> float:
    return 1.0 if verdict.score is None else verdict.score
