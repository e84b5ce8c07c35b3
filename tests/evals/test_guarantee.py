import random

import pytest

from evals.guarantee import (
    CertifyError,
    Count,
    Labelled,
    certify,
    fewest_labels,
    labels_for,
    least_escalated,
    opening,
    upper_bound,
)

DRAWS = 500


def drawn(rng: random.Random, count: int) -> list[Labelled]:
    """Answers that are right with probability 1 - (1 - score)^4."""
    rows = []
    for _ in range(count):
        score = rng.random()
        rows.append(
            Labelled(
                score=score,
                right=rng.random() < 1 - (1 - score) ** 4,
                strong_right=rng.random() < 0.9,
            )
        )
    return rows


def true_risk(risk: str, threshold: float) -> float:
    """What certify's bound is about, for the answers above: integrals over the score."""
    wrong = (1 - threshold) ** 5 / 5
    return {"selective": wrong / (1 - threshold), "joint": wrong, "loss": 0.9 * wrong}[risk]


@pytest.mark.parametrize("risk", ["selective", "joint", "loss"])
def test_the_guarantee_is_broken_no_more_often_than_it_says(risk: str) -> None:
    alpha, delta, rng = 0.05, 0.1, random.Random(risk)  # noqa: S311 - a simulation
    grid = opening([rng.random() for _ in range(300)], 300, alpha, delta)
    broken = certified = 0
    for _ in range(DRAWS):
        found = certify(drawn(rng, 300), risk=risk, alpha=alpha, delta=delta, grid=grid)
        if found.threshold is not None:
            certified += 1
            broken += true_risk(risk, found.threshold) > alpha
    assert certified > DRAWS / 2
    # three standard deviations of the count above delta
    assert broken <= DRAWS * delta + 3 * (DRAWS * delta * (1 - delta)) ** 0.5


def test_a_test_without_the_bound_would_be_caught() -> None:
    """The same simulation over the empirical risk is broken far more often."""
    alpha, rng = 0.05, random.Random(1)  # noqa: S311 - a simulation
    broken = 0
    for _ in range(DRAWS):
        rows = drawn(rng, 300)
        passing = [
            t / 100
            for t in range(1, 80)
            if sum(r.score >= t / 100 and not r.right for r in rows) <= alpha * len(rows)
        ]
        broken += true_risk("joint", min(passing)) > alpha
    assert broken > DRAWS * 0.2


def test_the_fewest_labels_are_those_of_a_faultless_sample() -> None:
    assert fewest_labels(0.05, 0.1) == 45
    assert labels_for(0.0, 0.05, 0.1) == 45
    assert 130 <= (labels_for(0.02, 0.05, 0.1) or 0) <= 160
    assert 209 <= (labels_for(0.03, 0.05, 0.1) or 0) <= 260
    assert labels_for(0.05, 0.05, 0.1) is None


def test_one_label_too_few_is_refused_and_says_how_many_it_takes() -> None:
    rows = [Labelled(score=1.0, right=True)] * 44
    with pytest.raises(CertifyError, match="it takes 45, 1 more"):
        certify(rows, risk="joint", alpha=0.05, delta=0.1)
    assert certify([*rows, rows[0]], risk="joint", alpha=0.05, delta=0.1).threshold == 0.01


def test_a_score_that_cannot_tell_is_never_accepted() -> None:
    rows = [Labelled(score=0.9, right=True)] * 60 + [Labelled(score=None, right=False)] * 40
    found = certify(rows, risk="selective", alpha=0.05, delta=0.1, grid=[0.5])
    assert (found.threshold, found.accepted, found.acceptance) == (0.5, 60, 0.6)
    assert found.count == Count(0, 60)


def test_a_failure_rate_above_alpha_is_certified_by_no_number_of_labels() -> None:
    rows = [Labelled(score=0.9, right=i % 2 == 0) for i in range(100)]
    found = certify(rows, risk="selective", alpha=0.05, delta=0.1, grid=[0.5])
    assert (found.threshold, found.bound, found.more) == (None, None, None)
    assert "no number of labels" in found.reason


def test_what_is_missing_is_counted_in_labels_not_in_accepted_answers() -> None:
    accepted = [Labelled(score=0.9, right=i != 0) for i in range(50)]
    rows = accepted + [Labelled(score=0.1, right=True)] * 50
    found = certify(rows, risk="selective", alpha=0.05, delta=0.1, grid=[0.5])
    needed = labels_for(1 / 50, 0.05, 0.1)
    assert found.threshold is None
    assert needed is not None
    assert found.more == 2 * needed - 100


def test_the_walk_ends_at_the_first_threshold_that_fails() -> None:
    """0.4 alone would pass, but behind 0.5, which does not, it may not be looked at."""
    rows = (
        [Labelled(score=0.9, right=True)] * 60
        + [Labelled(score=0.5, right=False)] * 10
        + [Labelled(score=0.4, right=True)] * 900
    )
    walk = {"risk": "selective", "alpha": 0.05, "delta": 0.1}
    assert certify(rows, grid=[0.4], **walk).threshold == 0.4
    assert certify(rows, grid=[0.8, 0.5, 0.4], **walk).threshold == 0.8


def test_the_bound_is_above_what_was_seen_and_below_alpha() -> None:
    rows = [Labelled(score=0.9, right=i >= 2, strong_right=True) for i in range(200)]
    found = certify(rows, risk="loss", alpha=0.05, delta=0.1)
    assert found.bound is not None
    assert 2 / 200 < found.bound <= 0.05
    assert upper_bound(Count(5, 5), 0.1) == 1.0


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("risk", {"risk": "regret"}),
        ("alpha", {"alpha": 0.0}),
        ("delta", {"delta": 1.0}),
        ("grid", {"grid": [0.5, 0.5]}),
        ("strong_right", {"risk": "loss"}),
    ],
)
def test_what_cannot_be_certified_names_the_argument(field: str, change: dict[str, object]) -> None:
    rows = [Labelled(score=1.0, right=True)] * 60
    with pytest.raises(CertifyError) as caught:
        certify(rows, **{"risk": "joint", "alpha": 0.05, "delta": 0.1, **change})  # type: ignore[arg-type]
    assert caught.value.param == field


def test_the_walk_opens_where_enough_answers_are_accepted() -> None:
    scores = [i / 100 for i in range(100)]
    walk = opening(scores, 300, 0.05, 0.1)
    assert walk[0] == pytest.approx(0.7)
    assert walk[-1] == 0.01
    assert list(opening([None] * 10, 300, 0.05, 0.1)) == [0.01]


def test_even_a_perfect_judge_must_send_up_the_errors() -> None:
    assert least_escalated(0.24, 0.05) == pytest.approx(0.2)
    assert least_escalated(0.03, 0.05) == 0.0
