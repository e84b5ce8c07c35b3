"""Fitted, chosen and measured on rows apart, and what is concluded from it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.frontier.headroom import headroom
from evals.frontier.known import FrontierError, learn
from evals.frontier.measure import measure
from evals.frontier.policies import replayed
from evals.frontier.report import pays, record, report, rows_of_settings, verdict
from evals.frontier.warmth import Warmth
from evals.panel_report import Printed, as_markdown
from tests.evals.frontier.worlds import world
from tests.evals.tables.tables import table

QUICK = {"resamples": 40}


def found_of(some, **options):
    return measure(some, **{**QUICK, **options})


@pytest.fixture(scope="module")
def found():
    return found_of(world(1200))


def test_settings_are_chosen_on_the_choose_rows_and_measured_on_the_test_rows(found):
    some = world(1200)
    cascade = replayed(some)["cascade"]
    choose, test = some.of("choose"), some.of("test")
    curve = cascade.curve(choose)
    enough = curve.quality >= 0.95 * choose.quality[:, 1].mean()
    knob = curve.knob[enough][curve.cost[enough].argmin()]
    setting = found.results["cascade"].settings[0]
    assert (setting.target, setting.knob) == (0.95, knob)
    _, cost, quality = cascade.decisions(test, knob)
    assert setting.measured["cost"].value == pytest.approx(cost.mean())
    assert setting.measured["quality"].value == pytest.approx(quality.mean())
    saved = 1.0 - cost.mean() / test.cost[:, 1].mean()
    assert setting.measured["savings"].value == pytest.approx(saved)


def test_what_is_chosen_does_not_hang_on_the_test_rows(found):
    some = world(1200)
    test = some.splits == "test"
    turned = some.quality.copy()
    turned[test] = 1.0 - turned[test]
    other = found_of(replace(some, quality=turned))
    for name, result in found.results.items():
        knobs = [setting.knob for setting in result.settings]
        assert [setting.knob for setting in other.results[name].settings] == knobs
    assert (other.leader, other.cheapest) == (found.leader, found.cheapest)


def test_random_is_a_half_and_the_oracle_leads(found):
    metrics = {name: each.metrics for name, each in found.results.items()}
    random = metrics["random"]
    line = [random[name].value for name in ("APGR", "CPT50", "CPT80", "lead")]
    assert line == pytest.approx([0.5, 0.5, 0.8, 0.0])
    assert all(
        each["AUC"].value <= metrics["oracle"]["AUC"].value + 1e-9 for each in metrics.values()
    )
    assert metrics["uplift"]["lead"].value == pytest.approx(
        metrics["uplift"]["AUC"].value - random["AUC"].value
    )


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), tiers=st.integers(2, 4))
def test_the_random_line_is_a_line(seed, tiers):
    some = world(120, tiers, seed)
    mix = found_of(some, names=["random"], resamples=2).results["random"]
    for setting in mix.settings:
        if setting.knob is not None:
            low, part = int(setting.knob), setting.knob % 1.0
            high = min(low + 1, len(mix.curve) - 1)
            for name, values in (("cost", mix.curve.cost), ("quality", mix.curve.quality)):
                line = values[low] + part * (values[high] - values[low])
                assert setting.measured[name].value == pytest.approx(line)


def test_intervals_hold_their_values_and_are_over_groups(found):
    for each in found.results.values():
        if each.name != "random":
            low, high = each.metrics["AUC"].interval
            assert low < each.metrics["AUC"].value < high
    assert found.groups == len(set(world(1200).of("test").groups))


def test_a_cascade_shows_what_it_was_expected_to_cost_beside_what_it_did(found):
    test = world(1200).of("test")
    setting = found.results["cascade"].settings[0]
    small = test.cost[:, 0].mean() + test.judge_cost[:, 0].mean()
    expected = small + (1.0 - setting.shares[0]) * test.cost[:, 1].mean()
    assert setting.expected == pytest.approx(expected)
    assert found.results["utility"].settings[0].expected is None


def test_good_predictions_pay_and_the_page_says_so(found):
    assert pays(found)
    assert verdict(found).startswith(f"Routing pays: {found.leader}")


def test_guesses_do_not_pay():
    rng = np.random.default_rng(0)
    some = world(900, judged=())
    some = replace(
        some,
        predicted=rng.random((900, 2)),
        lengths=rng.random(900),
        kinds=np.full(900, ""),
    )
    guessed = found_of(some)
    assert not pays(guessed)
    assert "Routing does not pay here, as far as 300 test rows can tell" in verdict(guessed)


def test_what_buys_no_quality_is_neither_chosen_nor_counted(found):
    for name in ("classifier", "kind", "oracle"):
        result = found.results[name]
        assert (result.curve.knob[: result.sound] > 0.0).all()
        assert (result.curve.knob[result.sound :] <= 0.0).all()
        assert all(s.knob is None or s.knob > 0.0 for s in result.settings)


def test_with_several_tiers_the_line_to_beat_bends_at_those_worth_mixing():
    some = world(900, 3)
    some = replace(some, cost=np.broadcast_to([1.0, 2.0, 20.0], some.cost.shape))
    mix = found_of(some).results["random"]
    test = some.of("test")
    np.testing.assert_allclose(mix.curve.cost, [1.0, 2.0, 20.0])
    np.testing.assert_allclose(mix.curve.quality, test.quality.mean(axis=0))
    setting = mix.settings[0]
    assert 1.0 < setting.knob < 2.0
    part = setting.knob - 1.0
    np.testing.assert_allclose(setting.shares, [0.0, 1.0 - part, part])
    assert setting.measured["cost"].value == pytest.approx(2.0 + 18.0 * part)


def test_where_the_cheapest_is_the_best_there_is_nothing_to_route():
    some = world(300)
    best = found_of(replace(some, quality=some.quality[:, ::-1].copy()))
    assert "small is the best tier, and none is cheaper" in verdict(best)
    assert record(best)["pays"] is False
    same = found_of(replace(some, cost=np.ones_like(some.cost)))
    assert "large is the best tier, and none is cheaper" in verdict(same)


def test_the_headroom_by_hand():
    some = table(
        [[1, 1], [0, 1], [0, 0], [1, 0]] * 2,
        cost=[[1.0, 10.0]],
        splits=["fit"] * 4 + ["test"] * 4,
    )
    some.quality[1, 0], some.quality[2, 1] = 0.0, 1.0  # on the fit rows large is the better one
    head = headroom(some.of("test"), learn(some))
    assert (head.best, head.cheapest) == ("large", "small")
    assert head.oracle == pytest.approx(((3 * 1.0 + 10.0) / 4, 0.75))
    assert head.oracle_cost == pytest.approx(1.0 / 10.0)
    told = (head.all_right, head.all_wrong, head.only_dearer, head.only_cheapest)
    assert told == (0.25, 0.25, 0.25, 0.25)


def test_the_same_table_gives_the_same_bytes(found):
    again = found_of(world(1200))
    assert json.dumps(record(again)) == json.dumps(record(found))
    assert rows_of_settings(again) == rows_of_settings(found)
    other = found_of(world(1200), seed=1)
    assert json.dumps(record(other)) != json.dumps(record(found))


def test_everything_is_told_in_words_and_in_plain_values(found):
    text = as_markdown(report(found))
    for part in (
        "Best single: large",
        "Routing pays",
        "CPT80",
        "IBC lift",
        "expected: of a cascade",
    ):
        assert part in text
    plain = record(found)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["policies"]["cascade"]["chosen"][1]["shares"].keys() == {"small", "large"}
    titles = [part.title for part in report(found) if isinstance(part, Printed)]
    assert titles[0] == "each tier alone"


def test_every_setting_is_in_the_csv(found):
    lines = rows_of_settings(found).splitlines()
    assert lines[0] == "policy,knob,cost,quality,share.small,share.large"
    settings = sum(len(each.curve) for each in found.results.values())
    assert len(lines) == settings + 1


def test_only_what_is_asked_for_is_played_beside_the_line_to_beat(found):
    some = found_of(world(300), names=["cascade"])
    assert list(some.results) == ["random", "cascade"]
    with pytest.raises(FrontierError, match="policy kind: all rows are of one kind, or of none"):
        found_of(replace(world(300), kinds=np.full(300, "")), names=["kind"])


def test_a_split_that_is_missing_is_refused():
    some = world(60)
    with pytest.raises(FrontierError, match="there are no choose rows"):
        found_of(some.take(some.splits != "choose"))


def test_cold_caches_make_going_to_and_fro_dearer_and_leave_the_line_straight():
    some = replace(world(600), lengths=np.full(600, 1000.0))
    talks = replace(some, sessions=some.groups)
    warmth = Warmth(dollars=np.array([2e-7, 2e-6]))
    cold = found_of(talks, warmth=warmth)
    blind = found_of(warmth.warm(talks))
    assert cold.cold
    uplift, without = (each.results["uplift"] for each in (cold, blind))
    assert (uplift.curve.cost >= without.curve.cost - 1e-12).all()
    assert uplift.curve.cost[[0, -1]] == pytest.approx(without.curve.cost[[0, -1]])
    assert (
        cold.results["random"].metrics["AUC"].value == blind.results["random"].metrics["AUC"].value
    )


def test_names_are_shown_as_they_are():
    some = replace(world(300), tiers=("[red]small", "large"))
    assert "\\[red]small" in as_markdown(report(found_of(some)))


def test_one_group_has_no_intervals_and_nothing_is_concluded_from_it():
    some = world(600)
    found = found_of(replace(some, groups=some.splits))
    lead = found.results[found.leader].metrics["lead"]
    assert lead.value > 0.0
    assert np.isnan(lead.interval).all()
    assert not pays(found)
    assert "cannot be told" in verdict(found)
    assert "one group" in verdict(found)
    assert "nan" not in as_markdown(report(found))
    assert record(found)["policies"]["uplift"]["metrics"]["APGR"]["interval"] == [None, None]


def test_where_everything_is_free_no_share_of_a_cost_is_told():
    some = world(300)
    free = replace(some, cost=np.zeros_like(some.cost), judge_cost=np.zeros_like(some.cost))
    found = found_of(free)
    assert "nan" not in as_markdown(report(found))
    assert "does not pay" in verdict(found)
    assert record(found)["headroom"]["oracle"]["share_of_best_cost"] is None


@pytest.mark.parametrize(
    ("costs", "told"), [((20.0, 1.0, 2.0), "cannot be told"), ((2.0, 1.0, 20.0), "pay")]
)
def test_a_first_tier_that_is_not_the_cheapest_is_told(costs, told):
    some = world(300, tiers=3)
    found = found_of(replace(some, cost=np.broadcast_to(costs, some.cost.shape).copy()))
    text = as_markdown(report(found))
    assert "small stands first and is taken for the cheapest tier, but middle costs less" in text
    assert "nan" not in text
    assert told in verdict(found)


def test_tiers_in_order_are_not_complained_of(found):
    assert "stands first" not in as_markdown(report(found))


@pytest.mark.parametrize(("groups", "few"), [(5, True), (40, False)])
def test_intervals_over_few_groups_are_said_to_be_too_narrow(groups, few):
    some = world(600)
    names = [f"{split}{at % groups}" for at, split in enumerate(some.splits)]
    found = found_of(replace(some, groups=np.array(names)))
    assert ("too narrow" in as_markdown(report(found))) is few
