from hypothesis import given, settings
from hypothesis import strategies as st

from serving.results import ArmReport, Comparison, Results, Trial
from serving.results.document import document, read
from serving.results.ratios import Difference
from serving.results.sequences import Interval
from serving.results.shares import Shares

number = st.floats(allow_nan=False)
count = st.integers(0, 2**60)
name = st.text(max_size=8)
times = st.none() | st.tuples(number, number, number)


def by_name(values):
    return st.dictionaries(name, values, max_size=3)


arms = st.builds(
    ArmReport,
    arm=name,
    **dict.fromkeys(("units", "requests", "escalated", "degraded", "failed"), count),
    **dict.fromkeys(("priced", "compared"), count),
    **dict.fromkeys(("dollars", "baseline", "saved"), number),
    **dict.fromkeys(("cached_share", "cold_premium"), st.none() | number),
    **dict.fromkeys(("duration", "first_token"), times),
    quality=by_name(st.tuples(number, count)),
)
differences = st.builds(
    Difference,
    arm=st.none() | number,
    control=st.none() | number,
    units=count,
    needs=count,
    interval=st.none() | st.builds(Interval, estimate=number, low=number, high=number),
    reduced=number,
)
trials = st.builds(
    Trial,
    name=name,
    control=name,
    weights=by_name(number),
    unit=name,
    since=st.none() | number,
    until=st.none() | number,
    margin=number,
    guardrails=by_name(number),
    acting=st.frozensets(name),
)
found = st.builds(
    Results,
    trial=trials,
    arms=st.lists(arms, max_size=3),
    comparisons=st.lists(
        st.builds(
            Comparison,
            arm=name,
            cost=differences,
            quality=by_name(differences),
            rates=by_name(differences),
        ),
        max_size=3,
    ),
    crossed=count,
    shares=st.none() | st.builds(Shares, expected=by_name(number), units=by_name(count), p=number),
    acting=st.lists(name, max_size=3),
)


@given(found)
@settings(deadline=None)
def test_nothing_is_lost_in_a_text_not_even_an_order_or_a_bound_without_end(results):
    again = read(document(results))
    assert again == results
    assert list(again.trial.weights) == list(results.trial.weights)


def test_a_text_of_another_form_holds_no_results():
    assert read('{"arms": 3}') is None
    assert read("") is None
