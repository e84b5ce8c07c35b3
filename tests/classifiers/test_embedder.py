import asyncio
import threading

import numpy as np
import pytest

from cascade.errors import ConfigError, EstimatorError
from classifiers.embedder import BatchedEmbedder


class Letters:
    """Counts a, b and c; waits at a gate, and fails where it is told to."""

    model = "letters@1"
    dimensions = 3

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()

    def encode(self, texts):
        assert self.gate.wait(10)
        self.batches.append(list(texts))
        if "fail" in texts:
            raise RuntimeError("out of memory")
        return np.array([[text.count(c) for c in "abc"] for text in texts], dtype=np.float32)


async def begun():
    """What was started has come to where it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_vectors_come_in_the_order_of_the_texts():
    vectors = await BatchedEmbedder(Letters()).embed(["abc", "a", "bb", "a"])
    assert vectors.tolist() == [[1, 1, 1], [1, 0, 0], [0, 2, 0], [1, 0, 0]]
    assert (await BatchedEmbedder(Letters()).embed([])).shape == (0, 3)


async def test_what_comes_in_while_the_model_is_busy_goes_through_together():
    model = Letters()
    embedder = BatchedEmbedder(model, most=3)
    model.gate.clear()
    tasks = [asyncio.create_task(embedder.embed([text])) for text in ("a", "b", "c", "ab", "ac")]
    await begun()
    model.gate.set()
    await asyncio.gather(*tasks)
    assert model.batches == [["a"], ["b", "c", "ab"], ["ac"]]


async def test_a_text_is_embedded_once_for_all_who_ask():
    model = Letters()
    embedder = BatchedEmbedder(model)
    await asyncio.gather(*(embedder.embed(["a", "b"]) for _ in range(5)))
    await embedder.embed(["b", "a"])
    assert sorted(text for batch in model.batches for text in batch) == ["a", "b"]


async def test_the_cache_is_bounded_and_drops_what_was_unused_longest():
    model = Letters()
    embedder = BatchedEmbedder(model, cache_mib=2 * 212 / 2**20)
    for text in ("a", "b", "a", "c", "a", "b"):
        await embedder.embed([text])
    assert [batch[0] for batch in model.batches] == ["a", "b", "c", "b"]


async def test_a_cached_vector_cannot_be_changed_by_who_got_it():
    embedder = BatchedEmbedder(Letters())
    (await embedder.embed(["a"]))[:] = 7
    assert (await embedder.embed(["a"])).tolist() == [[1, 0, 0]]


async def test_a_failing_model_fails_those_who_wait_and_nobody_after():
    embedder = BatchedEmbedder(Letters())
    with pytest.raises(EstimatorError, match="the embedding model failed: out of memory"):
        await embedder.embed(["fail"])
    with pytest.raises(EstimatorError):
        await embedder.embed(["fail"])
    assert (await embedder.embed(["c"])).tolist() == [[0, 0, 1]]


async def test_one_who_leaves_does_not_take_it_from_the_other():
    model = Letters()
    embedder = BatchedEmbedder(model)
    model.gate.clear()
    leaves = asyncio.create_task(embedder.embed(["a"]))
    stays = asyncio.create_task(embedder.embed(["a"]))
    await begun()
    leaves.cancel()
    await asyncio.gather(leaves, return_exceptions=True)
    model.gate.set()
    assert (await stays).tolist() == [[1, 0, 0]]
    assert len(model.batches) == 1


async def test_the_loop_goes_on_while_the_model_works():
    model = Letters()
    model.gate.clear()
    embedding = asyncio.create_task(BatchedEmbedder(model).embed(["a"]))
    await begun()
    assert not embedding.done()
    model.gate.set()
    await embedding


@pytest.mark.parametrize("options", [{"most": 0}, {"cache_mib": -1.0}, {"cache_mib": float("nan")}])
def test_impossible_options_are_refused(options):
    with pytest.raises(ConfigError) as caught:
        BatchedEmbedder(Letters(), **options)
    assert caught.value.param == next(iter(options))
