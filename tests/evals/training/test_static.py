import numpy as np
from click.testing import CliRunner

from evals.training.static import static, weigh


def test_the_axes_that_tell_most_are_kept_and_rare_pieces_weigh_more():
    line = np.zeros((400, 3), dtype=np.float32)
    line[:, 1] = np.where(np.arange(400) % 2, 1.0, -1.0)
    line[:, 2] = 0.01 * np.sin(np.arange(400))
    kept = weigh(line, 1)
    assert kept.shape == (400, 1)
    sizes = np.abs(kept[:, 0])
    assert np.all(np.diff(sizes) > 0)
    assert np.all(kept[::2, 0] * kept[1::2, 0] < 0)


def test_more_dimensions_than_there_are_is_refused(tmp_path):
    result = CliRunner().invoke(static, [str(tmp_path / "s"), "--dimensions", "999"])
    assert result.exit_code != 0
    assert "384 dimensions" in str(result.exception)
