import numpy as np
import pytest

from cascade.audit import record
from cascade.embedding import Embedding
from cascade.types import Beliefs, Cost, Step
from classifiers.domain import Domain, Near
from classifiers.features import TEXT
from evals.logged.drift import LEAST_ROWS, Learned, drift
from evals.logged.drift_report import plain, report, verdicts
from serving.store.feedback import Feedback
from serving.store.rows import decode, encode, insert
from tests.builders import attempt, request, result, verdict

START = 1_790_000_000.0
SINCE = START + 1_000_000.0
SHAPE = dict.fromkeys(TEXT, 0.0)
STEP = Step(tier="small", judge="sound")
RNG = np.random.default_rng


def domain(seed=0):
    """Of rows around the first axis, from which hardly any is farther away than .5."""
    return Domain(
        meaning=Near(around(0, 200, seed), nearest=5, limit=0.5),
        shape=Near(np.zeros((10, len(TEXT))), nearest=5, limit=3.0),
        means=np.zeros(len(TEXT)),
        scales=np.ones(len(TEXT)),
    )


def around(axis, n, seed):
    made = RNG(seed).normal(scale=0.05, size=(n, 6))
    made[:, axis] += 1.0
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def learned(**changes):
    values = {"name": "uplift", "policies": ["cascade"], "embedded_by": "words-1"}
    return Learned(**{**values, "domain": domain(), "inside": 0.95, **changes})


def rows(at, *, n=120, axis=0, score=0.6, right=None, flags=(), seed=0, kept=True, belief=0.6):
    """Requests of as many sessions, with feedback where it is to be known what was right."""
    rng = RNG(seed)
    vectors = around(axis, n, seed + 1)
    entries = []
    for i in range(n):
        name = f"{int(at)}-{i}"
        given = float(np.clip(rng.normal(score, 0.1), 0.01, 0.99))
        vector = Embedding(model="words-1", vector=vectors[i].tolist()) if kept else None
        made = result(
            request=request(id=name, session=name),
            policy="cascade",
            started_at=at + i,
            attempts=(attempt(step=STEP, verdict=verdict(given, judge="sound"), cost=Cost()),),
            beliefs=Beliefs(
                mean={"small": belief},
                features=SHAPE,
                embedding=vector,
                flags=frozenset(flags if i % 2 else ()),
            ),
        )
        entries.append(encode(record(made, embeddings=True)))
        if right is not None:
            entries.append(encode(said(name, float(rng.random() < right(given)), at + i)))
    return entries


def said(name, score, at):
    return Feedback(
        request_id=name,
        tenant="default",
        source="",
        given_at=at,
        score=score,
        label=None,
        correction=None,
        comment=None,
    )


def looked(engine, *entries, estimator=None, **options):
    with engine.begin() as connection:
        insert(connection, [decode(line) for each in entries for line in each])
    return drift(engine, SINCE, earlier=None, learned=estimator, **options)


def test_traffic_that_is_as_it_was_gives_no_sign(fresh):
    found = looked(
        fresh(),
        rows(START, seed=1),
        rows(SINCE, seed=2, right=lambda s: s),
        estimator=learned(),
        calibrated=["sound"],
    )
    assert found.requests == found.earlier == (120, 120)
    assert found.inside.recomputed
    assert not found.inside.left
    (spread,) = [each for each in found.spreads if each.who.judge]
    assert not spread.moved
    assert (found.retrain, found.recertify) == ([], [])
    assert verdicts(found) == ["No sign that anything has to be trained or certified anew."]


def test_requests_about_other_things_are_out_of_the_domain(fresh):
    found = looked(fresh(), rows(SINCE, axis=3), estimator=learned())
    assert found.inside.out == 1.0
    assert found.inside.energy.distance > 0.5
    assert found.inside.energy.p == 0.005
    assert "100% of the sessions are unlike its training rows, where 5% would be" in found.retrain
    assert "`cascade train`" in verdicts(found)[0]


