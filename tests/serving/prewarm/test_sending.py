import pytest

from cascade.errors import CascadeError
from cascade.types import Budget, ChatRequest, Usage
from serving.prewarm.sending import directly, prewarming
from serving.store import queries, schema
from serving.store.database import engine_for
from tests import anthropic
from tests.engines import request
from tests.serving.test_tier_config import OWN, plus, wired
from tests.upstream import DONE, Upstream, event, serving, words

PRICE = "price: {input: 3, cache_read: 0.3, cache_write: {5m: 3.75}, output: 15}"


def params(**given):
    return prewarming(request(**given)).params


def test_one_token_is_asked_for_and_the_rest_is_as_it_was():
    given = {"temperature": 0, "max_tokens": 900, "n": 3, "reasoning_effort": "low"}
    assert params(**given) == {"temperature": 0, "reasoning_effort": "low", "max_tokens": 1}


def test_the_limit_keeps_the_name_that_the_client_gave_it():
    assert params(max_completion_tokens=900) == {"max_completion_tokens": 1}


def test_a_thinking_budget_stays_and_has_room():
    thinking = {"type": "enabled", "budget_tokens": 2048}
    assert params(thinking=thinking, max_tokens=9000) == {"thinking": thinking, "max_tokens": 2049}
    assert params(thinking={"type": "adaptive"})["max_tokens"] == 1


def test_another_limit_can_be_asked_for():
    assert prewarming(request(), 16).params == {"max_tokens": 16}


def test_limits_and_names_of_the_real_request_are_not_used_up():
    real = ChatRequest(id="r", messages=[], budget=Budget(seconds=0.1), idempotency_key="k")
    ahead = prewarming(real)
    assert (ahead.budget, ahead.idempotency_key) == (None, "")


@pytest.fixture
def log(tmp_path):
    url = f"sqlite:///{tmp_path}/cascade.db"
    schema.upgrade(url)
    return url


def stored(url):
    engine = engine_for(url)
    try:
        return queries.tail(engine, 10)
    finally:
        engine.dispose()


async def sent(tmp_path, log, tier, pieces, asked=None, **upstream):
    headers = {"Content-Type": "text/event-stream"}
    async with serving(Upstream(pieces=pieces, headers=headers, **upstream)) as server:
        url = server.url.removesuffix("/v1") if "anthropic/" in tier else server.url
        tier = tier.replace("http://127.0.0.1:9/v1", url)
        snapshot = wired(tmp_path, tier)
        ahead = prewarming(asked or request())
        return await directly(log, snapshot, "t", ahead), server.bodies


USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 1,
    "prompt_tokens_details": {"cached_tokens": 40},
}


async def test_the_log_has_it_as_an_attempt_to_prewarm(tmp_path, log):
    pieces = [*words("a", finish="length", usage=USAGE), DONE]
    done, bodies = await sent(tmp_path, log, plus(OWN, PRICE), pieces)
    assert done.usage == Usage(input=60, cache_read=40, output=1)
    assert str(done.cost) == "0.000207"
    assert bodies[0]["max_tokens"] == 1
    [row] = stored(log)
    [attempt] = row.attempts
    assert (row.id, row.answers, row.status) == (done.request_id, 0, "ok")
    assert (row.policy, row.tier, row.baseline_pico) == ("prewarm", None, None)
    assert (attempt.kind, attempt.tier) == ("prewarm", "t")
    assert (attempt.cache_read_tokens, attempt.cost_pico) == (40, 207_000_000)


async def test_an_anthropic_tier_is_sent_its_marks_and_what_was_written_is_priced(
    tmp_path, log, monkeypatch
):
    monkeypatch.setenv("CASCADE_TEST_KEY", "k")
    tier = (
        "{backend: litellm_api, model: anthropic/claude-sonnet-4-6, api_key_env: CASCADE_TEST_KEY, "
        f"breakpoints: true, url: 'http://127.0.0.1:9/v1', {PRICE}}}"
    )
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 2000, "output_tokens": 1}
    asked = ChatRequest(
        id="r1",
        messages=[{"role": "system", "content": "x" * 8000}, {"role": "user", "content": "hi"}],
    )
    done, bodies = await sent(tmp_path, log, tier, anthropic.message("a", usage=usage), asked)
    assert bodies[0]["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert done.usage.cache_write == {"5m": 2000}
    assert str(done.cost) == "0.007545"
    assert done.kept == 2000


async def test_a_tool_call_that_is_cut_after_a_token_is_no_fault(tmp_path, log):
    function = {"name": "add", "arguments": '{"a'}
    call = {"index": 0, "id": "c", "type": "function", "function": function}
    pieces = [
        event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}),
        *words(finish="length", usage=USAGE)[1:],
        DONE,
    ]
    done, _ = await sent(tmp_path, log, plus(OWN, PRICE), pieces)
    assert done.usage.cache_read == 40
    assert stored(log)[0].status == "ok"


async def test_a_failure_is_told_and_logged_as_well(tmp_path, log):
    refusal = [b'{"error": {"message": "max_tokens must be above 15"}}']
    with pytest.raises(CascadeError, match=r"must be above 15.*--max-tokens"):
        await sent(tmp_path, log, OWN, refusal, status=400)
    [row] = stored(log)
    assert (row.status, row.attempts[0].kind) == ("error", "prewarm")


async def test_nothing_is_sent_when_it_could_not_be_logged(tmp_path):
    async with serving(Upstream(pieces=[*words("a"), DONE])) as server:
        snapshot = wired(tmp_path, OWN.replace("http://127.0.0.1:9/v1", server.url))
        with pytest.raises(CascadeError, match="cascade db upgrade"):
            await directly(f"sqlite:///{tmp_path}/new.db", snapshot, "t", prewarming(request()))
        assert server.bodies == []
