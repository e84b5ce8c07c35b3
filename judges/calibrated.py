"""A judge whose score is a probability: another judge's score through a fitted monotone map."""

from dataclasses import replace

from cascade.calibration import MonotoneMap
from cascade.early import free, growing
from cascade.protocols import Judge
from cascade.types import ChatRequest, Completion, Json, Verdict


class CalibratedJudge:
    """Wraps a judge; the raw score stays on the verdict as the feature "raw".

    A final verdict is a matter of fact (a broken schema), not of confidence, and stays as it is.
    """

    def __init__(self, judge: Judge, fitted: MonotoneMap) -> None:
        self.name = judge.name
        self.needs: Json = judge.needs
        self.growing = growing(judge)
        self.free = free(judge)
        self._judge = judge
        self._map = fitted

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """The wrapped verdict with its score mapped; cannot tell stays cannot tell."""
        verdict = await self._judge.judge(request, completion)
        if verdict.score is None or verdict.final:
            return verdict
        return replace(
            verdict,
            score=self._map(verdict.score),
            features={**verdict.features, "raw": verdict.score},
        )
