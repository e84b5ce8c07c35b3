from serving.dashboard.charts import Figure, Line
from serving.dashboard.formats import NONE


def figure(**changes):
    values = {
        "name": "spend",
        "title": "Spend",
        "axis": "time",
        "places": [0, 3600],
        "unit": "usd",
        "lines": [Line(name="paid", values=[0.5, None])],
    }
    return Figure(**{**values, **changes})


def test_the_table_repeats_what_is_drawn():
    assert figure().rows() == [(0, ["$0.500"]), (3600, [NONE])]
    assert figure(unit="share").rows()[0] == (0, ["50.0%"])
    scores = figure(axis="score", places=[0.25, 0.75], unit="share")
    assert [place for place, _ in scores.rows()] == ["0.25", "0.75"]


def test_the_script_is_told_everything_and_nothing_unknown_as_zero():
    told = figure().data()
    assert told["places"] == [0, 3600]
    assert told["lines"][0]["values"] == [0.5, None]


def test_a_figure_without_a_value_is_empty():
    assert figure(lines=[Line(name="paid", values=[None, None])]).empty
    assert not figure().empty
