from dataclasses import replace

import numpy as np
import pytest

from evals.choice.comparison import compare
from evals.choice.goals import ChoiceError
from evals.frontier.known import FrontierError
from evals.frontier.policies import replayed
from tests.evals.choice.made import made

TABLE = made(2_000)


def test_the_difference_is_that_of_the_test_rows():
    found = compare(TABLE, "always:large", "always:small")
    test = TABLE.of("test")
    large_over_small = test.quality[:, 1] - test.quality[:, 0]
    assert found.quality.value == pytest.approx(large_over_small.mean())
    assert found.cost == pytest.approx((0.0009, 0.0009, 0.0009))
    assert found.rows == 800
    assert found.same == 0
    assert found.quality.low > 0.05


def test_the_other_way_round_it_is_the_negative():
    one = compare(TABLE, "cascade:0.7", "always:large")
    other = compare(TABLE, "always:large", "cascade:0.7")
    assert one.quality.value == -other.quality.value
    assert one.cost.value == -other.cost.value
    assert [each.row for each in one.apart] == [each.row for each in other.apart]


def test_pairing_tells_apart_what_two_intervals_do_not():
    found = compare(TABLE, "cascade:0.3", "cascade:0.4")
    test = TABLE.of("test")
    alone = 1.96 * test.quality[:, 1].std() / np.sqrt(len(test))
    assert found.quality.high < 0.0
    assert -found.quality.value < alone


def test_a_policy_against_itself_differs_in_nothing():
    found = compare(TABLE, "utility", "utility")
    assert found.quality == found.cost == (0.0, 0.0, 0.0)
    assert not found.apart
    assert found.same == found.rows


def test_a_setting_that_is_not_given_is_chosen_without_the_test_rows():
    found = compare(TABLE, "cascade", "always:large").sides[0].policy
    turned = np.where((TABLE.splits == "test")[:, None], 1.0 - TABLE.quality, TABLE.quality)
    again = compare(replace(TABLE, quality=turned), "cascade", "always:large").sides[0].policy
    assert found.chosen
    assert again == found


def test_the_setting_chosen_leads_the_random_mix_by_most():
    found = compare(TABLE, "cascade", "always:large").sides[0].policy
    rows = TABLE.of("choose")
    curve = replayed(TABLE)["cascade"].curve(rows)
    cost, quality = rows.cost.mean(axis=0), rows.quality.mean(axis=0)
    mixed = np.interp(curve.cost, cost, quality)
    lead = float((curve.quality - mixed).max())
    at = replayed(TABLE)["cascade"].sweep(rows).place(found.at)
    assert curve.quality[at] - mixed[at] == pytest.approx(lead)


def test_a_setting_that_is_given_is_taken_and_no_choose_rows_are_named():
    found = compare(TABLE, "cascade:0.7", "utility:0.001")
    assert [str(side.policy) for side in found.sides] == ["cascade:0.7", "utility:0.001"]
    assert found.chosen_rows == 0


def test_the_prompts_that_differ_most_come_first():
    found = compare(TABLE, "cascade:0.7", "always:large").apart
    gaps = [abs(each.quality[0] - each.quality[1]) for each in found]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] == 1.0


def test_every_policy_can_be_compared():
    for name in replayed(TABLE).policies:
        assert compare(TABLE, name, "always:large").rows == 800


def test_whole_groups_are_drawn():
    table = made(2_000, alike=20)
    alike = compare(table, "always:large", "always:small").quality
    alone = compare(replace(table, groups=table.ids), "always:large", "always:small").quality
    assert alike.value == alone.value
    assert alike.high - alike.low != alone.high - alone.low


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("cascade:high", ChoiceError, "'high' is no setting: accept_at is a number"),
        ("cascade:nan", ChoiceError, "'nan' is no setting: accept_at is a number"),
        ("always:huge", FrontierError, "no policy 'always:huge'"),
        ("best", FrontierError, "no policy 'best'"),
        ("kind", FrontierError, "policy kind: all rows are of one kind"),
    ],
)
def test_what_is_no_policy_is_refused(name, error, said):
    with pytest.raises(error, match=said):
        compare(TABLE, name, "always:large")


def test_a_setting_has_to_be_given_where_there_is_nothing_to_choose_on():
    rest = TABLE.take(TABLE.splits != "choose")
    with pytest.raises(ChoiceError, match="give it as cascade:SETTING"):
        compare(rest, "cascade", "always:large")
    assert compare(rest, "cascade:0.7", "always:large").rows == 800
