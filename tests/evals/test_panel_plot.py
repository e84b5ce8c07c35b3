import random

import pytest

from evals.escalation import Scored
from evals.files import ResultFileError
from evals.panel_plot import draw, require_plot

pytest.importorskip("matplotlib", reason="drawing needs matplotlib")


def scores(count):
    rng = random.Random(count)  # noqa: S311 - made-up scores
    return [
        Scored(
            small=(chance := rng.random()),
            large=0.8,
            length=rng.random(),
            small_right=rng.random() < chance,
            large_right=rng.random() < 0.8,
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [1, 5, 200])
def test_a_picture_is_drawn_of_any_number_of_answers(tmp_path, count):
    path = tmp_path / "panel.png"
    draw(path, scores(count))
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [found.name for found in tmp_path.iterdir()] == ["panel.png"]


def test_the_same_answers_give_the_same_picture(tmp_path):
    for name in ("a.png", "b.png"):
        draw(tmp_path / name, scores(100))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_what_cannot_be_written_is_said_before_the_work_and_leaves_the_old_picture(tmp_path):
    with pytest.raises(ResultFileError, match=r"must end in \.png"):
        require_plot(tmp_path / "panel.svg")
    with pytest.raises(ResultFileError, match="there is no folder"):
        require_plot(tmp_path / "none" / "panel.png")
    (tmp_path / "panel.png").mkdir()
    with pytest.raises(ResultFileError, match=r"panel\.png: cannot be written"):
        draw(tmp_path / "panel.png", scores(10))
    assert [found.name for found in tmp_path.iterdir()] == ["panel.png"]
