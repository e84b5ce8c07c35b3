import hashlib

import pytest

from cascade.errors import ConfigError
from cascade.types import ChatRequest
from evals.models import Source, identity, running, source
from tests.upstream import DONE, Upstream, serving, words


def test_a_source_is_a_model_to_start_or_one_at_an_address():
    assert source("small=qwen2.5-coder-0.5b") == Source(tier="small", model="qwen2.5-coder-0.5b")
    there = Source(tier="big", model="org/m", url="http://127.0.0.1:9/v1")
    assert source("big=org/m@http://127.0.0.1:9/v1") == there


@pytest.mark.parametrize("text", ["", "small", "=m", "small=", "small=m@127.0.0.1:9"])
def test_anything_else_is_no_source(text):
    with pytest.raises(ConfigError, match="is not TIER=MODEL or TIER=MODEL@URL"):
        source(text)


def test_a_file_is_known_by_its_hash_and_an_address_by_its_models_name(tmp_path):
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"weights")
    found = identity(source(f"small={file}"))
    assert found.model == "mine"
    assert found.sha256 == hashlib.sha256(b"weights").hexdigest()
    assert found.server.startswith("xllamacpp ")
    there = identity(source("big=org/m@http://127.0.0.1:9/v1"))
    assert (there.model, there.sha256, there.server) == ("org/m", "", "")


async def test_a_model_at_an_address_is_asked_by_its_name_with_the_key():
    async with serving(Upstream([*words("4"), DONE])) as upstream:
        sources = [source(f"big=org/m@{upstream.url}")]
        async with running(sources, api_key="k-1") as tiers:
            messages = [{"role": "user", "content": "2 + 2"}]
            completion = await tiers["big"].complete(ChatRequest(id="r", messages=messages))
    assert completion.text == "4"
    assert upstream.bodies[0]["model"] == "org/m"
    assert upstream.authorization == "Bearer k-1"
