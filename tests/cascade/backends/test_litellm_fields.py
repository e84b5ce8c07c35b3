import pytest

from cascade.backends.litellm_api import import_litellm
from cascade.backends.litellm_fields import Dialect
from cascade.errors import BackendRefusedError

# litellm's own types, which pydantic has a remark on when a provider is loaded
pytestmark = pytest.mark.filterwarnings("ignore:Items .* on TypedDict class:UserWarning")

FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {}}}
VALUES = {
    "audio": {"voice": "a", "format": "wav"},
    "cache_control": {"type": "ephemeral"},
    "context_management": {"edits": []},
    "frequency_penalty": 0.5,
    "function_call": {"name": "f"},
    "functions": [FUNCTION],
    "logit_bias": {"5": 1},
    "logprobs": True,
    "max_completion_tokens": 7,
    "max_tokens": 7,
    "min_p": 0.1,
    "modalities": ["text"],
    "n": 2,
    "output_config": {"effort": "low"},
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "x"},
    "presence_penalty": 0.5,
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "reasoning_effort": "low",
    "repetition_penalty": 1.1,
    "response_format": {"type": "json_object"},
    "safety_identifier": "s",
    "safety_settings": [],
    "seed": 3,
    "service_tier": "flex",
    "speed": "fast",
    "stop": ["x"],
    "store": True,
    "temperature": 0.3,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tool_choice": "required",
    "top_k": 4,
    "top_logprobs": 2,
    "top_p": 0.5,
    "user": "u",
    "verbosity": "low",
    "web_search_options": {"search_context_size": "low"},
}
MODELS = [
    "anthropic/claude-sonnet-4-6",
    "azure/gpt-4o",
    "bedrock/anthropic.claude-sonnet-4-6",
    "cohere/command-a-03-2025",
    "deepseek/deepseek-chat",
    "gemini/gemini-2.5-pro",
    "mistral/mistral-large-latest",
    "openai/gpt-4o",
    "openrouter/openai/gpt-5-mini",
    "xai/grok-4",
]


@pytest.fixture(scope="module")
def litellm():
    return import_litellm()


def sent(litellm, model, **fields):
    """What litellm makes of fields; None when it refuses them aloud."""
    name, provider, _, _ = litellm.get_llm_provider(model=model)
    try:
        return litellm.utils.get_optional_params(model=name, custom_llm_provider=provider, **fields)
    except litellm.UnsupportedParamsError:
        return None


@pytest.mark.parametrize("model", MODELS)
def test_litellm_leaves_out_nothing_that_it_is_given(litellm, model):
    dialect = Dialect.of(litellm, model, None)
    assert VALUES.keys() >= dialect.translates
    for name in dialect.translates:
        needs_tools = name in {"tool_choice", "parallel_tool_calls"}
        beside = {"tools": [{"type": "function", "function": FUNCTION}]} if needs_tools else {}
        without = sent(litellm, model, **beside)
        assert sent(litellm, model, **beside, **{name: VALUES[name]}) != without, name


@pytest.mark.parametrize(
    ("name", "usual", "unusual"),
    [
        ("frequency_penalty", 0, 0.5),
        ("logit_bias", {}, {"5": 1}),
        ("logprobs", False, True),
        ("n", 1, 2),
        ("presence_penalty", 0.0, 0.5),
        ("response_format", {"type": "text"}, {"type": "json_object"}),
        ("service_tier", "auto", "flex"),
        ("tool_choice", "auto", "required"),
    ],
)
def test_a_value_that_asks_for_the_usual_is_no_reason_to_refuse(name, usual, unusual):
    closed = Dialect()
    assert closed.split({name: usual}) == ({}, {})
    with pytest.raises(BackendRefusedError, match=f"takes no {name}"):
        closed.split({name: unusual})


def test_where_the_body_is_open_everything_goes_out():
    fields = {"n": 1, "user": "u", "unheard_of": 2}
    assert Dialect(open_body=True).split(fields) == ({}, fields)


def part(kind):
    return [{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": kind}]}]


@pytest.mark.parametrize(
    ("model", "takes", "drops"),
    [
        ("anthropic/claude-sonnet-4-6", "document", "input_audio"),
        ("azure_ai/claude-sonnet-4-5", "file", "input_audio"),
        ("vertex_ai/claude-sonnet-4-5", "thinking", "input_audio"),
        ("bedrock/anthropic.claude-sonnet-4-6", "document", "input_audio"),
        ("gemini/gemini-2.5-pro", "input_audio", "video_url"),
        ("ollama_chat/llama3", "image_url", "file"),
    ],
)
def test_a_part_that_litellm_would_drop_is_refused_by_its_type(litellm, model, takes, drops):
    dialect = Dialect.of(litellm, model, None)
    dialect.check(part(takes))
    with pytest.raises(BackendRefusedError, match=f"takes no content of type {drops}"):
        dialect.check(part(drops))


@pytest.mark.parametrize(
    "model", ["openai/m", "azure/gpt-4o", "openrouter/x/y", "cohere/command-a-03-2025"]
)
def test_where_parts_go_out_as_they_are_none_is_refused(litellm, model):
    Dialect.of(litellm, model, None).check(part("unheard_of"))


@pytest.mark.parametrize("content", ["hi", None, [{"type": "text", "text": "hi"}]])
def test_plain_content_is_never_refused(content):
    Dialect(parts=frozenset({"text"})).check([{"role": "user", "content": content}])
