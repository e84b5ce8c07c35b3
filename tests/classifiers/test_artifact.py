import json

import numpy as np
import pytest

from cascade.errors import ConfigError
from classifiers.artifact import load
from evals.training.fit import Recipe
from tests.learning import DIMENSIONS, artifact, rows

HEADS = ["linear", "neighbours", "boosted", "blend"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("artifacts")
    artifact(made)
    return made


def changed(folder, tmp_path, **fields):
    """A copy of the artifact whose manifest says something else."""
    manifest = json.loads((folder / "model.json").read_text()) | fields
    (tmp_path / "model.json").write_text(json.dumps(manifest))
    arrays = (folder / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(arrays)
    return tmp_path / "model.json"


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("target", ["acceptable", "difference", "uplift"])
def test_what_is_loaded_says_what_was_saved(tmp_path, head, target):
    from evals.training.fit import fit

    recipe = Recipe(head=head, target=target, components=6)
    artifact(tmp_path, recipe=recipe)
    _, loaded = load(tmp_path / "model.json")
    some = rows(40, seed=5)
    saved_means, saved_out = fit(rows(), recipe)(some.embeddings, some.features)
    means, out = loaded(some.embeddings, some.features)
    np.testing.assert_allclose(means, saved_means, atol=1e-12)
    np.testing.assert_array_equal(out, saved_out)


def test_an_artifact_of_features_alone_needs_no_embedding(tmp_path):
    artifact(tmp_path, embedded=False)
    manifest, model = load(tmp_path / "model.json")
    assert manifest.embedding is None
    means, _ = model(None, rows(10, embedded=False).features)
    assert means.shape == (10, 2)


def test_the_manifest_says_whose_vectors_it_needs(folder):
    manifest, _ = load(folder / "model.json")
    assert (manifest.embedding.model, manifest.embedding.dimensions) == ("words-1", DIMENSIONS)
    assert list(manifest.models) == ["small", "large"]


def test_arrays_of_another_fit_are_refused(folder, tmp_path):
    path = changed(folder, tmp_path)
    artifact(tmp_path, recipe=Recipe(components=5), name="other.json")
    (tmp_path / "other.safetensors").replace(tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match=r"model\.safetensors: is not what model\.json was"):
        load(path)


def test_arrays_that_were_cut_short_are_refused(folder, tmp_path):
    path = changed(folder, tmp_path)
    arrays = tmp_path / "model.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-8])
    with pytest.raises(ConfigError, match="cut short"):
        load(path)


def test_a_missing_artifact_says_what_makes_one(tmp_path):
    with pytest.raises(ConfigError, match="cascade train"):
        load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"kind": "panel_model"}, "kind"),
        ({"colour": "red"}, "colour"),
        ({"features": ["log_characters", "moon_phase"]}, "moon_phase"),
        ({"prior": {"small": 0.5}}, "prior names other tiers"),
        ({"prior": {"small": 0.5, "large": 1.5}}, r"prior\.large"),
        ({"calibrations": []}, "one a tier"),
        ({"models": {"small": "m"}}, "at least two tiers"),
        ({"head": {"kind": "oracle"}}, "oracle"),
    ],
)
def test_a_manifest_that_cannot_be_is_refused_by_its_field(folder, tmp_path, fields, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load(changed(folder, tmp_path, **fields))


def test_what_is_not_json_is_refused(tmp_path):
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(ConfigError, match="not JSON"):
        load(tmp_path / "model.json")


def test_a_fit_that_cannot_be_written_leaves_the_old_one(folder, tmp_path):
    path = changed(folder, tmp_path)
    before = path.read_bytes()
    (tmp_path / ".model.json.new").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        artifact(tmp_path, recipe=Recipe(components=5))
    assert path.read_bytes() == before
