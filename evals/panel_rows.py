"""Stored answers as a panel's members see them: the rows that a panel is fitted and measured on.

Members that call no model look at the answers anew, since that costs nothing and means today's
judges. Members that do are not asked again: what they said is in the outcomes.
"""

import hashlib
from collections.abc import Mapping, Sequence

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import JudgeError
from cascade.protocols import Judge
from cascade.tiers import ModelTier
from cascade.types import ChatRequest, Choice, Completion, Verdict
from evals.compact import expanded
from evals.datasets import Prompt
from evals.outcomes import Answer, Outcomes, OutcomesError
from evals.panel_fit import JudgedRow
from judges.agreement import AgreementJudge
from judges.llm import LlmJudge
from judges.panel import features_of


class StoredVerdicts:
    """A judge whose verdicts on the stored answers are stored as well.

    Args:
        judge: whose place it takes.
        outcomes: where its verdicts are.
        tier: whose answers are judged.
    """

    def __init__(self, judge: LlmJudge, outcomes: Outcomes, tier: str) -> None:
        self.name = judge.name
        self.needs = judge.needs
        by = judge.by or tier
        self._verdicts = outcomes.judgements(judge.mode, by=by, tier=tier)
        if not self._verdicts:
            raise OutcomesError(
                f"the outcomes have no verdicts of {judge.mode} by {by} on {tier}'s answers; "
                "`python -m evals collect --phases judges` brings them"
            )

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """What it said then; without a verdict it cannot tell."""
        del completion
        said = self._verdicts.get(request.id)
        if said is None:
            return Verdict(judge=self.name, score=None, reason="no verdict is stored")
        return Verdict(
            judge=self.name, score=said.score, features=said.features, reason=said.reason
        )


class StoredSamples:
    """An agreement judge that is given the stored samples where it would ask for some.

    Args:
        judge: which compares them, as it does while serving.
        outcomes: where the samples are.
        tier: whose answers are judged.
    """

    def __init__(self, judge: AgreementJudge, outcomes: Outcomes, tier: str) -> None:
        self.name = judge.name
        self.needs = judge.needs
        self._judge = judge
        self._tier = tier
        self._samples = {
            prompt: some
            for prompt, some in outcomes.samples(tier).items()
            if len(some) >= judge.k
            and all(row.params.get("temperature") == judge.temperature for row in some)
        }
        if not self._samples:
            raise OutcomesError(
                f"the outcomes have no {judge.k} samples of {tier} at temperature "
                f"{judge.temperature:g}; `python -m evals collect --phases samples` brings them"
            )

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """What it says with these samples; without any it cannot tell."""
        samples = self._samples.get(request.id)
        if samples is None:
            return Verdict(judge=self.name, score=None, reason="no samples are stored")
        backend = ScriptedBackend(answers=[Script(text=sample.text) for sample in samples])
        again = self._judge.asking({self._tier: ModelTier(name=self._tier, backend=backend)})
        return await again.judge(request, completion)


def stored(members: Sequence[Judge], outcomes: Outcomes, tier: str) -> list[Judge]:
    """The members, with those that call a model replaced by what they said."""
    return [_stored(member, outcomes, tier) for member in members]


def _stored(member: Judge, outcomes: Outcomes, tier: str) -> Judge:
    if isinstance(member, LlmJudge):
        return StoredVerdicts(member, outcomes, tier)
    if isinstance(member, AgreementJudge):
        return StoredSamples(member, outcomes, tier)
    return member


async def judged_rows(
    outcomes: Outcomes, prompts: Mapping[str, Prompt], members: Sequence[Judge], tier: str
) -> list[JudgedRow]:
    """A row for each prompt that every tier answered.

    An answer on which a member gives a final verdict is left out: the panel ends there, and its
    model never sees it.

    Args:
        outcomes: the answers.
        prompts: by id.
        members: asked in order.
        tier: whose answers are judged.

    Raises:
        OutcomesError: a prompt of the outcomes is not there.
        JudgeError: a member could not judge.
    """
    answers = {name: outcomes.answers(name) for name in outcomes.manifest.tiers}
    rows = []
    for name, answer in answers[tier].items():
        if name not in prompts:
            raise OutcomesError(f"the outcomes answer {name!r}, which is no prompt of the set")
        if not all(name in some for some in answers.values()):
            continue
        asked = await _ask(members, prompts[name], answer)
        if asked is None:
            continue
        rows.append(
            JudgedRow(
                prompt=name,
                kind=prompts[name].kind,
                group=prompts[name].group or name,
                split=prompts[name].split,
                features=features_of(asked),
                right={each: some[name].right for each, some in answers.items()},
                length=float(len(answer.text)),
            )
        )
    return rows


async def verdicts(
    outcomes: Outcomes, prompts: Mapping[str, Prompt], judge: Judge, tier: str
) -> list[tuple[float, bool, str]]:
    """One judge's score of each stored answer to these prompts, if it is right, and its group.

    Answers that it cannot tell of are left out; a final verdict counts by its score.

    Raises:
        JudgeError: it could not judge; says which prompt.
    """
    found = []
    for name, answer in outcomes.answers(tier).items():
        if name not in prompts:
            continue
        prompt = prompts[name]
        verdict = await _judged(judge, prompt, answer)
        if verdict.score is not None:
            found.append((verdict.score, answer.right, prompt.group or name))
    return found


def digest(rows: Sequence[JudgedRow]) -> str:
    """A hash of what was fitted on."""
    return hashlib.blake2b(repr(sorted(rows, key=_prompt)).encode(), digest_size=8).hexdigest()


def completion_of(answer: Answer) -> Completion:
    """A stored answer as it came."""
    choice = Choice(
        text=answer.text,
        finish_reason=answer.finish_reason,
        logprobs=expanded(answer.logprobs),
    )
    return Completion(choices=(choice,), tier=answer.tier, usage=answer.usage)


async def _ask(members: Sequence[Judge], prompt: Prompt, answer: Answer) -> list[Verdict] | None:
    asked: list[Verdict] = []
    for member in members:
        asked.append(await _judged(member, prompt, answer))
        if asked[-1].final:
            return None
    return asked


async def _judged(judge: Judge, prompt: Prompt, answer: Answer) -> Verdict:
    try:
        return await judge.judge(prompt.request(), completion_of(answer))
    except JudgeError as error:
        raise JudgeError(
            f"prompt {prompt.id}: {judge.name}: {error.message}", cost=error.cost
        ) from None


def _prompt(row: JudgedRow) -> str:
    return row.prompt
