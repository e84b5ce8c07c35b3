import numpy as np
import pytest

from benchmarks.routing_quality.scores import area, calls_for, closed, of_beliefs, of_order
from benchmarks.routing_quality.tables import DataError, folder, size

WEAK = np.array([0.0, 0.0, 1.0, 1.0])
STRONG = np.array([1.0, 1.0, 1.0, 1.0])
LABELS = np.column_stack([WEAK, STRONG])


def test_a_perfect_order_reaches_each_share_of_the_gap_with_the_fewest_calls():
    order = STRONG - WEAK
    assert calls_for(order, WEAK, STRONG, 0.5) == pytest.approx(0.25)
    assert calls_for(order, WEAK, STRONG, 0.8) == pytest.approx(0.4)


def test_the_worst_order_spends_half_of_its_calls_for_nothing():
    assert calls_for(WEAK - STRONG, WEAK, STRONG, 0.5) == pytest.approx(0.75)


def test_an_order_that_tells_nothing_is_random_whatever_the_order_of_the_rows():
    found = of_order(np.zeros(4), LABELS)
    assert found == pytest.approx({"apgr": 0.5, "cpt50": 0.5, "cpt80": 0.8})


def test_without_a_gap_no_share_of_it_can_be_bought():
    assert np.isnan(calls_for(WEAK, WEAK, WEAK, 0.5))


def test_the_order_is_the_difference_of_the_beliefs_and_not_the_doubt():
    means = np.array([[0.6, 0.9], [0.6, 0.9], [0.1, 0.1], [0.1, 0.1]])
    found = of_beliefs(means, LABELS)
    assert found["apgr"] == pytest.approx(of_order(STRONG - WEAK, LABELS)["apgr"])
    assert found["auc_gain"] == 1.0
    assert found["auc_weak_wrong"] == 0.0


def test_beliefs_that_come_true_have_no_error():
    found = of_beliefs(LABELS, LABELS)
    assert found["brier"] == 0.0
    assert found["ece"] == 0.0


def test_one_kind_of_row_alone_has_no_area():
    assert area(WEAK, np.ones(4, dtype=bool)) == 0.5


def test_the_oracle_closes_the_gap_and_the_best_single_model_closes_none():
    labels, costs = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), np.array([0.1, 1.0])
    single = np.tile(labels.mean(axis=0), (3, 1))
    assert closed(labels, labels, costs, 0.0)["closed"] == 1.0
    assert closed(single, labels, costs, 0.0)["closed"] == 0.0


def test_a_price_moves_the_choice_to_the_cheaper_model():
    labels, costs = np.array([[0.5, 0.6], [0.5, 0.6]]), np.array([0.1, 1.0])
    assert closed(labels, labels, costs, 0.0)["cost"] == 1.0
    assert closed(labels, labels, costs, 0.5)["cost"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("name", "billions"),
    [("qwen2.5-7b-instruct", 7.0), ("llama3-chatqa-1.5-70b", 70.0), ("tiny-0.5B", 0.5)],
)
def test_the_size_of_a_model_is_in_its_name(name, billions):
    assert size(name) == billions


def test_a_name_without_a_size_is_refused_by_name():
    with pytest.raises(DataError, match="some-model"):
        size("some-model")


def test_a_missing_folder_of_data_says_which_option_names_it(monkeypatch):
    monkeypatch.delenv("CASCADE_DATA", raising=False)
    with pytest.raises(DataError, match="--data or CASCADE_DATA"):
        folder(None)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(DataError, match="routellm_mmlu"):
        folder(tmp_path)
