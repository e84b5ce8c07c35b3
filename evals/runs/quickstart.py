"""The run that needs nothing: two embedded models over prompts whose answers are known."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from evals.datasets import TASKS, Prompt, load
from evals.gather import drawn
from evals.tables.splits import CHOOSE, FIT, TEST

CONFIG: Final = Path(__file__).parent / "quickstart.yaml"
PROMPTS: Final = 100
JUDGE: Final = "sound"
ESTIMATOR: Final = "looks"

COMPARED: Final = ("cascade:0.4", "cascade", "utility")
"""The default configuration's ladder as it is, whose setting was chosen on other prompts; and what
is chosen here."""

_FIT, _CHOOSE = 0.2, 0.2
"""Shares. Little is fitted, since the judge comes fitted: most rows are for the test."""


def prompts(count: int = PROMPTS) -> list[Prompt]:
    """Always the same ones: of those that the judge was not fitted on.

    Groups stay together, and each kind is parted for itself: of so few prompts a draw would leave
    one part with other kinds than another.
    """
    known = load(TASKS, split="test")
    chosen = {prompt.id for prompt in drawn(known)[:count]}
    kinds: dict[str, list[Prompt]] = defaultdict(list)
    for prompt in known:
        if prompt.id in chosen:
            kinds[prompt.kind].append(prompt)
    return [prompt for kind in sorted(kinds) for prompt in _parted(kinds[kind])]


def _parted(some: Sequence[Prompt]) -> list[Prompt]:
    """Group after group goes to the part that lacks most of its share."""
    groups: dict[str, list[Prompt]] = defaultdict(list)
    for prompt in some:
        groups[prompt.group or prompt.id].append(prompt)
    lacking = {
        FIT: _FIT * len(some),
        CHOOSE: _CHOOSE * len(some),
        TEST: (1.0 - _FIT - _CHOOSE) * len(some),
    }
    found = []
    for name in sorted(groups, key=_draw):
        part = max(lacking, key=lambda each: lacking[each])
        lacking[part] -= len(groups[name])
        found += [replace(prompt, split=part) for prompt in groups[name]]
    return found


def _draw(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()
