"""Embeds the texts of many requests in one thread, so that the event loop never waits for a model.

While the thread is busy, what comes in gathers and goes through together next: a lone request
waits for nobody, and under load a batch is as large as it has to be. A text that was embedded
lately, or is being embedded for somebody else, is not embedded again.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cascade.errors import ConfigError, EstimatorError
from classifiers.embedding import EmbeddingModel

Vector = NDArray[np.float32]
_ENTRY_BYTES = 200
"""What a cached vector takes besides its numbers."""


class _Wanted(NamedTuple):
    key: bytes
    text: str
    vector: asyncio.Future[Vector]


class BatchedEmbedder:
    """A `cascade.protocols.Embedder` of one model.

    Args:
        model: is asked in this embedder's thread only.
        most: texts that go through together; a request waits for one such batch at most before its
            own begins.
        cache_mib: memory for vectors of texts seen before; the longest unused go first.
    """

    def __init__(self, model: EmbeddingModel, *, most: int = 16, cache_mib: float = 32.0) -> None:
        if most < 1:
            raise ConfigError("it must be at least 1", param="most")
        if not cache_mib >= 0.0:
            raise ConfigError("it must not be negative", param="cache_mib")
        self._model = model
        self._most = most
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        self._room = int(cache_mib * 2**20)
        self._known: OrderedDict[bytes, Vector] = OrderedDict()
        self._wanted: dict[bytes, _Wanted] = {}
        self._waiting: list[_Wanted] = []
        self._busy = False

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
            EstimatorError: the model failed.
        """
        found: list[Vector | asyncio.Future[Vector]] = []
        for text in texts:
            key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            found.append(self._want(key, text) if known is None else known)
        self._begin()
        if not found:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        # Another request may wait for the same text, and stays when this one is cancelled.
        return np.stack(
            [each if isinstance(each, np.ndarray) else await asyncio.shield(each) for each in found]
        )

    def _want(self, key: bytes, text: str) -> asyncio.Future[Vector]:
        if key not in self._wanted:
            wanted = _Wanted(key, text, asyncio.get_running_loop().create_future())
            self._wanted[key] = wanted
            self._waiting.append(wanted)
        return self._wanted[key].vector

    def _begin(self) -> None:
        """Start the next batch, unless one is under way."""
        if self._busy or not self._waiting:
            return
        batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        self._busy = True
        texts = [wanted.text for wanted in batch]
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._model.encode, texts)
        work.add_done_callback(partial(self._end, batch))

    def _end(self, batch: Sequence[_Wanted], work: asyncio.Future[Vector]) -> None:
        self._busy = False
        failure = asyncio.CancelledError() if work.cancelled() else work.exception()
        for at, wanted in enumerate(batch):
            del self._wanted[wanted.key]
            if failure is None:
                self._keep(wanted.key, work.result()[at])
                wanted.vector.set_result(work.result()[at])
            else:
                error = EstimatorError(f"the embedding model failed: {failure}")
                error.__cause__ = failure
                wanted.vector.set_exception(error)
                wanted.vector.exception()  # or it is reported as lost where nobody waits any more
        self._begin()

    def _keep(self, key: bytes, vector: Vector) -> None:
        self._known[key] = vector.copy()
        while len(self._known) * (vector.nbytes + _ENTRY_BYTES) > self._room:
            self._known.popitem(last=False)
