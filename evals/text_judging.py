"""How well answers can be judged by their text alone, on a table of two models' full answers.

Every row holds a question with a number for an answer and what a weak and a strong model wrote. The
panel sees the question and the weak answer's text; five-fold, so that no answer is judged by a
model that was fitted on it.
"""

import gzip
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from cascade.protocols import Judge
from cascade.types import ChatRequest, Choice, Completion
from evals.datasets import DatasetError
from evals.escalation import Scored
from evals.panel_choice import FOLDS
from evals.panel_fit import JudgedRow, fit_panel
from judges.fitted import Artifact, Manifest, PanelModel, model_of
from judges.panel import features_of, gives_scores

FIELDS = ("prompt", "gold", "weak", "strong", "weak_text", "strong_text")
PRICE_RATIO = 0.0097
"""What a weak call costs of a strong one, in the table's source."""
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_MARKED = re.compile(r"####\s*(.*)")
_WEAK, _STRONG = "weak", "strong"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPair:
    """What two models wrote to one question.

    Attributes:
        gold: the right number.
        weak: whether the weak model's answer was graded as right in the source.
        strong: the same of the strong one's.
    """

    prompt: str
    gold: float
    weak: bool
    strong: bool
    weak_text: str
    strong_text: str

    def regraded(self) -> "AnswerPair":
        """The same with both answers graded by value: the marked or else the last number counts.

        A grader that compares texts takes "$20.00" for another number than 20.
        """
        return AnswerPair(
            prompt=self.prompt,
            gold=self.gold,
            weak=_comes_to(self.weak_text, self.gold),
            strong=_comes_to(self.strong_text, self.gold),
            weak_text=self.weak_text,
            strong_text=self.strong_text,
        )


def load_pairs(path: Path) -> list[AnswerPair]:
    """Read a table of JSON lines, gzipped or not.

    Raises:
        DatasetError: it cannot be read, or a line is no such row; says which.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = content.decode().split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read: {error}") from None
    return [_pair(f"{path}:{n}", line) for n, line in enumerate(lines, 1) if line.strip()]


async def scored(
    pairs: Sequence[AnswerPair], members: Sequence[Judge], *, kind: str = "blend", seed: int = 0
) -> list[Scored]:
    """Each pair as a panel of these members scores it, fitted on the other folds.

    An answer on which a member is final scores 0, as the panel ends there.

    Raises:
        FitError: there are too few pairs.
    """
    rows, final = await _rows(pairs, members)
    aside = [member.name for member in members if not gives_scores(member)]
    chances = np.zeros((len(pairs), 2))
    labels = np.array([pair.weak for pair in pairs])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(labels, labels):
        fitted = _fitted([rows[i] for i in train if not final[i]], kind, aside)
        rate = float(np.mean([pairs[i].strong for i in train]))
        for i in test:
            if final[i]:
                chances[i] = 0.0, rate
            else:
                found = fitted(rows[i].features)
                chances[i] = found[_WEAK], found[_STRONG]
    return [
        Scored(
            small=float(small),
            large=float(large),
            length=float(len(pair.weak_text)),
            small_right=pair.weak,
            large_right=pair.strong,
        )
        for pair, (small, large) in zip(pairs, chances, strict=True)
    ]


async def _rows(
    pairs: Sequence[AnswerPair], members: Sequence[Judge]
) -> tuple[list[JudgedRow], list[bool]]:
    rows, final = [], []
    for number, pair in enumerate(pairs):
        request = ChatRequest(id=str(number), messages=[{"role": "user", "content": pair.prompt}])
        choice = Choice(text=pair.weak_text, finish_reason="stop")
        completion = Completion(choices=(choice,), tier=_WEAK)
        verdicts = [await member.judge(request, completion) for member in members]
        final.append(any(verdict.final for verdict in verdicts))
        rows.append(
            JudgedRow(
                prompt=str(number),
                kind="sums",
                group=str(number),
                split="fit",
                features=features_of(verdicts),
                right={_WEAK: pair.weak, _STRONG: pair.strong},
                length=float(len(pair.weak_text)),
            )
        )
    return rows, final


def _fitted(rows: Sequence[JudgedRow], kind: str, aside: Sequence[str]) -> PanelModel:
    fitted = fit_panel(rows, (_WEAK, _STRONG), kind=kind, aside=aside)
    manifest = Manifest(judged=_WEAK, models={}, members={}, data="", rows={}, fitted_at="")
    artifact = Artifact(
        kind="panel_model", manifest=manifest, features=fitted.features, heads=fitted.heads
    )
    return model_of(artifact)


def _pair(place: str, line: str) -> AnswerPair:
    try:
        row = json.loads(line)
        missing = [name for name in FIELDS if name not in row]
        if missing:
            raise DatasetError(f"{place}: {missing[0]}: missing")
        return AnswerPair(
            prompt=str(row["prompt"]),
            gold=float(str(row["gold"]).replace(",", "")),
            weak=bool(row["weak"]),
            strong=bool(row["strong"]),
            weak_text=str(row["weak_text"]),
            strong_text=str(row["strong_text"]),
        )
    except (ValueError, TypeError) as error:
        raise DatasetError(f"{place}: no such row: {error}") from None


def _comes_to(text: str, gold: float) -> bool:
    """Whether the marked number, if there is one, or the last is the right one."""
    marked = _MARKED.search(text)
    found = _NUMBER.findall(marked[1] if marked else "") or _NUMBER.findall(text)[-1:]
    return bool(found) and abs(float(found[0].replace(",", "")) - gold) < 1e-6  # noqa: PLR2004
