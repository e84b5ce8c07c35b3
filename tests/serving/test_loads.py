"""What a tier says of its servers' work, from its keys in the file on."""

from contextlib import aclosing

import pytest

from cascade.sight import Load
from cascade.types import ChatRequest
from serving.config import ConfigFile
from serving.wiring import Wiring
from tests.upstream import DONE, Upstream, serving, words

ASKED = ChatRequest(id="r", messages=[{"role": "user", "content": "hi"}])


def tier(folder, keys):
    path = folder / "cascade.yaml"
    path.write_text(f"tiers:\n  t: {{{keys}}}\n")
    return Wiring(ConfigFile(path).config, folder).snapshot().tiers["t"]


@pytest.mark.parametrize(
    ("limits", "most"),
    [("", None), (", limits: {concurrent: 3, waiting: 5, wait_seconds: 1}", 3)],
)
async def test_calls_are_counted_while_they_last(tmp_path, limits, most):
    small = tier(tmp_path, f"backend: scripted, answers: ['one two']{limits}")
    assert small.loads() == [Load(in_flight=0, most=most)]
    async with aclosing(small.stream(ASKED)) as first:
        await anext(first)
        assert small.loads() == [Load(in_flight=1, most=most)]
        async with aclosing(small.stream(ASKED)) as second:
            await anext(second)
            assert small.loads() == [Load(in_flight=2, most=most)]
        assert small.loads() == [Load(in_flight=1, most=most)]
    assert small.loads() == [Load(in_flight=0, most=most)]


async def test_a_call_that_fails_is_over(tmp_path):
    small = tier(tmp_path, "backend: scripted, answers: [{error: BackendServerError}], retry: null")
    with pytest.raises(Exception, match="as scripted"):
        [_ async for _ in small.stream(ASKED)]
    assert small.loads() == [Load(in_flight=0)]


async def test_each_of_several_servers_says_what_it_has_to_do(tmp_path):
    async with serving(Upstream([*words("one", " two"), DONE])) as upstream:
        dead = "http://127.0.0.1:9/v1"
        many = tier(
            tmp_path,
            f"backend: openai_http, model: m, replicas: ['{upstream.url}', '{dead}'], "
            "replica_rule: round_robin",
        )
        names = [upstream.url.removeprefix("http://").removesuffix("/v1"), "127.0.0.1:9"]
        assert [(each.name, each.in_flight) for each in many.loads()] == [(n, 0) for n in names]
        async with aclosing(many.stream(ASKED)) as chunks:
            await anext(chunks)
            assert [each.in_flight for each in many.loads()] == [1, 0]
        assert [each.in_flight for each in many.loads()] == [0, 0]
        await many.backend.aclose()
