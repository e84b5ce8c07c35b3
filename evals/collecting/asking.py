"""Has each prompt answered by every tier, judged and graded, as far as the budget goes.

A prompt at a time goes through all of it, so that what a spent budget leaves behind are whole rows,
but for those that were under way.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from cascade.errors import BackendError, CascadeError, JudgeError
from cascade.protocols import Judge
from cascade.tiers import ModelTier
from cascade.types import Cost, Verdict
from evals.collecting.journal import Answered, Journal, Judged, request_hash, text_hash
from evals.collecting.meter import BudgetSpentError
from evals.compact import compact
from evals.datasets import Prompt
from evals.gather import TOP_LOGPROBS, ask
from evals.scorers import JUDGE

REFERENCE_TAG: Final = "reference"
"""Holds what a grader compares an answer with."""

EVEN: Final = 0.5
"""What an answer is worth beside itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who is asked.

    Attributes:
        tiers: from the cheapest to the best.
        models: by tier, the model's name; another one is asked anew.
        judge: says how good it takes each answer for, without knowing; None: nobody does.
        judge_setting: how it is set; with another one it is asked again.
        grader: compares answers where a prompt's scorer is a judge; None: there are no such.
        grader_setting: how that is set.
        concurrency: prompts in flight at once.
    """

    tiers: Mapping[str, ModelTier]
    models: Mapping[str, str]
    judge: Judge | None = None
    judge_setting: str = ""
    grader: Judge | None = None
    grader_setting: str = ""
    concurrency: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of one prompt, by tier; a tier that is not there could not be asked.

    Attributes:
        grades: how good the grader takes the answers for; empty where the prompt asks for none.
    """

    prompt: Prompt
    answers: Mapping[str, Answered] = field(default_factory=dict)
    verdicts: Mapping[str, Judged] = field(default_factory=dict)
    grades: Mapping[str, Judged] = field(default_factory=dict)


@dataclass(slots=True)
class Report:
    """What a run came to.

    Attributes:
        rows: one a prompt, in the prompts' order.
        asked: answers that were asked for and came.
        left: answers, verdicts and estimates that the budget did not allow.
        failures: why others could not be had.
    """

    rows: list[Row] = field(default_factory=list)
    asked: int = 0
    left: int = 0
    failures: list[str] = field(default_factory=list)

    def missed(self, what: str, error: CascadeError) -> None:
        """Count what could not be had: left for a larger budget, or failed."""
        if over_budget(error):
            self.left += 1
        else:
            self.failures.append(f"{what}: {error.message}")


def over_budget(error: BaseException) -> bool:
    """Whether a call was not made, or what asked for one failed, since the budget is spent."""
    causes: list[BaseException] = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    return any(isinstance(each, BudgetSpentError) for each in causes)


async def collect(
    asking: Asking,
    prompts: Sequence[Prompt],
    journal: Journal,
    done: Callable[[str], None] = lambda _: None,
) -> Report:
    """Ask what the journal does not hold.

    Prompts that ask the same are asked once.

    Args:
        asking: who is asked.
        prompts: in the order in which they are asked.
        journal: takes what comes back.
        done: told the tier of each answer that was looked for, whether it came or not.
    """
    run = _Run(asking, journal, Report(), done, set())
    places = asyncio.Semaphore(asking.concurrency)
    turns: dict[str, asyncio.Lock] = {}

    async def one(prompt: Prompt) -> Row:
        # Whoever asks the same waits, and finds it in the journal.
        async with places, turns.setdefault(request_hash(prompt), asyncio.Lock()):
            return await run.row(prompt)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(prompt)) for prompt in prompts]
    run.report.rows = [task.result() for task in tasks]
    return run.report


