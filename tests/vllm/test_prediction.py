"""What a real vLLM reads from its blocks is what was predicted of them."""

from uuid import uuid4

import pytest

from benchmarks.prediction.asking import measured
from benchmarks.prediction.conversations import turns
from benchmarks.prediction.servers import running_vllm
from tests.vllm.servers import SMALL_PORT


@pytest.mark.parametrize("temperature", [0.0, 1.0], ids=["greedy", "drawn"])
async def test_the_blocks_of_vllm_hold_what_was_predicted(vllm, temperature):
    sent = turns(conversations=12, length=5, seed=3, mark=f"For test {uuid4()}.")
    snapshot = await running_vllm(f"http://127.0.0.1:{SMALL_PORT}/v1")
    assert snapshot.tiers["small"].cache.block == 32
    found = await measured(snapshot, sent, temperature)
    assert len(found.rows) == len(found.reported) == 60
    slow = [row for row in found.rows if row.quoted != row.prompt]
    assert not slow, "the server took more than a second to tell a prompt's tokens"
    assert found.median == 0
    # An answer that was drawn may be written in other tokens than its text is cut into.
    assert found.errors[int(0.85 * len(found.errors))] == 0
    assert found.errors[-1] <= 2 * found.block
    assert abs(found.difference) < 0.03
    assert sum(row.reported for row in found.rows) > 0.5 * sum(row.prompt for row in found.rows)
