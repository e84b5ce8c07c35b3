from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import delete

from cascade.audit import record
from cascade.errors import UnknownModelError
from evals.logged.following import ReplayError
from evals.logged.replay import replay
from evals.logged.replay_report import report
from serving.store.feedback import Feedback
from serving.store.rows import decode, encode, insert
from serving.store.tables import attempts
from tests.builders import failed, result
from tests.evals.logged.logs import CONFIG, START, truth, wired, write

N = 1500


@pytest.fixture
def log(fresh):
    """A log, and the truth behind it."""

    def make(n=N, seed=0, **options):
        engine, real = fresh(), truth(n, seed)
        write(engine, real, seed=seed, **options)
        return engine, real

    return make


def within(interval_of, truth):
    return interval_of.low <= truth <= interval_of.high


def test_a_policy_that_is_the_same_costs_and_scores_the_same(log, tmp_path):
    engine, real = log()
    found = replay(engine, wired(tmp_path), "cascade")
    cost, worth = real.ladder(0.7)
    assert found.requests == N
    assert found.sessions == N // 3
    assert found.followed == 1.0
    assert found.cost.after.mean == pytest.approx(cost, rel=1e-6)
    assert (found.cost.difference, found.cost.low, found.cost.high) == (0.0, 0.0, 0.0)
    assert (found.quality.difference, found.judge) == (0.0, "quality")
    assert within(found.quality.after, worth)
    assert found.shares["small"][0] == pytest.approx(found.shares["small"][1].mean)


def test_a_looser_ladder_is_known_without_a_draw(log, tmp_path):
    engine, real = log()
    found = replay(engine, wired(tmp_path), "loose")
    assert found.followed == 1.0
    assert found.cost.after.mean == pytest.approx(real.ladder(0.4)[0], rel=1e-6)
    assert found.cost.after.low < found.cost.after.high
    assert within(found.quality.after, real.ladder(0.4)[1])


@pytest.mark.parametrize("policy", ["strict", "always-large"])
def test_what_was_not_asked_is_told_by_what_was_drawn(log, tmp_path, policy):
    engine, real = log()
    found = replay(engine, wired(tmp_path), policy)
    cost, worth = real.ladder(0.9) if policy == "strict" else real.always("large")
    assert found.followed < 0.9
    assert set(found.missing) == {"large"}
    assert found.unsupported == {}
    assert within(found.cost.after, cost)
    assert within(found.quality.after, worth)
    assert found.cost.after.effective == pytest.approx(found.cost.after.drawn)
    assert found.by_quote == pytest.approx(found.cost.after.mean)
    shares = [each.mean for _, each in found.shares.values()]
    assert sum(shares) == pytest.approx(1.0)


def test_a_tier_alone_is_asked_nothing_but_itself(log, tmp_path):
    engine, real = log()
    found = replay(engine, wired(tmp_path), "small")
    cost, worth = real.always("small")
    assert found.followed == 1.0
    assert found.cost.after.mean == pytest.approx(cost, rel=1e-6)
    assert within(found.quality.after, worth)


def test_intervals_hold_the_truth_of_the_log_over_many_logs(log, tmp_path):
    # 0.95 nominal of 16 logs: 12 or fewer in one of 1,000 such tests.
    snapshot, held = wired(tmp_path), np.zeros(2)
    for seed in range(16):
        engine, real = log(n=300, seed=seed, share=0.3)
        found = replay(engine, snapshot, "always-large")
        cost, worth = real.always("large")
        held += within(found.cost.after, cost), within(found.quality.after, worth)
    assert (held >= 13).all()


def test_what_was_said_counts_before_a_judge(log, tmp_path):
    engine, real = log(said=1.0, judged=False)
    found = replay(engine, wired(tmp_path), "cascade")
    assert found.judge is None
    assert found.quality.after.open == 0
    assert found.quality.after.mean == pytest.approx(real.ladder(0.7)[1])


