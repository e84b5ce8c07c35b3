import shlex

import pytest

from cascade.errors import ConfigError
from serving.models.vllm import Unstated, serve_line
from serving.tier_config import Tier


def tier(**fields):
    return Tier(
        **{"backend": "openai_http", "url": "http://127.0.0.1:8001/v1", "model": "m", **fields}
    )


def line(unstated=None, others=None, **fields):
    return serve_line("big", {"big": tier(**fields), **(others or {})}, unstated or Unstated())


def options(made):
    """The options of a line, each with what follows it."""
    found, last = {}, ""
    for word in made.arguments[3:]:
        if word.startswith("--"):
            last = word
            found[last] = []
        else:
            found[last].append(word)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def test_a_plain_tier_needs_its_address_its_name_and_a_report_of_cached_tokens():
    made = line(Unstated(weights="/models/m"))
    assert made.arguments[:3] == ["vllm", "serve", "/models/m"]
    assert options(made) == {
        "--served-model-name": "m",
        "--host": "127.0.0.1",
        "--port": "8001",
        "--enable-prompt-tokens-details": [],
    }
    assert (made.environment, made.placeholders, made.notes) == ({}, {}, [])


def test_capabilities_and_limits_become_options():
    made = line(
        Unstated(weights="w", tool_call_parser="hermes", reasoning_parser="qwen3", gpus=4),
        capabilities=["logprobs", "tools", "reasoning", "json_schema"],
        context_tokens=32768,
    )
    assert (
        options(made).items()
        >= {
            "--max-model-len": "32768",
            "--max-logprobs": "20",
            "--enable-auto-tool-choice": [],
            "--tool-call-parser": "hermes",
            "--reasoning-parser": "qwen3",
            "--tensor-parallel-size": "4",
        }.items()
    )


def test_what_nobody_said_is_a_word_in_capitals_with_its_explanation():
    made = line(capabilities=["tools", "reasoning"])
    assert made.arguments[2] == "MODEL_PATH"
    assert list(made.placeholders) == ["MODEL_PATH", "TOOL_CALL_PARSER", "REASONING_PARSER"]
    assert "--tool-call-parser" in made.placeholders["TOOL_CALL_PARSER"]
    assert set(made.placeholders) <= set(made.arguments)


def test_a_hub_id_says_where_the_weights_are():
    made = line(model="Qwen/Qwen3-8B")
    assert made.arguments[2] == "Qwen/Qwen3-8B"
    assert options(made)["--served-model-name"] == "Qwen/Qwen3-8B"
    assert not made.placeholders


def test_a_key_goes_into_the_environment_and_never_into_the_arguments():
    made = line(api_key_env="BIG_KEY", model="a/b")
    assert made.shell().startswith('VLLM_API_KEY="$BIG_KEY" vllm serve a/b ')
    assert not any("KEY" in word for word in made.arguments)


def test_an_adapter_brings_its_own_name():
    made = line(Unstated(weights="w", adapters=["m=/lora/m", "other=/lora/o"]))
    assert options(made)["--lora-modules"] == ["m=/lora/m", "other=/lora/o"]
    assert "--enable-lora" in made.arguments
    assert "--served-model-name" not in made.arguments


def test_a_tier_on_the_same_server_is_pointed_out_until_it_is_an_adapter():
    others = {"tuned": tier(model="m-ft"), "far": tier(url="http://127.0.0.1:9/v1", model="x")}
    [note] = line(others=others).notes
    assert "tier tuned" in note
    assert "--lora m-ft=PATH" in note
    assert not line(Unstated(adapters=["m-ft=/p"]), others=others).notes


def test_an_address_elsewhere_is_listened_to_from_everywhere_and_that_is_said():
    made = line(url="http://gpu-3:8000/v1")
    assert options(made)["--host"] == "0.0.0.0"  # noqa: S104
    assert made.notes[0] == "run it on gpu-3"
    assert "api_key_env" in made.notes[1]
    secure = line(url="https://models.example/proxy", api_key_env="K")
    assert options(secure)["--port"] == "443"
    assert any("--ssl-keyfile" in note for note in secure.notes)
    assert any("a proxy must map it" in note for note in secure.notes)


def test_further_options_go_on_as_they_are_and_the_line_can_be_typed():
    made = line(Unstated(weights="my model", others=["--seed", "1"]))
    assert made.arguments[-2:] == ["--seed", "1"]
    assert shlex.split(made.shell()) == made.arguments


@pytest.mark.parametrize(
    ("fields", "unstated", "said"),
    [
        ({"url": None}, {}, "tiers.big.url"),
        ({"url": "localhost:8000"}, {}, "tiers.big.url"),
        ({"url": "http://h:99999/v1"}, {}, "tiers.big.url"),
        ({"model": ""}, {}, "tiers.big.model"),
    ],
)
def test_a_tier_that_no_line_can_serve_is_refused_by_its_key(fields, unstated, said):
    with pytest.raises(ConfigError) as caught:
        line(Unstated(**unstated), **fields)
    assert caught.value.param == said


def test_an_adapter_without_a_path_is_refused():
    with pytest.raises(ConfigError, match="NAME=PATH"):
        line(Unstated(adapters=["m"]))
