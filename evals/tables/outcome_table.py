"""One row a prompt: what each tier's answer was worth and cost, and what was known beforehand."""

import hashlib
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Texts = NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTable:
    """Outcomes as arrays of n rows; those of a tier each have the shape (n, tiers).

    Attributes:
        tiers: from the cheapest to the best.
        ids: each row's own.
        groups: rows that are alike share one.
        kinds: what results are told apart by; empty texts where there is nothing to tell.
        sessions: the conversation of a row, its turns in the order of the rows; empty where none.
        splits: "fit", "choose" or "test".
        quality: of each tier's answer, in [0, 1]; NaN where it is not known.
        cost: dollars of each tier's answer; NaN where they are not known.
        judged: the judge's score of each tier's answer, in [0, 1]; NaN where it was not judged.
        judge_cost: dollars of that judgement; 0 where there is none, NaN where nobody says.
        predicted: P(acceptable) of each tier before any call; NaN where nothing was predicted.
        lengths: characters of the prompt; NaN where there is no prompt.
        prompts: what was asked, as text; empty texts where that is not known.
        source: the file's name.
    """

    tiers: tuple[str, ...]
    ids: Texts
    groups: Texts
    kinds: Texts
    sessions: Texts
    splits: Texts
    quality: Matrix
    cost: Matrix
    judged: Matrix
    judge_cost: Matrix
    predicted: Matrix
    lengths: Matrix
    prompts: list[str]
    source: str

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, index: NDArray[Any]) -> "OutcomeTable":
        """Some of the rows, by their numbers or by a truth value for each."""
        at = np.arange(len(self))[index]
        arrays = {
            field.name: getattr(self, field.name)[at]
            for field in fields(self)
            if isinstance(getattr(self, field.name), np.ndarray)
        }
        return replace(self, **arrays, prompts=[self.prompts[i] for i in at])

    def of(self, split: str) -> "OutcomeTable":
        """The rows of one split."""
        return self.take(self.splits == split)

    def digest(self) -> str:
        """A hash of all that is in it, whatever file it came from."""
        hashed = hashlib.blake2b(digest_size=8)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "source":
                continue
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                hashed.update(np.ascontiguousarray(value, dtype=np.float64).tobytes())
            else:
                hashed.update("\0".join(value).encode("utf-8", "surrogatepass"))
            hashed.update(f"\1{field.name}\1".encode())
        return hashed.hexdigest()
