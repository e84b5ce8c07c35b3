import json
from pathlib import Path

from evals.guarantee import Labelled, certify
from evals.panel_report import as_markdown, certified, readable, report
from judges.fitted import Artifact, load_model, model_of

SHIPPED = Path(__file__).parents[2] / "judges" / "artifacts" / "sound.json"


def test_an_artifact_is_written_to_be_read_and_reads_as_it_was(tmp_path):
    content = json.loads(SHIPPED.read_text())
    artifact = Artifact.model_validate(content)
    path = tmp_path / "a.json"
    path.write_text(readable(artifact))
    assert load_model(path).digest == model_of(artifact).digest
    assert max(map(len, path.read_text().splitlines())) > 200
    assert len(path.read_text().splitlines()) < 2_000


def test_what_was_measured_is_a_table_in_a_manual():
    metrics = load_model(SHIPPED).manifest.metrics
    printed = as_markdown(report(metrics))
    assert f"| the panel | {metrics['n']} | {metrics['auc'][0]:.3f} |" in printed
    assert "| sent up by | right at 20% | right at 40% | right at 60% |" in printed
    assert f"accept_at: {metrics['ladder']['accept_at']:g}" in printed
    assert all(len(line) <= 100 for line in printed.splitlines() if not line.startswith("|"))


def test_what_cannot_be_certified_says_how_many_labels_it_would_take():
    rows = [Labelled(score=1.0, right=n % 40 != 0, strong_right=True) for n in range(60)]
    ((_, threshold, _, _, labels, more, seen),) = certified(
        [certify(rows, risk="joint", alpha=0.05, delta=0.1)]
    ).rows
    assert threshold == "not certified"
    assert labels == "60"
    assert more.startswith("about ")
    assert "2 failures in 60" in seen