def test_requests_of_one_kind_are_a_sign_though_each_is_near_some_row(fresh):
    wide = Domain(
        meaning=Near(
            np.concatenate([around(axis, 60, axis) for axis in range(6)]), nearest=5, limit=0.5
        ),
        shape=Near(np.zeros((10, len(TEXT))), nearest=5, limit=3.0),
        means=np.zeros(len(TEXT)),
        scales=np.ones(len(TEXT)),
    )
    found = looked(fresh(), rows(SINCE), estimator=learned(domain=wide))
    assert found.inside.out == 0.0
    assert found.inside.elsewhere
    assert "of 1 away from its training rows (energy distance)" in found.retrain[0]


def test_without_embeddings_the_flags_of_the_time_are_believed(fresh):
    entries = rows(SINCE, kept=False, flags=["out_of_domain"])
    found = looked(fresh(), entries, estimator=learned())
    assert (found.inside.recomputed, found.inside.out, found.inside.energy) == (False, 0.5, None)
    assert found.inside.left


def test_beliefs_that_no_estimator_gave_are_not_looked_at(fresh):
    entries = rows(SINCE, kept=False, flags=["no_estimator"])
    found = looked(fresh(), entries, estimator=learned())
    assert found.inside.sessions == 60


def test_a_judge_that_gives_other_scores_than_before_is_a_sign(fresh):
    found = looked(fresh(), rows(START), rows(SINCE, score=0.8, seed=3))
    (spread,) = [each for each in found.spreads if each.who.judge]
    assert spread.moved
    assert spread.gap.p == 0.005
    assert "the sound of small went from 0.6" in found.recertify[0]
    assert "`cascade judges certify`" in verdicts(found)[0]


def test_a_judge_that_is_less_often_right_than_it_says_is_a_sign(fresh):
    found = looked(fresh(), rows(SINCE, right=lambda s: s - 0.4), calibrated=["sound"])
    (one,) = [each for each in found.reliabilities if each.who.judge]
    assert one.off
    assert one.error == pytest.approx(0.4, abs=0.1)
    assert sum(count for count, _, _ in one.bins) == one.labels == 120
    assert "is right in 0.15" in found.recertify[0]


def test_a_score_that_is_no_probability_may_be_off(fresh):
    found = looked(fresh(), rows(SINCE, right=lambda s: s - 0.4))
    (one,) = [each for each in found.reliabilities if each.who.judge]
    assert one.error > one.noise
    assert found.recertify == []


def test_beliefs_that_are_wrong_are_the_estimators(fresh):
    entries = rows(SINCE, right=lambda _: 0.1)
    found = looked(fresh(), entries, estimator=learned())
    assert any("the belief in small says 0.60 and is right in 0." in why for why in found.retrain)


def test_too_few_are_said_and_nothing_made_of_them(fresh):
    entries = rows(SINCE, n=LEAST_ROWS - 1, right=lambda s: s, score=0.9)
    found = looked(fresh(), entries, estimator=learned())
    assert (found.inside, found.spreads, found.reliabilities) == (None, [], [])
    assert "49 sessions that uplift looked at" in found.few
    assert "49 labels on the sound of small" in found.few
    assert verdicts(found) == ["There is too little in the log to say anything."]


def test_everything_can_be_told_to_people_and_to_machines(fresh):
    found = looked(
        fresh(),
        rows(START),
        rows(SINCE, right=lambda s: s, seed=5),
        estimator=learned(),
        calibrated=["sound"],
    )
    parts = report(found)
    titles = [part.title for part in parts if not isinstance(part, str)]
    assert titles == [
        "what uplift has learned from, looked at anew",
        "how scores and beliefs are spread, before and now",
        "whether answers are right as often as was said",
    ]
    told = plain(found)
    assert told["domain"]["expected"] == pytest.approx(0.05)
    assert told["spreads"][0]["who"] == {"tier": "small", "judge": None}
