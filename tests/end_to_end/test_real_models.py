"""The default configuration as a user starts it: two real models, one command."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import openai
import pytest
from pydantic import BaseModel

from serving.models.catalogue import CATALOGUE
from serving.models.fetch import ensure
from serving.models.home import home
from tests import asking
from tests.asking import CLIENTS, PERSON, Question
from tests.end_to_end.processes import CascadeProcess, wait_for

pytestmark = pytest.mark.real_models

ROOT = Path(__file__).parents[2]
EASY = "What is 2 + 3? Answer with the number only."
HARD = "What is 937 * 468? Answer with the number only."
EXACT = {"temperature": 0, "max_tokens": 24}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("default")
    shutil.copy(ROOT / "cascade.yaml", folder)
    for part in ("judges", "classifiers"):
        shutil.copytree(ROOT / part / "artifacts", folder / part / "artifacts")
    cached = [ensure(model, home()) for model in CATALOGUE.values()]
    process = CascadeProcess(
        folder / "cascade.yaml",
        CASCADE_HOME=str(folder / "home"),
        CASCADE_MODELS_DIR=str(cached[0].parent),
    )
    process.start()
    yield process
    process.stop()


@pytest.fixture
def ai(served):
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def ask(ai, text, model="cascade", **fields):
    raw = ai.chat.completions.with_raw_response.create(
        model=model, messages=[{"role": "user", "content": text}], **{**EXACT, **fields}
    )
    return raw.parse(), raw.headers


def test_an_easy_sum_is_answered_by_small_and_a_hard_one_by_large(ai):
    answer, headers = ask(ai, EASY)
    assert "5" in answer.choices[0].message.content
    assert headers["x-cascade-tier"] == "small"
    assert headers["x-cascade-attempts"] == "1"
    answer, headers = ask(ai, HARD)
    assert headers["x-cascade-tier"] == "large"
    assert headers["x-cascade-attempts"] == "2"
    assert headers["x-cascade-degraded"] == "false"
    assert answer.model == "qwen2.5-coder-1.5b"


def test_the_audit_log_explains_an_escalation_in_numbers(served, ai):
    _, headers = ask(ai, HARD)
    wanted = headers["x-cascade-request-id"]
    wait_for(lambda: wanted in served.run("audit", "tail", "--json"), 10)
    record = json.loads(served.run("audit", "show", wanted, "--json"))
    small, judge, large = record["attempts"]
    assert [small["outcome"], judge["kind"], large["outcome"]] == ["rejected", "judge", "accepted"]
    assert small["score"] < small["threshold"]
    assert f"is below {small['threshold']:.3f}" in large["reason"]
    assert small["input_tokens"] + small["cache_read_tokens"] > 20
    assert large["output_tokens"] > 0
    assert large["duration_ms"] >= large["first_token_ms"] > 0
    cost = sum(a["cost_pico"] for a in record["attempts"]) if "cost_pico" in small else None
    if cost is not None:
        assert cost == record["cost_pico"]
    shown = served.run("audit", "show", wanted)
    assert re.search(r"\$0\.0000\d+", shown)
    assert f"{small['threshold']:.3f}" in shown


@pytest.mark.parametrize(
    "model", ["auto", "cascade", "always-small", "always-large", "small", "large"]
)
def test_every_name_of_the_default_configuration_answers(ai, model):
    answer, headers = ask(ai, EASY, model=model)
    assert answer.choices[0].message.content
    if model.startswith("always-"):
        assert headers["x-cascade-tier"] == model.removeprefix("always-")
    if model == "auto":
        assert headers["x-cascade-arm"] in {"control", "cascade"}


@pytest.mark.parametrize("model", ["always-small", "cascade"])
def test_a_stream_is_the_answer_in_pieces(ai, model):
    whole, _ = ask(ai, "Count from 1 to 5.", model=model, max_tokens=60)
    stream = ai.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "Count from 1 to 5."}],
        stream=True,
        stream_options={"include_usage": True},
        temperature=0,
        max_tokens=60,
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens > 5


BOTH_WAYS = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@pytest.mark.parametrize("client", CLIENTS)
@BOTH_WAYS
async def test_every_client_gets_the_answer_and_its_usage(served, client, streamed):
    question = Question(model="cascade", text=EASY)
    answer = await asking.ask(client, served.url, question, streamed=streamed)
    assert "5" in answer.text
    assert (answer.finish, answer.model) == ("stop", "qwen2.5-coder-0.5b")
    assert answer.prompt_tokens > 20
    assert answer.output_tokens > 0


@pytest.mark.parametrize("client", CLIENTS)
@BOTH_WAYS
async def test_every_client_gets_the_schema_that_it_asked_for(served, client, streamed):
    text = "Mara is 31 years old and lives in Oslo. Give name and age as JSON."
    question = Question(model="cascade", text=text, max_tokens=80, schema=PERSON)
    answer = await asking.ask(client, served.url, question, streamed=streamed)
    assert json.loads(answer.text) == {"name": "Mara", "age": 31}


class Person(BaseModel):
    name: str
    age: int


RESPOND = {"temperature": 0, "max_output_tokens": 80}


@pytest.mark.parametrize(("model", "tier"), [("cascade", "small"), ("always-large", "large")])
def test_a_response_is_the_same_whole_and_in_pieces(ai, model, tier):
    asked = {"model": model, "instructions": "Be brief.", "input": EASY, **RESPOND}
    raw = ai.responses.with_raw_response.create(**asked)
    whole = raw.parse()
    with ai.responses.stream(**asked) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        streamed = stream.get_final_response()
    assert "5" in whole.output_text
    assert text == streamed.output_text == whole.output_text
    assert streamed.status == whole.status == "completed"
    assert raw.headers["x-cascade-tier"] == tier


def test_a_response_has_the_form_of_a_pydantic_model(ai):
    text = "Mara is 31 years old and lives in Oslo. Give name and age as JSON."
    asked = {"model": "cascade", "input": text, "text_format": Person, **RESPOND}
    whole = ai.responses.parse(**asked)
    with ai.responses.stream(**asked) as stream:
        streamed = stream.get_final_response()
    assert whole.output_parsed == streamed.output_parsed == Person(name="Mara", age=31)


def test_a_conversation_of_responses_goes_on_from_the_items_it_brought(ai):
    said = [{"role": "user", "content": "My dog is called Bello. Say hello to it."}]
    first = ai.responses.create(model="large", input=said, **RESPOND)
    said += [*first.output, {"role": "user", "content": "What is my dog called? One word."}]
    later = ai.responses.create(model="large", input=said, **RESPOND)
    assert "Bello" in later.output_text


def test_tool_definitions_are_taken_by_both_models(ai):
    parameters = {"type": "object", "properties": {"place": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": parameters}}
    for model in ("small", "large"):
        answer, headers = ask(ai, EASY, model=model, tools=[tool])
        message = answer.choices[0].message
        assert message.content or message.tool_calls
        assert headers["x-cascade-tier"] == model


def test_what_no_tier_can_serve_is_refused_before_any_call(ai):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    with pytest.raises(openai.BadRequestError, match=r"small does not offer vision; large does"):
        ask(ai, [image])
    with pytest.raises(openai.BadRequestError, match=r"a window of 8192 tokens, too short"):
        ask(ai, "word " * 9000)


def test_a_repeated_prompt_is_read_from_the_cache_and_billed_so(served, ai):
    text = "Here is a list of words: " + "apple pear plum " * 60 + ". How many kinds? One number."
    ask(ai, text, model="small")
    answer, headers = ask(ai, text, model="small")
    usage = answer.usage
    assert usage.prompt_tokens_details.cached_tokens > usage.prompt_tokens / 2
    cold = usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens
    bill = (
        cold * 0.02
        + usage.prompt_tokens_details.cached_tokens * 0.002
        + usage.completion_tokens * 0.04
    ) / 1e6
    assert float(headers["x-cascade-cost-usd"]) == pytest.approx(bill)


def test_logprobs_come_only_when_asked_for(ai):
    answer, _ = ask(ai, EASY)
    assert answer.choices[0].logprobs is None
    answer, _ = ask(ai, EASY, logprobs=True, top_logprobs=3)
    assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 3


def test_a_killed_large_model_degrades_answers_and_comes_back(served, ai):
    [pid] = [s["pid"] for s in servers(served) if s["tier"] == "large"]
    os.kill(pid, signal.SIGKILL)
    answer, headers = ask(ai, HARD)
    assert answer.choices[0].message.content
    assert headers["x-cascade-degraded"] == "true"
    assert headers["x-cascade-tier"] == "small"
    assert headers["x-cascade-attempts"] == "2"
    _, headers = ask(ai, EASY, model="always-large")
    assert headers["x-cascade-tier"] == "small"
    assert headers["x-cascade-degraded"] == "true"
    assert served.get("/readyz")[0] == 200
    wait_for(lambda: served.get("/readyz")[1]["status"] == "ready", 60, served.said)
    _, headers = ask(ai, HARD)
    assert headers["x-cascade-tier"] == "large"
    assert headers["x-cascade-degraded"] == "false"


def servers(served):
    folder = served.config.parent / "home" / "run"
    return [json.loads(path.read_text()) for path in folder.glob("*.json")]


def test_model_servers_end_with_the_service_even_when_it_is_killed(served):
    pids = [state["pid"] for state in servers(served)]
    assert len(pids) == 2
    served.stop(signal.SIGKILL)
    wait_for(lambda: not any(alive(pid) for pid in pids), 20)
    served.start()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path(f"/proc/{pid}/stat").read_text().split(") ")[1].startswith("Z")
