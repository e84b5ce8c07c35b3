"""What a real llama.cpp server reads from its slots is what was predicted of them."""

import pytest

from benchmarks.prediction.asking import measured
from benchmarks.prediction.conversations import turns
from benchmarks.prediction.servers import embedded

pytestmark = pytest.mark.real_models


async def test_the_slots_of_the_default_model_hold_what_was_predicted():
    sent = turns(conversations=7, length=4, seed=3, mark="For a test.")
    async with embedded("small") as snapshot:
        found = await measured(snapshot, sent, temperature=0.0)
    assert len(found.rows) == len(found.reported) == 28
    slow = [row for row in found.rows if row.quoted != row.prompt]
    assert not slow, "the server took more than a second to tell a prompt's tokens"
    assert found.median == 0
    assert found.high <= found.block
    assert abs(found.difference) < 0.03
    assert sum(row.reported for row in found.rows) > 0.5 * sum(row.prompt for row in found.rows)
