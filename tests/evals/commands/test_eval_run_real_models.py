import pytest
from click.testing import CliRunner

from evals.commands.eval import evaluate
from evals.tables import load
from serving.models.catalogue import lookup
from serving.models.fetch import ensure
from serving.models.home import home
from tests.real_models import LARGE, SMALL

pytestmark = pytest.mark.real_models


def test_the_embedded_models_are_asked_and_shown(tmp_path):
    for model in (SMALL, LARGE):
        ensure(lookup(model), home())
    arguments = ["run", "quickstart", "--prompts", "3", "--out", str(tmp_path / "q")]
    done = CliRunner().invoke(evaluate, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "6 calls" in done.output
    table = load(tmp_path / "q" / "outcomes.parquet")
    assert (table.cost > 0).all()
    assert ((table.judged[:, 0] > 0) & (table.judged[:, 0] < 1)).all()
    assert "qwen2.5-coder-1.5b" in (tmp_path / "q" / "report.html").read_text()