def test_a_comparison_counts_where_nobody_spoke_of_the_answer_itself(log, tmp_path):
    engine, _ = log(n=300, share=0.0, judged=False)
    words = [
        word(i, 0.0) if i % 2 else word(i, compared_to=i + 1, preferred="this") for i in range(299)
    ]
    with engine.begin() as connection:
        insert(connection, [decode(encode(each)) for each in words])
    found = replay(engine, wired(tmp_path), "cascade")
    # Half are worth nothing, and the other half are better than what is worth nothing.
    assert found.quality.after.mean == pytest.approx(0.25, abs=0.01)


def test_where_a_judge_samples_a_comparison_counts_for_nothing(log, tmp_path):
    # It would be known of more of the requests that were not drawn than of those that were.
    engine, _ = log(n=600)
    before = replay(engine, wired(tmp_path), "cascade").quality
    words = [word(i, compared_to=i + 1, preferred="this") for i in range(0, 599, 2)]
    with engine.begin() as connection:
        insert(connection, [decode(encode(each)) for each in words])
    assert replay(engine, wired(tmp_path), "cascade").quality.after.mean == before.after.mean


def test_a_word_that_comes_late_counts_for_its_request(log, tmp_path):
    engine, _ = log(n=300, share=0.0, judged=False)
    assert replay(engine, wired(tmp_path), "cascade").quality is None
    late = [replace(word(i, 1.0), given_at=START + 1e7) for i in range(300)]
    with engine.begin() as connection:
        insert(connection, [decode(encode(each)) for each in late])
    found = replay(engine, wired(tmp_path), "cascade")
    assert found.quality.after.mean == pytest.approx(1.0)


def word(i, score=None, compared_to=None, preferred=None):
    return Feedback(
        request_id=f"r{i:06d}",
        tenant="default",
        source="",
        given_at=START + i,
        score=score,
        label=None,
        correction=None,
        comment=None,
        compared_to=None if compared_to is None else f"r{compared_to:06d}",
        preferred=preferred,
    )


def test_without_any_label_there_is_no_quality_and_a_cost_all_the_same(log, tmp_path):
    engine, real = log(n=600, judged=False)
    found = replay(engine, wired(tmp_path), "always-large")
    assert found.quality is None
    assert within(found.cost.after, real.always("large")[0])


def test_a_tier_that_was_never_drawn_has_no_support(log, tmp_path):
    engine, _ = log(n=600)
    found = replay(engine, wired(tmp_path), "always-huge")
    assert found.unsupported == found.missing == {"huge": 1.0}
    assert np.isnan(found.cost.after.mean)
    assert found.quality is None
    # Of 256 tokens, as nothing is known of the tier's answers: 100 at $10 and 256 at $20.
    assert found.by_quote == pytest.approx(6120e-6)


@pytest.mark.parametrize(
    ("policy", "why"),
    [("always-huge", "were looked at by judge quality"), ("other-judge", "and no judge on whose")],
)
def test_it_says_why_nothing_is_known_of_the_quality(log, tmp_path, policy, why):
    engine, _ = log(n=300)
    told = report(replay(engine, wired(tmp_path), policy))
    assert any(why in each for each in told if isinstance(each, str))


def test_without_draws_it_says_where_nothing_is_known(log, tmp_path):
    engine, real = log(n=600, share=0.0)
    found = replay(engine, wired(tmp_path), "strict")
    between = float(np.mean((real.score >= 0.7) & (real.score < 0.9)))
    assert found.drawn == 0
    assert found.unsupported["large"] == pytest.approx(between)
    assert found.by_quote > found.cost.after.mean


def test_a_verdict_of_a_judge_that_was_not_asked_has_to_be_drawn(log, tmp_path):
    engine, _ = log(n=600)
    found = replay(engine, wired(tmp_path), "other-judge")
    assert found.followed == 0.0
    assert set(found.missing) == {"small"}
    assert found.unsupported == {}
    assert found.judge is None


