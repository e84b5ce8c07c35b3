import asyncio
import threading
from concurrent.futures import Executor

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


class FullHouse(Executor):
    """A machine on which no thread can be had."""

    def submit(self, fn, /, *args, **kwargs):
        raise RuntimeError("can't start new thread")


class Stingy(Letters):
    """Gives one vector too few, but for a single text."""

    def encode(self, texts):
        vectors = super().encode(texts)
        return vectors[:-1] if len(texts) > 1 else vectors


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


async def test_a_text_that_nobody_waits_for_any_more_is_not_embedded():
    model = Letters()
    embedder = BatchedEmbedder(model, most=1)
    model.gate.clear()
    first, leaves, stays = (asyncio.create_task(embedder.embed([text])) for text in "abc")
    await begun()
    leaves.cancel()
    await asyncio.gather(leaves, return_exceptions=True)
    model.gate.set()
    await asyncio.gather(first, stays)
    assert model.batches == [["a"], ["c"]]
    assert (await embedder.embed(["b"])).tolist() == [[0, 1, 0]]


async def test_a_text_that_is_asked_for_twice_at_once_waits_until_both_have_left():
    model = Letters()
    embedder = BatchedEmbedder(model, most=1)
    model.gate.clear()
    first, leaves, stays = (
        asyncio.create_task(embedder.embed(texts)) for texts in (["a"], ["b", "b"], ["b"])
    )
    await begun()
    leaves.cancel()
    await asyncio.gather(leaves, return_exceptions=True)
    model.gate.set()
    await first
    assert (await stays).tolist() == [[0, 1, 0]]


async def test_more_texts_than_there_are_places_are_refused_and_nobody_else_suffers():
    model = Letters()
    embedder = BatchedEmbedder(model, most=1, waiting=2)
    model.gate.clear()
    working = asyncio.create_task(embedder.embed(["a"]))
    await begun()
    waiting = asyncio.create_task(embedder.embed(["b", "c"]))
    await begun()
    with pytest.raises(EstimatorError, match="is busy: 2 texts wait for it, and with 1 more"):
        await embedder.embed(["ab"])
    again = asyncio.create_task(embedder.embed(["b", "a"]))  # these need no place of their own
    await begun()
    model.gate.set()
    await asyncio.gather(working, waiting, again)
    assert (await embedder.embed(["ab"])).tolist() == [[1, 1, 0]]


async def test_where_no_thread_can_be_had_everybody_is_told():
    embedder = BatchedEmbedder(Letters(), most=1, thread=FullHouse())
    for _ in range(2):
        with pytest.raises(EstimatorError, match="can't start new thread"):
            await asyncio.wait_for(embedder.embed(["a", "b"]), 10)


async def test_a_model_that_gives_too_few_vectors_fails_those_who_wait_and_nobody_after():
    embedder = BatchedEmbedder(Stingy())
    with pytest.raises(EstimatorError, match="failed: 1 vectors for 2 texts"):
        await asyncio.wait_for(embedder.embed(["a", "b"]), 10)
    assert (await asyncio.wait_for(embedder.embed(["b"]), 10)).tolist() == [[0, 1, 0]]


async def test_the_loop_goes_on_while_the_model_works():
    model = Letters()
    model.gate.clear()
    embedding = asyncio.create_task(BatchedEmbedder(model).embed(["a"]))
    await begun()
    assert not embedding.done()
    model.gate.set()
    await embedding


@pytest.mark.parametrize(
    "options", [{"most": 0}, {"waiting": 0}, {"cache_mib": -1.0}, {"cache_mib": float("nan")}]
)
def test_impossible_options_are_refused(options):
    with pytest.raises(ConfigError) as caught:
        BatchedEmbedder(Letters(), **options)
    assert caught.value.param == next(iter(options))
