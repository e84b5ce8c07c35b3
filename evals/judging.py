"""Has the stored answers judged by the models themselves, and keeps what they say."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cascade.asking.prompts import delimited
from cascade.errors import BackendError, JudgeError
from cascade.protocols import Backend, Judge
from cascade.tiers import ModelTier
from cascade.types import Choice, Completion
from evals.datasets import Prompt
from evals.gather import Task, bind, drawn, since
from evals.outcomes import Judgement
from evals.outcomes_file import OutcomesFile
from judges.llm import RUBRICS, LlmJudge, Mode
from judges.rubrics import load

JUDGES: Final = ("p_true", "pointwise", "pairwise")

RIVAL_TAG = "rival"
"""Holds the other tier's stored answer, so that a pairwise judge need not ask for it again."""


@dataclass(frozen=True, slots=True)
class _Asking:
    """A judge, the tier whose model it asks, whose answers it is shown, and how it asks."""

    judge: Judge
    by: str
    shown: tuple[str, ...]
    asked: str


def judgements(
    tiers: Mapping[str, Backend],
    prompts: Sequence[Prompt],
    file: OutcomesFile,
    judges: Sequence[str] = JUDGES,
) -> list[Task]:
    """Verdicts on the first tier's stored answers: by itself, and by the last tier if there is one.

    The prompts come in an order drawn by their ids, so that a run that is cut short has judged some
    of every kind.
    """
    names = list(tiers)
    small, large = names[0], names[-1]
    models = {name: ModelTier(name=name, backend=backend) for name, backend in tiers.items()}
    wanted: tuple[tuple[Mode, str, tuple[str, ...]], ...] = (
        ("p_true", small, (small,)),
        ("pointwise", large, (small,)),
        ("pairwise", large, (small, large)),
    )
    asking = [
        _Asking(
            LlmJudge(name=mode, mode=mode, tier=by, reference_tag=RIVAL_TAG, tiers=models),
            by,
            shown,
            instructions(mode),
        )
        for mode, by, shown in wanted
        if mode in judges and (by != small or mode == "p_true")
    ]
    return [
        Task(
            key=(Judgement.KIND, prompt.id, small, each.judge.name, each.by, each.asked),
            tier=each.by,
            make=bind(_judge, each, prompt, file),
            after=each.shown,
        )
        for each in asking
        for prompt in drawn(prompts)
    ]


def instructions(mode: Mode) -> str:
    """A short hash of what a judge of that mode is told besides the material."""
    told = json.dumps(delimited(load(RUBRICS[mode], Path()), {"answer": ""}))
    return hashlib.sha256(told.encode()).hexdigest()[:12]


async def _judge(each: _Asking, prompt: Prompt, file: OutcomesFile) -> Judgement:
    rows = [row for tier in each.shown for row in file.answers(tier, [prompt.id])]
    if len(rows) < len(each.shown):
        raise JudgeError("there is no answer yet to be judged")
    answer, *rivals = rows
    tags = {RIVAL_TAG: rivals[0].text} if rivals else {}
    choice = Choice(text=answer.text, finish_reason=answer.finish_reason)
    completion = Completion(choices=(choice,), tier=answer.tier, usage=answer.usage)
    began = time.perf_counter()
    row = Judgement(
        prompt=prompt.id,
        tier=answer.tier,
        judge=each.judge.name,
        by=each.by,
        asked=each.asked,
        score=None,
        seconds=0.0,
    )
    try:
        verdict = await each.judge.judge(replace(prompt.request(), tags=tags), completion)
    except JudgeError as error:
        if isinstance(error.__cause__, BackendError) and error.__cause__.retryable:
            raise
        return replace(row, error=error.message, seconds=since(began))
    return replace(
        row,
        score=verdict.score,
        features=verdict.features,
        reason=verdict.reason,
        seconds=since(began),
    )
