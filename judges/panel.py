"""Several judges in order, cheapest first, as one.

A final verdict ends the panel, so that a hard fault spares the dearer judges. What the members say
is put together in one of two ways. Without an artifact an answer is as good as its worst verdict,
and one member that cannot tell makes the panel unable to tell; a member that never gives a score
has no say. With one, the fitted model weighs the features of all members: its score is the
probability that the answer is acceptable, and it also says what the answers of higher tiers would
be worth.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cascade.early import free, growing
from cascade.errors import ConfigError
from cascade.protocols import Judge
from cascade.types import ChatRequest, Completion, Json, Verdict, total
from judges.fitted import PanelModel, load_model


class PanelJudge:
    """Asks its members in order.

    Args:
        name: how verdicts call it.
        members: cheapest first.
        artifact: a model that `cascade judges fit` wrote for these members; None: the worst counts.
        strict: refuse to serve when a tier's model is not the one that the artifact was fitted on.
        base: folder that the artifact's path starts from.

    Attributes:
        members: see above.
        model: of the artifact.
        strict: see above.
        growing: whether it can judge an answer that still grows: where every member can.
        free: whether no member asks a model or starts a process.
    """

    def __init__(
        self,
        *,
        name: str,
        members: Sequence[Judge],
        artifact: str | None = None,
        strict: bool = False,
        base: Path = Path(),
    ) -> None:
        if not members:
            raise ConfigError(f"judge {name!r}: a panel needs at least one member")
        self.name = name
        self.strict = strict
        self.model: PanelModel | None = load_model(base / artifact) if artifact else None
        self.members = tuple(members)
        self.growing = all(map(growing, members))
        self.free = all(map(free, members))
        needs: dict[str, Any] = {}
        for member in members:
            for need, value in member.needs.items():
                needs[need] = max(value, needs.get(need, value))
        self.needs: Json = needs

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """One verdict, with the features of all members that were asked."""
        verdicts: list[Verdict] = []
        for member in self.members:
            verdicts.append(await member.judge(request, completion))
            if verdicts[-1].final:
                return self._verdict(verdicts, verdicts[-1])
        if self.model is not None:
            return self._verdict(verdicts, self._weighed(self.model, verdicts, completion.tier))
        telling = [v for v, m in zip(verdicts, self.members, strict=True) if gives_scores(m)]
        unsure = [verdict for verdict in telling or verdicts if verdict.score is None]
        return self._verdict(verdicts, unsure[0] if unsure else min(telling, key=_score))

    def _weighed(self, model: PanelModel, asked: Sequence[Verdict], tier: str) -> Verdict:
        judged = model.manifest.judged
        if tier != judged:
            reason = f"fitted on answers of {judged}, which says nothing of {tier}'s"
            return Verdict(judge=self.name, score=None, reason=reason)
        found = features_of(asked)
        if missing := model.missing(found):
            unsure = [f"{v.judge}: {v.reason}" for v in asked if v.score is None]
            reason = f"{missing[0]} is missing ({'; '.join(unsure) or 'no member gave it'})"
            return Verdict(judge=self.name, score=None, reason=reason)
        chances = model(found)
        score = chances.pop(judged)
        others = ", ".join(f"{name} {chance:.2f}" for name, chance in chances.items())
        reason = f"acceptable with {score:.2f}" + (f"; {others}" if others else "")
        return Verdict(judge=self.name, score=score, others=chances, reason=reason)

    def _verdict(self, asked: Sequence[Verdict], decisive: Verdict) -> Verdict:
        own = decisive.judge == self.name
        return Verdict(
            judge=self.name,
            score=decisive.score,
            others=decisive.others,
            final=decisive.final,
            features=features_of(asked),
            reason=decisive.reason if own else f"{decisive.judge}: {decisive.reason}",
            cost=total([verdict.cost for verdict in asked]),
        )


def gives_scores(judge: Judge) -> bool:
    """Whether a judge ever gives a score; one that does not says so by `scores`."""
    return bool(getattr(judge, "scores", True))


def features_of(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """The features of several judges side by side: `judge.feature`, and each score as `.score`."""
    found = {f"{v.judge}.{name}": value for v in verdicts for name, value in v.features.items()}
    return found | {f"{v.judge}.score": v.score for v in verdicts if v.score is not None}


def _score(verdict: Verdict) -> float:
    return 1.0 if verdict.score is None else verdict.score
