import numpy as np
import pytest

from cascade.types import Cost, Kind, Step
from evals.training.from_audit import from_audit
from evals.training.rows import TrainingError
from serving.store.late import Late
from tests.builders import attempt, verdict
from tests.evals.training.test_from_audit import answered, engine, said, store

__all__ = ["engine"]

TIERS = ["small", "large"]


def judged(index, tier, score, judge="quality"):
    return attempt(
        index,
        tier=tier,
        kind=Kind.SHADOW,
        step=Step(tier=tier, judge=judge),
        verdict=verdict(score, judge=judge),
        completion=None,
        cost=Cost(),
        propensity=0.1,
    )


def drawn(name, small, large, **more):
    calls = [judged(1, "small", small, **more), judged(2, "large", large, **more)]
    return Late(request_id=name, attempts=calls, at=1.0)


def test_a_drawn_request_has_a_label_of_every_tier(engine):
    store(engine, answered("a"), drawn("a", 0.25, 0.75), answered("b"))
    found = from_audit(engine, TIERS, embeddings=True, judge="quality")
    np.testing.assert_array_equal(found.rows.labels, [[0.25, 0.75]])


def test_what_was_said_of_the_answer_counts_before_the_judge(engine):
    store(engine, answered("a"), drawn("a", 0.25, 0.75), said("a", 1.0), answered("b"))
    store(engine, said("b", 0.0))
    found = from_audit(engine, TIERS, embeddings=True, judge="quality")
    np.testing.assert_array_equal(found.rows.labels, [[1.0, 0.75], [0.0, np.nan]])


def test_it_is_left_out_unless_the_judge_is_named(engine):
    store(engine, answered("a"), drawn("a", 0.25, 0.75), answered("b"), said("b", 1.0))
    assert len(from_audit(engine, TIERS, embeddings=True).rows) == 1


def test_a_judge_that_could_not_tell_gives_no_label(engine):
    store(engine, answered("a"), drawn("a", None, 0.75))
    found = from_audit(engine, TIERS, embeddings=True, judge="quality")
    np.testing.assert_array_equal(found.rows.labels, [[np.nan, 0.75]])


def test_a_drawn_request_that_cannot_be_a_row_is_counted(engine):
    store(engine, answered("a", model=""), drawn("a", 0.25, 0.75), answered("b"), said("b", 1.0))
    found = from_audit(engine, TIERS, embeddings=True)
    assert found.skipped == {}
    found = from_audit(engine, TIERS, embeddings=True, judge="quality")
    assert list(found.skipped.values()) == [1]


def test_a_judge_that_looked_at_nothing_is_said(engine):
    store(engine, answered("a"), drawn("a", 0.25, 0.75))
    with pytest.raises(TrainingError, match="'gone' looked at no answers of shadow calls"):
        from_audit(engine, TIERS, embeddings=True, judge="gone")
