from dataclasses import replace

import numpy as np
import pytest

from cascade.types import Usage
from evals.collecting.asking import Row
from evals.collecting.journal import Answered, Judged
from evals.collecting.scoring import qualities
from tests.evals.outcomes import prompt


def row(scorer, reference, *, grades=(), **texts):
    return Row(
        prompt=replace(prompt("a"), scorer=scorer, reference=reference),
        answers={
            tier: Answered(
                request="r",
                tier=tier,
                model="m",
                text=text,
                finish_reason="stop",
                usage=Usage(),
                seconds=0.1,
                first_token_seconds=None,
            )
            for tier, text in texts.items()
        },
        grades={
            tier: Judged(request="r", tier=tier, answer="h", judge="j", score=score)
            for tier, score in grades
        },
    )


def test_answers_are_scored_by_their_prompts_scorer():
    rows = [
        row("number", 4, small="It is 4.", large="5"),
        row("exact", "yes", small="Yes", large="yes"),
        row("judge", None, small="a", large="b", grades=[("small", 0.3), ("large", None)]),
        row("number", 4, large="4"),
    ]
    np.testing.assert_array_equal(
        qualities(rows, ["small", "large"]),
        [[1, 0], [0, 1], [0.3, np.nan], [np.nan, 1]],
    )


def test_likeness_is_the_cosine_to_the_reference_and_may_be_asked_to_be_high_enough():
    vectors = {"cat": [1.0, 0.0], "kitten": [0.8, 0.6], "stone": [-1.0, 0.0]}

    def encode(texts):
        assert len(texts) == len(set(texts))
        return np.array([vectors[text] for text in texts], dtype=np.float32)

    rows = [
        row("similarity", "cat", small="kitten", large="stone"),
        row("similarity", {"text": "cat", "at_least": 0.7}, small="kitten", large="stone"),
    ]
    found = qualities(rows, ["small", "large"], encode)
    assert found == pytest.approx(np.array([[0.8, 0.0], [1.0, 0.0]]))
