"""Embeds the texts of many requests in one thread, so that the event loop never waits for a model.

While the thread is busy, what comes in gathers and goes through together next: a lone request
waits for nobody, and under load a batch is as large as it has to be. A text that was embedded
lately, or is being embedded for somebody else, is not embedded again; one that nobody waits for any
more is not embedded at all, or a busy model would go on working for those who have left.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cascade.errors import ConfigError, EstimatorError
from classifiers.embedding import EmbeddingModel

Vector = NDArray[np.float32]
_ENTRY_BYTES = 200
"""What a cached vector takes besides its numbers."""


@dataclass(slots=True)
class _Wanted:
    """A text on its way, and how many wait for it."""

    key: bytes
    text: str
    vector: asyncio.Future[Vector]
    waiters: int = 0


class BatchedEmbedder:
    """A `cascade.protocols.Embedder` of one model.

    Args:
        model: is asked in this embedder's thread only.
        most: texts that go through together; a request waits for one such batch at most before its
            own begins.
        waiting: texts that may wait for a batch to begin; more are refused.
        cache_mib: memory for vectors of texts seen before; the longest unused go first.
        thread: runs one thing at a time; None: a thread of its own.
    """

    def __init__(
        self,
        model: EmbeddingModel,
        *,
        most: int = 16,
        waiting: int = 1024,
        cache_mib: float = 32.0,
        thread: Executor | None = None,
    ) -> None:
        for option, value in {"most": most, "waiting": waiting}.items():
            if value < 1:
                raise ConfigError("it must be at least 1", param=option)
        if not cache_mib >= 0.0:
            raise ConfigError("it must not be negative", param="cache_mib")
        self._model = model
        self._most = most
        self._places = waiting
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="embedder")
        self._room = int(cache_mib * 2**20)
        self._known: OrderedDict[bytes, Vector] = OrderedDict()
        self._waiting: dict[bytes, _Wanted] = {}
        self._working: dict[bytes, _Wanted] = {}

    @property
    def model(self) -> str:
        """The model's name and a hash of its weights."""
        return self._model.model

    @property
    def dimensions(self) -> int:
        """Of a vector."""
        return self._model.dimensions

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length, of shape (texts, dimensions), in order.

        Raises:
            EstimatorError: the model failed, or too many texts wait for it already.
        """
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        keys = [_key(text) for text in texts]
        self._refuse_beyond_places(keys)
        found: dict[bytes, Vector] = {}
        wanted: dict[bytes, _Wanted] = {}
        for key, text in zip(keys, texts, strict=True):
            if key in self._known:
                self._known.move_to_end(key)
                found[key] = self._known[key]
            elif key not in wanted:
                wanted[key] = self._want(key, text)
        self._begin()
        try:
            for key, each in wanted.items():
                # Another request may wait for the same text, and stays when this one is cancelled.
                found[key] = await asyncio.shield(each.vector)
        finally:
            for each in wanted.values():
                self._leave(each)
        return np.stack([found[key] for key in keys])

    def _refuse_beyond_places(self, keys: Sequence[bytes]) -> None:
        there = (self._known, self._working, self._waiting)
        new = {key for key in keys if not any(key in some for some in there)}
        if len(self._waiting) + len(new) > self._places:
            raise EstimatorError(
                f"the embedding model is busy: {len(self._waiting)} texts wait for it, and with "
                f"{len(new)} more there would be more than {self._places}"
            )

    def _want(self, key: bytes, text: str) -> _Wanted:
        wanted = self._working.get(key) or self._waiting.get(key)
        if wanted is None:
            vector = asyncio.get_running_loop().create_future()
            wanted = self._waiting[key] = _Wanted(key, text, vector)
        wanted.waiters += 1
        return wanted

    def _leave(self, wanted: _Wanted) -> None:
        wanted.waiters -= 1
        if not wanted.waiters and self._waiting.get(wanted.key) is wanted:
            del self._waiting[wanted.key]

    def _begin(self) -> None:
        """Start the next batch, unless one is under way."""
        while self._waiting and not self._working:
            batch = list(self._waiting.values())[: self._most]
            for wanted in batch:
                del self._waiting[wanted.key]
            texts = [wanted.text for wanted in batch]
            loop = asyncio.get_running_loop()
            try:
                work = loop.run_in_executor(self._thread, self._model.encode, texts)
            except RuntimeError as error:  # no thread can be had
                _fail(batch, error)
                continue
            self._working = {wanted.key: wanted for wanted in batch}
            work.add_done_callback(partial(self._end, batch))

    def _end(self, batch: Sequence[_Wanted], work: asyncio.Future[NDArray[np.float32]]) -> None:
        self._working = {}
        failure = asyncio.CancelledError() if work.cancelled() else work.exception()
        if failure is None and len(work.result()) != len(batch):
            failure = ValueError(f"{len(work.result())} vectors for {len(batch)} texts")
        if failure is None:
            for wanted, vector in zip(batch, work.result(), strict=True):
                self._keep(wanted.key, vector)
                wanted.vector.set_result(vector)
        else:
            _fail(batch, failure)
        self._begin()

    def _keep(self, key: bytes, vector: Vector) -> None:
        self._known[key] = vector.copy()
        while len(self._known) * (vector.nbytes + _ENTRY_BYTES) > self._room:
            self._known.popitem(last=False)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _fail(batch: Sequence[_Wanted], failure: BaseException) -> None:
    for wanted in batch:
        error = EstimatorError(f"the embedding model failed: {failure}")
        error.__cause__ = failure
        wanted.vector.set_exception(error)
        wanted.vector.exception()  # or it is reported as lost where nobody waits any more
