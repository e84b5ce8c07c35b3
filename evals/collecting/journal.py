"""What was asked and answered, a line each, so that nothing is asked twice.

An answer is known by what was asked (messages and parameters), of which tier and model. Neither the
prompt's name nor its right answer is part of that: prompts may be added, renamed and given another
reference, and only what is new is asked. The file is JSON Lines; a line that a killed process left
unfinished is cut off when the file is opened again.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from cascade.types import Choice, Completion, Usage
from evals.compact import expanded
from evals.datasets import Prompt
from evals.files import require_folder
from evals.outcomes import OutcomesError
from evals.outcomes_file import cut_unfinished, open_alone

FORMAT: Final = {"kind": "journal", "format": 1}
_OPTIONAL: Final = {"reason", "dollars", "logprobs", "unreported_tries"}
_DEFAULTS: Final = {"reason", "unreported_tries"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One answer.

    Attributes:
        request: the hash of what was asked.
        logprobs: as `evals.compact` writes them; None when there are none.
        dollars: by the tier's price card then; None when it or the usage does not say.
        unreported_tries: tries before it that may have been billed.
        first_token_seconds: until the first piece of text; None when none came.
    """

    request: str
    tier: str
    model: str
    text: str
    finish_reason: str | None
    usage: Usage
    logprobs: Sequence[Sequence[Any]] | None = None
    dollars: Decimal | None = None
    seconds: float
    first_token_seconds: float | None
    unreported_tries: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from every other line."""
        return ("answer", self.request, self.tier, self.model)

    def completion(self) -> Completion:
        """As it came."""
        choice = Choice(
            text=self.text, finish_reason=self.finish_reason, logprobs=expanded(self.logprobs)
        )
        return Completion(choices=(choice,), tier=self.tier, model=self.model, usage=self.usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a judge said of one answer.

    Attributes:
        request: the hash of what was asked.
        answer: a hash of the answer, and of what it was held against if anything.
        judge: who, and how it was set.
        score: None when it could not tell.
        dollars: None when it is not known.
    """

    request: str
    tier: str
    answer: str
    judge: str
    score: float | None
    reason: str = ""
    dollars: Decimal | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from every other line."""
        return ("verdict", self.request, self.tier, self.answer, self.judge)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """What an estimator that asks a model expected of one request.

    Attributes:
        request: the hash of what was asked.
        estimator: who, and how it was set.
        mean: P(acceptable) by tier.
        dollars: None when it is not known.
    """

    request: str
    estimator: str
    mean: Mapping[str, float]
    dollars: Decimal | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from every other line."""
        return ("estimate", self.request, self.estimator)


Line = Answered | Judged | Estimated
KINDS: Final[Mapping[str, type[Line]]] = {
    "answer": Answered,
    "verdict": Judged,
    "estimate": Estimated,
}


class Journal:
    """Appends to a file that was begun now or earlier; a context manager.

    Args:
        path: ends in .jsonl; made where it does not exist.

    Raises:
        OutcomesError: another process writes it, or a line of it is none of ours; says which.
        ResultFileError: its folder is missing.
    """

    def __init__(self, path: Path) -> None:
        require_folder(path)
        self._path = path
        self._file = open_alone(path)
        try:
            cut_unfinished(self._file)
            self.lines = self._take_up()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.fsync(self._file.fileno())
        self._file.close()

    def answer(self, request: str, tier: str, model: str) -> Answered | None:
        """What a tier's model answered; None when it was not asked."""
        found = self.lines.get(("answer", request, tier, model))
        return found if isinstance(found, Answered) else None

    def append(self, line: Line) -> None:
        """Add a line; it is there for good when this returns, short of a power cut."""
        kind = next(name for name, each in KINDS.items() if isinstance(line, each))
        self._write({"kind": kind, **_plain(line)})
        self.lines[line.key] = line

    def _take_up(self) -> dict[tuple[str, ...], Line]:
        self._file.seek(0)
        try:
            lines = self._file.read().decode("utf-8", "surrogatepass").split("\n")[:-1]
        except UnicodeDecodeError as error:
            raise OutcomesError(f"{self._path}: not UTF-8: {error}") from None
        if not lines:
            self._write(FORMAT)
            return {}
        if _object(f"{self._path}:1", lines[0]) != FORMAT:
            raise OutcomesError(f"{self._path}:1: no journal of `cascade eval collect`")
        found = [_parsed(f"{self._path}:{at}", line) for at, line in enumerate(lines[1:], 2)]
        return {line.key: line for line in found}

    def _write(self, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        self._file.write(f"{text}\n".encode("utf-8", "surrogatepass"))
        self._file.flush()


def request_hash(prompt: Prompt) -> str:
    """A hash of what is asked, whatever the prompt is called and its right answer is."""
    asked = json.dumps([prompt.messages, prompt.params()], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()[:32]


def text_hash(*texts: str) -> str:
    """A hash of texts."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


def _plain(line: Line) -> dict[str, Any]:
    content = {name: value for name, value in asdict(line).items() if value is not None}
    if isinstance(line, Answered):
        content["usage"] = {name: n for name, n in content["usage"].items() if n is not None}
    if line.dollars is not None:
        content["dollars"] = str(line.dollars)
    return content


def _parsed(place: str, line: str) -> Line:
    found = _object(place, line)
    kind = KINDS.get(found.pop("kind", ""))
    if kind is None:
        raise OutcomesError(f"{place}: kind: must be one of {', '.join(KINDS)}")
    known = {field.name for field in fields(kind)}
    if unknown := found.keys() - known:
        raise OutcomesError(f"{place}: {min(unknown)}: no such field")
    nullable = _OPTIONAL | {"finish_reason", "first_token_seconds", "score"}
    if missing := known - found.keys() - nullable:
        raise OutcomesError(f"{place}: {min(missing)}: missing")
    try:
        if "usage" in found:
            found["usage"] = Usage(**found["usage"])
        if "dollars" in found:
            found["dollars"] = Decimal(found["dollars"])
    except (TypeError, InvalidOperation):
        raise OutcomesError(f"{place}: usage or dollars: no such numbers") from None
    content: dict[str, Any] = dict.fromkeys(known & nullable - _DEFAULTS) | found
    return kind(**content)


def _object(place: str, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise OutcomesError(f"{place}: not JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise OutcomesError(f"{place}: a line must be a JSON object")
    return found
