"""A model judges an answer: it writes one label, and the probabilities of the labels are the score.

Probabilities are steadier than the label alone, and much steadier than a confidence in words. Any
tier can be the judge; its price card says what that cost. What the judged text says to the judge is
kept from it as well as `cascade.asking.prompts` can; docs/judges.md has how often it fails.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from cascade.asking.calls import for_a_label, tier_named
from cascade.asking.labels import read_label
from cascade.asking.prompts import conversation, delimited
from cascade.errors import ConfigError, JudgeError
from cascade.tiers import ModelTier
from cascade.types import FREE, ChatRequest, Completion, Cost, Json, Verdict, total
from judges.asking import Asked, answering, ask, ask_all
from judges.conversation import answer_text
from judges.rubrics import load

Mode = Literal["pointwise", "pairwise", "reference", "p_true"]

RUBRICS: Final[Mapping[str, str]] = {
    "pointwise": "quality",
    "pairwise": "better",
    "reference": "reference",
    "p_true": "p_true",
}
"""The rubric of each mode, unless another is configured."""


class LlmJudge:
    """Asks a tier's model for a label.

    Args:
        name: how verdicts call it.
        mode: "pointwise" grades the answer by a rubric; "reference" compares it with the right
            answer, which a tag of the request holds; "p_true" asks the model that answered, unless
            another is named, whether its answer is true; "pairwise" compares it in both orders with
            the answer of the tier `against`, which is asked for it, or else with the reference.
        tier: whose model judges; needed except for "p_true".
        rubric: the name of one that comes with Cascade or the path of a file.
        against: the tier whose answer is compared with.
        reference_tag: the tag that holds the right answer. Without it there: cannot tell.
        top_logprobs: alternatives to read label probabilities from, as many as the server allows.
        tiers: the tiers there are.
        base: folder that a relative path of a rubric starts from.
    """

    def __init__(
        self,
        *,
        name: str = "llm",
        mode: Mode = "pointwise",
        tier: str | None = None,
        rubric: str | None = None,
        against: str | None = None,
        reference_tag: str = "reference",
        top_logprobs: int = 20,
        tiers: Mapping[str, ModelTier],
        base: Path = Path(),
    ) -> None:
        if mode not in RUBRICS:
            raise ConfigError(f"{mode!r} is none of {', '.join(RUBRICS)}", param="mode")
        if tier is None and mode != "p_true":
            raise ConfigError(f"mode {mode} needs the key tier: whose model is to judge")
        if against is not None and mode != "pairwise":
            raise ConfigError("only mode pairwise compares with a tier", param="against")
        self.name = name
        self.needs: Json = {}
        self.mode = mode
        self.by = tier
        self._tier = None if tier is None else tier_named(tiers, tier, "tier")
        self._against = None if against is None else tier_named(tiers, against, "against")
        self._rubric = load(rubric or RUBRICS[mode], base)
        self._reference_tag = reference_tag
        self._top_logprobs = top_logprobs
        self._tiers = tiers

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """The expected worth of the label; None when there is no label to be read.

        Raises:
            JudgeError: a model could not be asked.
        """
        shown = {"conversation": conversation(request)}
        reference = request.tags.get(self._reference_tag)
        if self.mode == "pairwise" and self._against is not None:
            return await self._compare_with_a_tier(self._against, request, completion, shown)
        if self.mode in {"reference", "pairwise"} and reference is None:
            reason = f"the request has no tag {self._reference_tag}"
            return Verdict(judge=self.name, score=None, reason=reason)
        if self.mode == "pairwise":
            return await self._compare(request, completion, shown, str(reference), FREE)
        if self.mode == "reference":
            shown["reference"] = str(reference)
        shown["answer"] = answer_text(completion)
        return self._verdict([await ask(*self._question(request, completion, shown))], FREE)

    async def _compare_with_a_tier(
        self,
        against: ModelTier,
        request: ChatRequest,
        completion: Completion,
        shown: Mapping[str, str],
    ) -> Verdict:
        other = await ask(against, request)
        try:
            return await self._compare(
                request, completion, shown, answer_text(other.completion), other.cost
            )
        except JudgeError as error:
            raise JudgeError(error.message, cost=total([error.cost, other.cost])) from error

    async def _compare(
        self,
        request: ChatRequest,
        completion: Completion,
        shown: Mapping[str, str],
        other: str,
        spent: Cost | None,
    ) -> Verdict:
        own = answer_text(completion)
        pairs = [(own, other), (other, own)]
        questions = [
            self._question(
                request, completion, {**shown, "first answer": one, "second answer": two}
            )
            for one, two in pairs
        ]
        return self._verdict(await ask_all(questions), spent)

    def _question(
        self, request: ChatRequest, completion: Completion, pieces: Mapping[str, str]
    ) -> tuple[ModelTier, ChatRequest]:
        tier = self._tier or answering(self._tiers, completion)
        messages = delimited(self._rubric, pieces)
        return tier, for_a_label(tier, request, self.name, messages, self._top_logprobs)

    def _verdict(self, asked: Sequence[Asked], spent: Cost | None) -> Verdict:
        """From one answer, or from two of which the second saw the pair the other way round."""
        cost = total([spent, *(each.cost for each in asked)])
        readings = [read_label(each.completion, self._rubric.labels) for each in asked]
        known = [reading for reading in readings if reading is not None]
        if len(known) < len(readings):
            wrote = asked[readings.index(None)].completion.text[:40]
            reason = f"the judge model wrote {wrote!r}, none of its labels"
            return Verdict(judge=self.name, score=None, reason=reason, cost=cost)
        scores = [self._rubric.expected(reading.probabilities) for reading in known]
        if len(scores) > 1:
            scores[1] = 1.0 - scores[1]
        score = sum(scores) / len(scores)
        features = {"expected": score, "told": float(all(r.mass is not None for r in known))}
        if all(reading.mass is not None for reading in known):
            features["mass"] = min(reading.mass or 0.0 for reading in known)
        if len(scores) > 1:
            features["order_effect"] = abs(scores[0] - scores[1])
        likeliest = max(known[0].probabilities, key=lambda label: known[0].probabilities[label])
        return Verdict(
            judge=self.name,
            score=score,
            features=features,
            reason=f"{asked[0].completion.model} says {likeliest}, {score:.3f} in expectation",
            cost=cost,
        )
