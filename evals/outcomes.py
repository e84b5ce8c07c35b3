"""What the models and judges said to a prompt set, kept so that nobody has to ask them again.

A file of JSON Lines, plain while it grows and gzipped when it is kept. The first line is the
manifest: which prompts, which models, on what machine. Every other line is one row:

    answer   one tier's greedy answer to one prompt, its log probabilities, and whether it is right
    sample   one more answer of a tier at a temperature, by its seed
    judge    one judge's verdict, by one judge model, on one tier's answer

Log probabilities are stored as `evals.compact` writes them. Seconds are wall-clock seconds,
probabilities and scores lie in [0, 1].
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from cascade.errors import CascadeError
from cascade.types import Json, Usage
from evals.datasets import Prompt

FORMAT = 1

EMBEDDED = Path(__file__).parent / "outcomes" / "embedded.jsonl.gz"
"""What the two embedded models made of the prompt set of six kinds."""
Key = tuple[str | int, ...]


class OutcomesError(CascadeError):
    """A file of outcomes cannot be used; says which, where and why."""

    code = "invalid_outcomes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIdentity:
    """Which model stood behind a tier.

    Attributes:
        model: its name.
        sha256: of its file; empty where the model is asked at an address.
        server: the serving software and its version; empty where it is not known.
    """

    model: str
    sha256: str = ""
    server: str = ""

    def __str__(self) -> str:
        parts = (self.model, self.sha256[:12], self.server)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The first line: what all rows have in common.

    Attributes:
        prompts: file name of the prompt set.
        prompts_sha256: of what is asked, whatever the references are.
        tiers: the model behind each tier.
        begun: when the file was begun, ISO 8601.
        machine: what the seconds were measured on.
        cascade: version of this package.
    """

    prompts: str
    prompts_sha256: str
    tiers: Mapping[str, ModelIdentity]
    begun: str
    machine: str
    cascade: str
    format: int = FORMAT

    def differences(self, other: "Manifest") -> Iterator[str]:
        """Why rows under the two must not stand in one file; date and machine may differ."""
        if self.prompts_sha256 != other.prompts_sha256:
            yield f"it holds answers to other prompts ({self.prompts} was changed since)"
        for tier in sorted(self.tiers.keys() | other.tiers.keys()):
            mine, theirs = self.tiers.get(tier), other.tiers.get(tier)
            if mine != theirs:
                yield f"tier {tier!r} was {mine or 'not there'}, and now is {theirs or 'not there'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One tier's answer to one prompt.

    Attributes:
        params: the request's parameters that shape the answer, response_format left out.
        logprobs: compact; see the module.
        right: the scorer's word on the text.
        first_token_seconds: until the first piece of text; None when none came.
    """

    KIND: ClassVar[str] = "answer"

    prompt: str
    tier: str
    text: str
    finish_reason: str | None
    usage: Usage
    params: Json
    logprobs: Sequence[Sequence[Any]] | None
    right: bool
    seconds: float
    first_token_seconds: float | None

    @property
    def key(self) -> Key:
        """What tells it from every other row."""
        return (self.KIND, self.prompt, self.tier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One of several answers of a tier at a temperature; index counts from 0."""

    KIND: ClassVar[str] = "sample"

    prompt: str
    tier: str
    index: int
    text: str
    finish_reason: str | None
    usage: Usage
    params: Json
    right: bool
    seconds: float

    @property
    def key(self) -> Key:
        """What tells it from every other row."""
        return (self.KIND, self.prompt, self.tier, self.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One judge's verdict on a stored answer.

    Attributes:
        tier: whose answer is judged.
        judge: the judge's name, e.g. "pointwise".
        by: the tier whose model is the judge.
        asked: a hash of the judge's instructions; with others it is another verdict.
        score: None when it could not tell.
        features: the verdict's numbers, probabilities of the labels among them.
        error: why there is no verdict; empty when there is one.
    """

    KIND: ClassVar[str] = "judge"

    prompt: str
    tier: str
    judge: str
    by: str
    asked: str
    score: float | None
    features: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    error: str = ""
    seconds: float

    @property
    def key(self) -> Key:
        """What tells it from every other row."""
        return (self.KIND, self.prompt, self.tier, self.judge, self.by, self.asked)


Row = Answer | Sample | Judgement
ROWS: Mapping[str, type[Row]] = {kind.KIND: kind for kind in (Answer, Sample, Judgement)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """A whole file; rows by their key, in the order of the file."""

    manifest: Manifest
    rows: Mapping[Key, Row]

    def answers(self, tier: str) -> dict[str, Answer]:
        """The tier's answers by prompt id."""
        return {
            row.prompt: row
            for row in self.rows.values()
            if isinstance(row, Answer) and row.tier == tier
        }

    def samples(self, tier: str) -> dict[str, list[Sample]]:
        """The tier's samples by prompt id, by index."""
        found: dict[str, list[Sample]] = {}
        for row in self.rows.values():
            if isinstance(row, Sample) and row.tier == tier:
                found.setdefault(row.prompt, []).append(row)
        return {name: sorted(some, key=lambda row: row.index) for name, some in found.items()}

    def judgements(self, judge: str, *, by: str, tier: str) -> dict[str, Judgement]:
        """A judge's verdicts on the tier's answers, by prompt id; the last where there are two."""
        return {
            row.prompt: row
            for row in self.rows.values()
            if isinstance(row, Judgement) and (row.judge, row.by, row.tier) == (judge, by, tier)
        }


def prompts_sha256(prompts: Iterable[Prompt]) -> str:
    """A hash of what is asked, in any order; references and scorers may be mended afterwards."""
    asked = sorted(
        json.dumps([p.id, p.messages, p.params()], sort_keys=True, ensure_ascii=False)
        for p in prompts
    )
    return hashlib.sha256("\n".join(asked).encode()).hexdigest()
