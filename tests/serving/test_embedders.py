"""Embedders as a configuration names them."""

import pytest

from cascade.errors import ConfigError
from serving.config import ConfigFile
from serving.wiring import Wiring

TEXT = """
tiers:
  small: {backend: scripted, price: {input: 1, cache_read: 1, output: 1}}
embedders:
  minilm: {EMBEDDER}
judges:
  again: {JUDGE}
estimators:
  looks: {ESTIMATOR}
policies:
  p: {type: fixed, tier: small}
"""
GOOD = {
    "EMBEDDER": "type: onnx, max_tokens: 32, most: 4, waiting: 64, cache_mib: 1",
    "JUDGE": "type: agreement, compare: meaning, embedder: minilm",
    "ESTIMATOR": "type: heuristic, tiers: {small: [0.9, 0.3]}",
}


def wired(tmp_path, launched=None, **entries):
    text = TEXT
    for name, entry in {**GOOD, **entries}.items():
        text = text.replace(name, entry)
    path = tmp_path / "cascade.yaml"
    path.write_text(text)
    file = ConfigFile(path)
    try:
        return Wiring(file.config, tmp_path, launched).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


def test_a_judge_gets_the_embedder_that_it_names(tmp_path):
    assert wired(tmp_path).judges["again"].name == "again"


def test_a_check_reads_no_weights_and_a_start_does(tmp_path):
    (tmp_path / "own").mkdir()
    for file in ("model.onnx", "tokenizer.json"):
        (tmp_path / "own" / file).write_text("no model")
    assert wired(tmp_path, EMBEDDER="type: onnx, path: own").judges
    with pytest.raises(ConfigError, match=r"5: embedders\.minilm\.path: the model 'tokenizer"):
        wired(tmp_path, {}, EMBEDDER="type: onnx, path: own")


def test_a_service_that_starts_has_its_models_read(tmp_path):
    assert wired(tmp_path, {}).judges["again"].name == "again"


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ({"EMBEDDER": "type: onxx"}, "5: embedders.minilm.type: no embedder of type 'onxx'"),
        ({"EMBEDDER": "type: onnx, most: 0"}, "5: embedders.minilm.most: Input should be"),
        ({"EMBEDDER": "type: onnx, waiting: 0"}, "5: embedders.minilm.waiting: Input should be"),
        ({"EMBEDDER": "type: onnx, threads: 0"}, "5: embedders.minilm.threads: it must be at"),
        ({"EMBEDDER": "type: onnx, path: none"}, "5: embedders.minilm.path: there is no "),
        ({"EMBEDDER": "type: static"}, "5: embedders.minilm: the key path is missing"),
        ({"JUDGE": GOOD["JUDGE"].replace("minilm", "mini")}, "7: judges.again.embedder: there is"),
        ({"JUDGE": "type: format, embedder: minilm"}, "7: judges.again.embedder: unknown key"),
        ({"JUDGE": "type: agreement, embedder: minilm"}, "7: judges.again.compare: an embedder"),
        (
            {"ESTIMATOR": f"{GOOD['ESTIMATOR']}, embedder: minilm"},
            "9: estimators.looks.embedder: unknown key: heuristic does not take it",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_its_line(tmp_path, entries, fault):
    with pytest.raises(ConfigError, match=r"cascade\.yaml") as caught:
        wired(tmp_path, **entries)
    assert fault in caught.value.message
