import json

import pytest
from click.testing import CliRunner

from cascade.backends.litellm_prices import card_of
from serving.cli import cascade

TIERS = """\
tiers:
  small: {backend: openai_http, launch: {engine: llama_cpp, model: qwen2.5-coder-0.5b}}
  blocks: {backend: openai_http, url: 'http://127.0.0.1:9/v1', model: m, cache: {blocks: 16}}
  room: {backend: scripted, cache: {blocks: 32, capacity_tokens: 400000}}
  api: {backend: litellm_api, model: openai/gpt-5-mini, price: litellm}
  other: {backend: scripted, cache: none, price: {input: 1, cache_read: 1, output: 1}}
"""


@pytest.fixture
def check(tmp_path):
    file = tmp_path / "cascade.yaml"
    file.write_text(TIERS)

    def invoke(*more):
        done = CliRunner().invoke(cascade, ["config", "check", "--config", str(file), *more])
        assert done.exit_code == 0, done.exception
        return done.output

    return invoke


def test_it_says_how_each_tier_keeps_prompts(check):
    lines = [line.split(maxsplit=1)[1] for line in check().splitlines() if "  cache  " in line]
    assert lines == [
        "small: the last prompt of 2 slots, and 21,845 tokens besides",
        "blocks: blocks of 16 tokens, room for an unknown number of tokens",
        "room: blocks of 32 tokens, room for 400,000 tokens",
        "api: for 300 s after its last use, from 1,024 tokens on in steps of 128",
        "other: none, or not known how it works",
    ]


def test_it_says_where_a_price_is_from_if_not_from_the_file(check):
    source = card_of("openai/gpt-5-mini").source
    assert f"output 2 ($ per million tokens, {source})" in check()
    report = json.loads(check("--json"))
    assert report["price_sources"] == {
        **dict.fromkeys(("small", "blocks", "room", "other")),
        "api": source,
    }
    assert report["caches"]["api"]["minimum_tokens"] == 1024
    assert report["caches"]["other"] is None
