"""Asks the model that answered a few times more: what it would not say again it does not know.

That multiplies the cost of an answer, so it is only done where another judge is in doubt.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, get_args

from cascade.errors import ConfigError, EstimatorError, JudgeError
from cascade.protocols import Embedder, Judge
from cascade.tiers import ModelTier
from cascade.types import FREE, ChatRequest, Completion, Json, Verdict, total
from judges.asking import Asked, answering, ask, ask_all
from judges.finals import final_answer, normalised

Compare = Literal["text", "answer", "meaning"]

_MOST_SAMPLES: Final = 16
_HOTTEST: Final = 2.0
_DROPPED: Final = frozenset({"n", "seed", "logprobs", "top_logprobs", "temperature", "top_p"})
"""Of the request's parameters: with its seed or temperature all samples could be the same."""


class AgreementJudge:
    """Score = the share of further samples that agree with the answer.

    Args:
        name: how verdicts call it.
        k: samples.
        temperature: that they are drawn at.
        compare: "text" (the same but for case, punctuation and white space), "answer" (the same
            final answer: the JSON, else the letter chosen, else the last number, else the text) or
            "meaning" (the cosine of their embeddings is at least `alike`).
        alike: from which cosine two answers mean the same.
        embedder: for "meaning".
        band: scores of `of` between which samples are drawn, both included. Outside it, and where
            `of` cannot tell or is final, its verdict is given on as it is.
        of: the judge that is asked first; without one, samples are drawn for every answer.
        one_call: the server gives several choices in one call; whatever is missing of them is
            asked for one by one.
        tiers: the tiers there are.

    Attributes:
        k: see above.
        temperature: see above.
    """

    def __init__(
        self,
        *,
        name: str = "agreement",
        k: int = 4,
        temperature: float = 0.8,
        compare: Compare = "answer",
        alike: float = 0.9,
        embedder: Embedder | None = None,
        band: Sequence[float] = (0.3, 0.8),
        of: Judge | None = None,
        one_call: bool = False,
        tiers: Mapping[str, ModelTier],
    ) -> None:
        if not 1 <= k <= _MOST_SAMPLES:
            raise ConfigError(f"it is not in 1..{_MOST_SAMPLES}", param="k")
        if not 0 < temperature <= _HOTTEST:
            raise ConfigError("it must be above 0, and at most 2", param="temperature")
        if compare not in get_args(Compare):
            raise ConfigError(f"{compare!r} is not text, answer or meaning", param="compare")
        if (compare == "meaning") != (embedder is not None):
            raise ConfigError("an embedder and compare: meaning come together", param="compare")
        if not 0 < alike <= 1:
            raise ConfigError("it must be above 0, and at most 1", param="alike")
        if len(band) != 2 or not 0 <= band[0] <= band[1] <= 1:  # noqa: PLR2004  # from, to
            raise ConfigError("it is two scores, the lower first", param="band")
        self.name = name
        self.needs: Json = {} if of is None else of.needs
        self.k = k
        self.temperature = temperature
        self._alike = alike
        self._embedder = embedder
        self._same = normalised if compare == "text" else final_answer
        self._band = tuple(band)
        self._of = of
        self._one_call = one_call
        self._tiers = tiers

    def asking(self, tiers: Mapping[str, ModelTier]) -> "AgreementJudge":
        """The same judge, asking other tiers."""
        other = copy.copy(self)
        other._tiers = tiers  # noqa: SLF001  # its own
        return other

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """The share of samples that agree, or the other judge's verdict outside the band.

        Raises:
            JudgeError: the model could not be asked again, or the other judge failed.
        """
        inner = None
        if self._of is not None:
            inner = await self._of.judge(request, completion)
            low, high = self._band
            if inner.score is None or inner.final or not low <= inner.score <= high:
                return replace(inner, judge=self.name)
        if completion.tool_calls or not completion.text.strip():
            spent = FREE if inner is None else inner.cost
            reason = "only answers in text can be compared"
            return Verdict(judge=self.name, score=None, reason=reason, cost=spent)
        return await self._sampled(request, completion, inner)

    async def _sampled(
        self, request: ChatRequest, completion: Completion, inner: Verdict | None
    ) -> Verdict:
        spent = FREE if inner is None else inner.cost
        try:
            asked = await self._samples(request, answering(self._tiers, completion))
        except JudgeError as error:
            raise JudgeError(error.message, cost=total([spent, error.cost])) from error
        texts = [choice.text for each in asked for choice in each.completion.choices][: self.k]
        cost = total([spent, *(each.cost for each in asked)])
        try:
            agreeing, compared = await self._compared(completion.text, texts)
        except EstimatorError as error:
            raise JudgeError(error.message, cost=cost) from error
        share = agreeing / len(texts)
        features = {"agreement": share, "samples": float(len(texts)), **compared}
        if inner is not None and inner.score is not None:
            features = {**inner.features, "doubted": inner.score, **features}
        return Verdict(
            judge=self.name,
            score=share,
            features=features,
            reason=f"{agreeing} of {len(texts)} samples agree",
            cost=cost,
        )

    async def _compared(self, own: str, texts: Sequence[str]) -> tuple[int, dict[str, float]]:
        """How many of the samples agree with the answer, and features of how they compare."""
        if self._embedder is None:
            answer = self._same(own)
            return sum(self._same(text) == answer for text in texts), {}
        first, *others = await self._embedder.embed([own, *texts])
        cosines = [float(first @ other) for other in others]
        compared = {"similarity": sum(cosines) / len(cosines), "similarity_min": min(cosines)}
        return sum(cosine >= self._alike for cosine in cosines), compared

    async def _samples(self, request: ChatRequest, tier: ModelTier) -> Sequence[Asked]:
        asked = []
        if self._one_call and self.k > 1:
            asked.append(await ask(tier, self._again(request, {"n": self.k})))
        missing = self.k - sum(len(each.completion.choices) for each in asked)
        try:
            return asked + await ask_all([(tier, self._again(request, {}))] * missing)
        except JudgeError as error:
            spent = total([error.cost, *(each.cost for each in asked)])
            raise JudgeError(error.message, cost=spent) from error

    def _again(self, request: ChatRequest, more: Json) -> ChatRequest:
        kept = {k: v for k, v in request.params.items() if k not in _DROPPED}
        params: dict[str, Any] = {**kept, "temperature": self.temperature, **more}
        return replace(request, id=f"{request.id}-{self.name}", params=params, idempotency_key="")
