"""What is known of the quality of each arm's answers, from three sides that no arm acts on.

Feedback says it of the requests that somebody spoke of. A judge says it of answers that were drawn
by chance, and counts only when no arm of the experiment accepts or escalates by its word: an arm
that acts on a score is good by that score whatever its answers are worth. Comparisons say which of
two answers somebody preferred.
"""

from collections.abc import Set as AbstractSet

from sqlalchemy import Connection, Double, and_, case, cast, func, select

from cascade.types import Kind
from serving.results.covariates import earlier
from serving.results.ratios import Sums
from serving.results.trial import Trial
from serving.results.units import SHADOW, arms, latest, summed, within
from serving.store.feedback import WORDS
from serving.store.tables import attempts, feedback, requests

_CALLED = (requests, attempts, attempts.c.request_id == requests.c.id)


def of_feedback(connection: Connection, trial: Trial) -> dict[str, Sums]:
    """By arm, what the requests' own tenants said of their answers, in [0, 1]."""
    word = case(
        (feedback.c.score.is_not(None), feedback.c.score),
        *(
            (func.lower(func.trim(feedback.c.label)) == name, value)
            for name, value in WORDS.items()
        ),
    )
    said = (
        select(feedback.c.request_id, feedback.c.tenant, func.avg(word).label("score"))
        .where(word.is_not(None))
        .group_by(feedback.c.request_id, feedback.c.tenant)
        .subquery()
    )
    same = and_(said.c.request_id == requests.c.id, said.c.tenant == requests.c.tenant)
    told = (func.sum(said.c.score).label("s"), cast(func.count(), Double).label("n"))
    units = (
        select(requests.c.unit, *arms(), *told)
        .join_from(requests, said, same)
        .where(*within(trial))
        .group_by(requests.c.unit)
        .subquery("units")
    )
    before = None
    if (where := earlier(connection, trial)) is not None:
        key, then = where
        earlier_words = select(key.label("unit"), *told).join_from(requests, said, same)
        before = earlier_words.where(*then).group_by(key).subquery("before")
    return summed(connection, units, before)


def of_judges(
    connection: Connection, trial: Trial, acting: AbstractSet[str]
) -> dict[str, dict[str, Sums]]:
    """By judge and arm, the verdicts of judges that no arm acts on, on a sample of the answers.

    Each verdict counts one over the chance with which it was drawn, so that the sample stands for
    all answers.

    Args:
        connection: to read from.
        trial: the experiment, and the time that counts.
        acting: the judges that some arm acts on.
    """
    weight = 1.0 / attempts.c.propensity
    drawn = and_(
        attempts.c.kind == SHADOW,
        attempts.c.judge.is_not(None),
        attempts.c.score.is_not(None),
        attempts.c.propensity > 0,
        attempts.c.tier == requests.c.tier,
    )
    found: dict[str, dict[str, Sums]] = {}
    sampled = select(attempts.c.judge).distinct().join_from(*_CALLED).where(drawn, *within(trial))
    for judge in sorted(set(connection.scalars(sampled)) - acting):
        units = (
            select(
                requests.c.unit,
                *arms(),
                func.sum(attempts.c.score * weight).label("s"),
                func.sum(weight).label("n"),
            )
            .join_from(*_CALLED)
            .where(drawn, attempts.c.judge == judge, *within(trial))
            .group_by(requests.c.unit)
            .subquery()
        )
        found[judge] = summed(connection, units)
    return found


def acting_judges(connection: Connection, trial: Trial) -> set[str]:
    """The judges by whose word some arm acts: they cannot say which arm is better.

    Those of the configuration, and of the latest requests, which may be older than it.
    """
    asked = latest(trial)
    acted = attempts.c.kind.in_([Kind.ANSWER.value, Kind.JUDGE.value])
    wanted = select(attempts.c.judge).distinct()
    wanted = wanted.join_from(asked, attempts, attempts.c.request_id == asked.c.id)
    found = connection.scalars(wanted.where(acted, attempts.c.judge.is_not(None)))
    return {*found, *trial.acting}


def of_comparisons(connection: Connection, trial: Trial) -> dict[str, Sums]:
    """By arm other than the control, how often its answer was preferred to one of the control.

    An answer that is as good counts half.
    """
    other = requests.alias("other")
    points = case(
        (feedback.c.preferred == "this", 1.0), (feedback.c.preferred == "same", 0.5), else_=0.0
    )
    is_control = requests.c.arm == trial.control
    arm = case((is_control, other.c.arm), else_=requests.c.arm)
    of_arm = case((is_control, 1.0 - points), else_=points)
    pairs = (
        select(
            requests.c.unit,
            arm.label("arm"),
            arm.label("last_arm"),
            func.sum(of_arm).label("s"),
            cast(func.count(), Double).label("n"),
        )
        .join_from(
            feedback,
            requests,
            and_(feedback.c.request_id == requests.c.id, feedback.c.tenant == requests.c.tenant),
        )
        .join(
            other,
            and_(feedback.c.compared_to == other.c.id, feedback.c.tenant == other.c.tenant),
        )
        .where(
            feedback.c.preferred.is_not(None),
            other.c.experiment == trial.name,
            other.c.arm != requests.c.arm,
            (requests.c.arm == trial.control) | (other.c.arm == trial.control),
            *within(trial),
        )
        .group_by(requests.c.unit, arm)
        .subquery()
    )
    return summed(connection, pairs)
