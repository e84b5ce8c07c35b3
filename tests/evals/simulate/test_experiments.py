import numpy as np
import pytest

from evals.simulate.experiment_table import Played as Many
from evals.simulate.experiment_table import named, plans, played, record, tables
from evals.simulate.experiments import DAYS, Plan, look, play


def random(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kind", ["conversations", "people"])
def test_sums_grow_from_day_to_day_and_count_every_unit_once(kind):
    made = play(Plan(kind=kind, units=100, days=5), random())
    assert len(made.counts) == 5
    for looks in made.looks.values():
        units = [each.arm.units + each.control.units for each in looks]
        assert units == sorted(units)
        assert units == [sum(pair) for pair in made.counts]
        assert [each.arm.n for each in looks] == sorted(each.arm.n for each in looks)
    total = 500 if kind == "conversations" else 100
    assert sum(made.counts[-1]) <= total


def test_conversations_are_all_there_and_people_come_one_by_one():
    everybody = play(Plan(kind="conversations", units=100, days=5), random())
    assert sum(everybody.counts[-1]) == 500
    people = play(Plan(kind="people", units=1000, days=5), random())
    assert sum(people.counts[0]) == pytest.approx(0.25 * (1 - np.exp(-2)) * 1000, abs=60)


def test_a_better_arm_is_better_by_that_much():
    made = play(Plan(kind="conversations", units=20_000, lift=0.03, days=1), random())
    (quality,) = made.looks["quality"]
    assert quality.control.ratio == pytest.approx(0.8, abs=0.01)
    assert quality.arm.ratio - quality.control.ratio == pytest.approx(0.028, abs=0.01)


def test_what_people_spent_before_takes_variance_away():
    from serving.results.ratios import difference

    made = play(Plan(kind="people", units=2000), random())
    plain, less = (
        difference(*made.looks[name][-1], bounded=False, as_ratio=True)
        for name in ("cost", "cost, less what people spent before")
    )
    assert plain.reduced == 0
    assert less.reduced > 0.3


def test_a_clear_difference_is_seen_and_its_day_is_told():
    seen = look(play(Plan(kind="conversations", units=800, lift=0.15), random()))
    assert seen.found["quality"] is not None
    assert seen.naive["quality"] <= seen.found["quality"] <= DAYS


def test_daily_looks_are_seldom_wrong_and_those_for_one_look_often():
    many = played(Plan(kind="conversations", units=100), 150, 3, lambda: None)
    assert many.share_found("quality") <= 0.05
    assert many.share_found("quality", naive=True) > 0.1
    assert many.share_found("quality", by=7) <= many.share_found("quality")


def test_the_same_seed_gives_the_same_experiments():
    plan = Plan(kind="people", units=200, days=10)
    one, again, other = (played(plan, 5, seed, lambda: None).seen for seed in (1, 1, 2))
    assert one == again != other


def test_tables_and_json_say_what_was_found():
    same, better, worse = plans()
    few = [played(plan, 2, 1, lambda: None) for plan in (same[0], better[0], worse[-1])]
    title, alarms, _, power, _, stops = tables(*([each] for each in few))
    assert title.startswith("2 experiments of each kind")
    assert [row[1] for row in alarms.rows][-1] == "shares of the arms"
    assert power.rows[0][0] == "50"
    assert stops.rows == [["10 points", "100.0%", "100.0%", "100.0%"]]
    assert named(worse[-1]) == "200 conversations a day, 10 points worse"
    assert record(few[0])["traffic"] == "conversations"
    assert named(better[0]) == "50 conversations a day, 3 points better"
    assert isinstance(few[0], Many)