def test_the_score_that_a_policy_acts_on_is_no_label_unless_it_is_asked_for(log, tmp_path):
    engine, _ = log(n=300)
    snapshot = wired(tmp_path)
    assert replay(engine, snapshot, "other-judge").quality is None
    assert replay(engine, snapshot, "other-judge", judge="quality").quality


def test_a_policy_with_another_estimator_cannot_be_asked(log, tmp_path):
    engine, _ = log(n=30)
    with pytest.raises(ReplayError, match="30 left out: policy cascade believed another estimator"):
        replay(engine, wired(tmp_path), "weighing")


def test_what_is_not_there_is_said(log, tmp_path):
    engine, _ = log(n=30)
    snapshot = wired(tmp_path)
    with pytest.raises(UnknownModelError, match="no model 'gone'"):
        replay(engine, snapshot, "gone")
    with pytest.raises(ReplayError, match="'gone'; those that did: quality"):
        replay(engine, snapshot, "cascade", judge="gone")
    with pytest.raises(ReplayError, match="no requests of that time"):
        replay(engine, snapshot, "cascade", since=START + 1e6)


def test_only_requests_of_the_time_are_looked_at(log, tmp_path):
    engine, _ = log(n=300)
    found = replay(engine, wired(tmp_path), "cascade", since=START + 200)
    assert found.requests == 100
    assert found.other_configuration == 1.0


def test_a_policy_that_weighs_dollars_gets_the_quotes_and_beliefs_that_it_would_have_got(
    log, tmp_path
):
    engine, real = log(n=600, policy="weighing")
    snapshot = wired(tmp_path)
    poor, rich = (replay(engine, snapshot, name) for name in ("poor", "rich"))
    assert poor.followed == 1.0
    assert poor.cost.after.mean == pytest.approx(real.always("small")[0], rel=1e-6)
    # Of large it believes one half, so what small's judge gives less goes up at any price.
    assert rich.shares["large"][1].mean == pytest.approx(float(np.mean(real.score < 0.5)))


def test_nobody_answering_is_worth_nothing(fresh, tmp_path):
    engine = fresh()
    lost = result("r1", attempts=(failed(0),), completion=None, policy="cascade")
    with engine.begin() as connection:
        insert(connection, [decode(encode(record(lost)))])
    found = replay(engine, wired(tmp_path), "always-small")
    assert (found.quality.before.mean, found.quality.after.mean) == (0.0, 0.0)
    assert found.followed == 1.0


def test_a_request_whose_client_left_is_left_out(fresh, tmp_path):
    engine = fresh()
    with engine.begin() as connection:
        left = result("r1", cancelled=True, completion=None)
        insert(connection, [decode(encode(record(each))) for each in (left, result("r2"))])
    found = replay(engine, wired(tmp_path), "always-small")
    assert (found.requests, found.skipped) == (1, {"the client left": 1})


def test_draws_of_every_request_stand_for_those_that_were_lost(log, tmp_path):
    engine, real = log(n=900, share=1.0)
    lost = attempts.c.request_id >= "r000600"
    with engine.begin() as connection:
        connection.execute(delete(attempts).where(attempts.c.kind == "shadow", lost))
    found = replay(engine, wired(tmp_path), "always-large")
    assert found.unsupported == {}
    assert 0 < found.drawn < 600
    assert within(found.cost.after, real.always("large")[0])
    assert within(found.quality.after, real.always("large")[1])


def test_an_experiment_is_no_policy(log, tmp_path):
    engine, _ = log(n=3)
    text = f"{CONFIG}experiments:\n  trial: {{arms: {{a: {{policy: cascade}}}}}}\n"
    with pytest.raises(ReplayError, match="trial is an experiment; name one of the policies"):
        replay(engine, wired(tmp_path, text), "trial")
