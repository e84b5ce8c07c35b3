from dataclasses import replace

import numpy as np
import pytest

from cascade.audit import record
from cascade.embedding import Embedding
from cascade.types import Beliefs
from classifiers.features import TEXT
from evals.training.from_audit import from_audit
from evals.training.rows import TrainingError
from serving.store import schema
from serving.store.database import engine_for
from serving.store.feedback import Feedback
from serving.store.rows import decode, encode, insert
from tests.builders import attempt, completion, request, result

KEPT = {**dict.fromkeys(TEXT, 3.0), "tag.team=search": 1.0}
FEATURES = {**KEPT, "moon_phase": 0.5}


@pytest.fixture
def engine(tmp_path):
    url = f"sqlite:///{tmp_path}/audit.db"
    schema.upgrade(url)
    made = engine_for(url)
    yield made
    made.dispose()


def answered(name, *, tier="small", model="words-1", features=None, **fields):
    beliefs = Beliefs(
        mean={"small": 0.5},
        features=FEATURES if features is None else features,
        embedding=Embedding(model=model, vector=[0.25, -0.5]) if model else None,
    )
    done = result(
        request=request(id=name, **fields),
        beliefs=beliefs,
        attempts=(attempt(tier=tier, completion=completion(tier=tier)),),
    )
    return record(done, embeddings=True)


def said(name, score=None, label=None, *, source="", tenant="default", **comparison):
    return Feedback(
        **comparison,
        request_id=name,
        tenant=tenant,
        source=source,
        given_at=1.0,
        score=score,
        label=label,
        correction=None,
        comment=None,
    )


def store(engine, *items):
    with engine.begin() as connection:
        insert(connection, [decode(encode(item)) for item in items])


def test_a_request_with_feedback_is_a_row_of_the_tier_that_answered(engine):
    store(engine, answered("a"), said("a", 0.75), answered("b", tier="large"), said("b", 0.0))
    logged = from_audit(engine, ["small", "large"], embeddings=True)
    np.testing.assert_array_equal(logged.rows.labels, [[0.75, np.nan], [np.nan, 0.0]])
    np.testing.assert_array_equal(logged.rows.embeddings, [[0.25, -0.5]] * 2)
    assert logged.rows.features[0] == KEPT
    assert logged.embedded_by == "words-1"


def test_a_request_that_nobody_spoke_of_is_no_row(engine):
    store(engine, answered("a"), said("a", 1.0), answered("b"))
    assert len(from_audit(engine, ["small"], embeddings=True).rows) == 1


def test_words_count_as_scores_and_several_sources_as_their_mean(engine):
    store(
        engine,
        answered("a"),
        said("a", label="Good", source="x"),
        said("a", label="bad", source="y"),
        said("a", label="odd", source="z"),
    )
    assert from_audit(engine, ["small"], embeddings=True).rows.labels[0, 0] == 0.5


def test_a_word_that_comes_weeks_later_is_the_label_and_of_one_source_the_last_one(engine):
    store(engine, answered("a"), answered("b"), said("b", 1.0))
    assert from_audit(engine, ["small"], embeddings=True).rows.labels.tolist() == [[1.0]]
    weeks = 60.0 * 60 * 24 * 30
    store(engine, replace(said("a", 0.25), given_at=weeks), replace(said("b", 0.0), given_at=weeks))
    store(engine, replace(said("b", 0.5), given_at=2.0))  # said earlier, and comes in last
    assert from_audit(engine, ["small"], embeddings=True).rows.labels.tolist() == [[0.25], [0.0]]


def test_the_word_of_another_tenant_does_not_count(engine):
    store(engine, answered("a"), said("a", 1.0, tenant="other"))
    with pytest.raises(TrainingError, match="nobody gave feedback"):
        from_audit(engine, ["small"], embeddings=True)


def test_turns_of_a_session_are_one_group(engine):
    for name, session in (("a", "s"), ("b", "s"), ("c", "")):
        store(engine, answered(name, session=session), said(name, 1.0))
    groups = from_audit(engine, ["small"], embeddings=True).rows.groups
    assert groups[0] == groups[1] != groups[2]


def test_what_cannot_be_learned_from_is_counted_with_why(engine):
    store(
        engine,
        *(answered(name) for name in ("a", "b")),
        answered("c", model="words-2"),
        answered("d", model=None),
        answered("e", tier="gone"),
        answered("f", features={}),
        answered("g", features={"code": 1.0, "escalation": 0.0}),
        *(said(name, 1.0) for name in "abcdefg"),
    )
    logged = from_audit(engine, ["small"], embeddings=True)
    assert len(logged.rows) == 2
    assert sorted(logged.skipped.values()) == [1, 1, 1, 2]
    assert any("words-1" in why for why in logged.skipped)
    assert any("audit.embeddings" in why for why in logged.skipped)


def test_features_alone_need_no_embedding(engine):
    store(engine, answered("a", model=None), said("a", 1.0))
    logged = from_audit(engine, ["small"], embeddings=False)
    assert logged.rows.embeddings is None
    assert logged.embedded_by == ""


def test_a_log_without_embeddings_says_which_setting_keeps_them(engine):
    store(engine, answered("a", model=None), said("a", 1.0))
    with pytest.raises(TrainingError, match=r"1 skipped: .*audit\.embeddings"):
        from_audit(engine, ["small"], embeddings=True)


def test_answers_of_two_tiers_to_one_prompt_that_were_compared_are_one_row(engine):
    store(
        engine,
        answered("a"),
        answered("b", tier="large"),
        said("b", compared_to="a", preferred="this"),
    )
    logged = from_audit(engine, ["small", "large"], embeddings=True)
    np.testing.assert_allclose(logged.rows.labels, [[1 / 3, 2 / 3]])


def test_what_was_said_of_an_answer_goes_before_a_comparison(engine):
    store(
        engine,
        answered("a"),
        answered("b", tier="large"),
        said("a", 0.5, source="ci"),
        said("b", compared_to="a", preferred="this"),
    )
    logged = from_audit(engine, ["small", "large"], embeddings=True)
    np.testing.assert_allclose(logged.rows.labels, [[0.5, 0.75]])


def test_comparisons_that_say_nothing_of_tiers_are_counted_with_why(engine):
    other = [{"role": "user", "content": "another prompt"}]
    store(
        engine,
        answered("a"),
        answered("b"),
        answered("c", tier="large", messages=other),
        said("a", 1.0, compared_to="b", preferred="same"),
        said("b", compared_to="c", preferred="other"),
    )
    logged = from_audit(engine, ["small", "large"], embeddings=True)
    np.testing.assert_array_equal(logged.rows.labels, [[1.0, np.nan]])
    assert logged.skipped == {
        "two answers of one tier were compared": 1,
        "two answers were compared that are not to the same prompt": 1,
    }
