"""The pictures: complete, the same each time, and able to stand alone."""

from dataclasses import replace

import pytest

from evals.files import ResultFileError
from evals.frontier.drawn import MOST, lines
from evals.frontier.measure import measure
from evals.frontier.page import figure, page, plot_html, write
from evals.frontier.plot import draw
from tests.evals.frontier.worlds import world

pytest.importorskip("plotly", reason="the page needs plotly")
pytest.importorskip("matplotlib", reason="drawing needs matplotlib")


@pytest.fixture(scope="module")
def found():
    return measure(world(1500), resamples=20)


def test_the_page_is_one_file_that_fetches_nothing(found):
    text = page(found)
    head, _, body = text.partition("<body>")
    assert "Plotly.newPlot" in body
    assert 'src="http' not in text
    assert "<link" not in head.replace(head[head.find("<script>") : head.rfind("</script>")], "")
    assert "Routing pays" in body
    assert "smallest share of calls" in body


def test_hovering_shows_the_setting(found):
    drawn = {trace.name: trace for trace in figure(found).data}
    cascade = drawn["cascade"]
    assert "accept_at: %{customdata[0]}" in cascade.hovertemplate
    assert "large: %{customdata[2]:.1%}" in cascade.hovertemplate
    assert cascade.customdata[-1][0] == "inf"
    assert set(found.results) <= drawn.keys()


def test_the_same_frontier_gives_the_same_bytes(found, tmp_path):
    again = measure(world(1500), resamples=20)
    assert page(again) == page(found)
    for name, each in (("a.png", found), ("b.png", again)):
        draw(tmp_path / name, each)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_names_cannot_add_to_the_page():
    evil = "</script><b>"
    some = measure(replace(world(300), tiers=(evil, "large"), source=evil), resamples=20)
    assert evil not in plot_html(some)
    assert f"{evil}" not in page(some).partition("<body>")[2]


def test_long_curves_are_drawn_with_their_ends(found):
    for line in lines(found):
        result = found.results[line.name]
        assert len(line.curve) <= 2 * MOST + 3
        ends = result.curve.cost[[0, result.sound - 1]]
        assert line.curve.cost[[0, -1]].tolist() == ends.tolist()


def test_what_cannot_be_written_leaves_nothing(found, tmp_path):
    with pytest.raises(ResultFileError):
        write(tmp_path / "none" / "f.html", found)
    assert list(tmp_path.iterdir()) == []