@dataclass(frozen=True, slots=True)
class _Run:
    asking: Asking
    journal: Journal
    report: Report
    done: Callable[[str], None]
    missed: set[tuple[str, str]]

    async def row(self, prompt: Prompt) -> Row:
        key, tiers = request_hash(prompt), self.asking.tiers
        found = await asyncio.gather(*(self._answer(key, tier, prompt) for tier in tiers.values()))
        answers = {answer.tier: answer for answer in found if answer is not None}
        verdicts = await self._verdicts(prompt, answers)
        grades = await self._grades(prompt, answers) if prompt.scorer == JUDGE else {}
        return Row(prompt=prompt, answers=answers, verdicts=verdicts, grades=grades)

    async def _answer(self, key: str, tier: ModelTier, prompt: Prompt) -> Answered | None:
        model = self.asking.models[tier.name]
        kept = self.journal.answer(key, tier.name, model)
        if kept is not None:
            return _at_todays_price(kept, tier)
        if (key, tier.name) in self.missed:
            return None
        params = prompt.params()
        if tier.capabilities is None or "logprobs" in tier.capabilities:
            params |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        try:
            completion, first, seconds = await ask(tier, prompt, params)
        except BackendError as error:
            self.missed.add((key, tier.name))
            self.report.missed(f"{prompt.id} ({tier.name})", error)
            return None
        finally:
            self.done(tier.name)
        cost = None if completion.unreported_tries else tier.price(completion.usage)
        answer = Answered(
            request=key,
            tier=tier.name,
            model=model,
            text=completion.text,
            finish_reason=completion.finish_reason,
            usage=completion.usage,
            logprobs=compact(completion.choices[0].logprobs),
            dollars=_dollars(cost),
            seconds=seconds,
            first_token_seconds=first,
            unreported_tries=completion.unreported_tries,
        )
        self.journal.append(answer)
        self.report.asked += 1
        return answer

    async def _verdicts(self, prompt: Prompt, answers: Mapping[str, Answered]) -> dict[str, Judged]:
        """The judge's word on every tier's answer but the last one's, which nobody would judge."""
        judge = self.asking.judge
        if judge is None:
            return {}
        setting = f"{judge.name} {self.asking.judge_setting}"
        found = {
            tier: await self._say(judge, setting, prompt, answers[tier], "")
            for tier in list(self.asking.tiers)[:-1]
            if tier in answers
        }
        return {tier: said for tier, said in found.items() if said is not None}

    async def _grades(self, prompt: Prompt, answers: Mapping[str, Answered]) -> dict[str, Judged]:
        """How good each answer is beside the reference, or else beside the last tier's answer."""
        grader, last = self.asking.grader, list(self.asking.tiers)[-1]
        against = prompt.reference or (answers[last].text if last in answers else None)
        if grader is None or against is None:
            return {}
        found = {}
        for tier, answer in answers.items():
            if answer.text == against:
                found[tier] = Judged(
                    request=answer.request, tier=tier, answer="", judge=grader.name, score=EVEN
                )
                continue
            setting = f"{grader.name} {self.asking.grader_setting}"
            said = await self._say(grader, setting, prompt, answer, against)
            if said is not None:
                found[tier] = said
        return found

    async def _say(
        self, judge: Judge, setting: str, prompt: Prompt, answer: Answered, against: str
    ) -> Judged | None:
        """What a judge says of an answer; what it was paid for is asked once."""
        said = Judged(
            request=answer.request,
            tier=answer.tier,
            answer=text_hash(answer.text, against),
            judge=setting,
            score=None,
        )
        kept = self.journal.lines.get(said.key)
        if isinstance(kept, Judged):
            return kept
        request = prompt.request()
        if against:
            request = replace(request, tags={REFERENCE_TAG: against})
        try:
            verdict = await judge.judge(request, answer.completion())
        except JudgeError as error:
            self.report.missed(f"{prompt.id} ({answer.tier}, {judge.name})", error)
            return None
        said = replace(said, score=verdict.score, reason=verdict.reason, dollars=_paid(verdict))
        if said.dollars != 0:
            self.journal.append(said)
        return said


def _at_todays_price(answer: Answered, tier: ModelTier) -> Answered:
    """The answer by the tier's card as it is now, which may be another than when it was asked."""
    cost = None if answer.unreported_tries else tier.price(answer.usage)
    return replace(answer, dollars=_dollars(cost))


def _paid(verdict: Verdict) -> Decimal | None:
    return _dollars(verdict.cost)


def _dollars(cost: Cost | None) -> Decimal | None:
    return None if cost is None else cost.total
