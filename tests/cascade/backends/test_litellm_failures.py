"""What goes wrong between litellm and the provider, and how the backend begins and ends."""

import asyncio
import subprocess
import sys

import pytest

from cascade.backends.litellm_api import LitellmBackend
from cascade.errors import (
    BackendAuthError,
    BackendConnectionError,
    BackendOverloadedError,
    BackendProtocolError,
    BackendRefusedError,
    BackendServerError,
    BackendSetupError,
    BackendTimeoutError,
    BackendUnreachableError,
    ConfigError,
)
from cascade.types import ChatRequest
from tests import anthropic
from tests.litellm_service import (  # noqa: F401  # fixtures among them
    ADD,
    CLAUDE,
    HELLO,
    ask,
    drain,
    make,
    said,
    upstream,
    whole,
)
from tests.upstream import DONE, event, words


@pytest.mark.parametrize("model", ["openai/m", CLAUDE])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BackendRefusedError),
        (401, BackendAuthError),
        (402, BackendAuthError),
        (403, BackendAuthError),
        (404, BackendSetupError),
        (408, BackendTimeoutError),
        (413, BackendRefusedError),
        (422, BackendRefusedError),
        (429, BackendOverloadedError),
        (500, BackendServerError),
        (502, BackendServerError),
        (503, BackendServerError),
        (529, BackendServerError),
    ],
)
async def test_a_status_becomes_the_error_that_says_what_can_be_done(
    upstream, ask, model, status, kind
):
    upstream.status = status
    upstream.headers = {"Retry-After": "7", "Content-Type": "application/json"}
    upstream.pieces = [b'{"error": {"message": "because"}}']
    with pytest.raises(kind, match="because") as caught:
        await drain(ask(model=model))
    assert type(caught.value) is kind
    assert len(upstream.bodies) == 1
    if status == 429:
        assert caught.value.retry_after == 7.0


@pytest.mark.parametrize("status", [405, 409, 410])
async def test_a_status_that_no_retry_and_no_client_can_mend_is_the_setups_fault(
    upstream, ask, status
):
    upstream.status = status
    upstream.pieces = [b'{"error": {"message": "because"}}']
    with pytest.raises(BackendSetupError, match="because"):
        await drain(ask())


async def test_a_prompt_that_is_too_long_is_the_requests_fault(upstream, ask):
    upstream.status = 400
    upstream.pieces = [
        b'{"error": {"message": "maximum context length is 9", "code": "context_length_exceeded"}}'
    ]
    with pytest.raises(BackendRefusedError, match="maximum context length"):
        await drain(ask())


async def test_a_parameter_that_litellm_cannot_translate_is_the_requests_fault(upstream, ask):
    with pytest.raises(BackendRefusedError):
        await drain(ask(params={"tool_choice": 5}))
    with pytest.raises(BackendRefusedError):
        await drain(ask(params={"response_format": "json"}))
    with pytest.raises(BackendRefusedError):
        await drain(ask(model=CLAUDE, tools=[{"type": "function"}]))
    assert upstream.bodies == []


@pytest.mark.parametrize("end", [[], [None], [DONE]])
async def test_a_cut_is_an_error_however_it_comes(upstream, ask, end):
    upstream.pieces = [*words("a", finish=None), *end]
    with pytest.raises(BackendConnectionError):
        await drain(ask())


@pytest.mark.parametrize("end", [[], [None]])
async def test_a_cut_of_the_other_shape_is_an_error_as_well(upstream, ask, end):
    upstream.pieces = [*anthropic.message("a", usage={"input_tokens": 3}, stop=None), *end]
    with pytest.raises(BackendConnectionError):
        await drain(ask(model=CLAUDE))


async def test_an_empty_stream_is_no_answer(upstream, ask):
    upstream.pieces = [DONE]
    with pytest.raises(BackendProtocolError, match="before the answer was finished"):
        await anext(ask())


async def test_what_is_no_event_is_a_protocol_error(upstream, ask):
    upstream.pieces = [event(b"not json"), DONE]
    with pytest.raises(BackendProtocolError):
        await drain(ask())


async def test_an_error_in_the_stream_is_an_error(upstream, ask):
    upstream.pieces = [*words("a", finish=None), event({"error": {"message": "out of memory"}})]
    with pytest.raises(BackendServerError, match="out of memory"):
        await drain(ask())
    overloaded = {"type": "overloaded_error", "message": "Overloaded"}
    upstream.pieces = [
        *anthropic.message("a", usage={"input_tokens": 3}, stop=None),
        anthropic.event("error", error=overloaded),
    ]
    with pytest.raises(BackendServerError, match="Overloaded"):
        await drain(ask(model=CLAUDE))


@pytest.mark.parametrize("model", ["openai/m", CLAUDE])
async def test_nobody_listening_is_unreachable(make, model):
    with pytest.raises(BackendUnreachableError):
        await make(model=model, url="http://127.0.0.1:9").complete(
            ChatRequest(id="r", messages=HELLO)
        )


async def test_a_missing_key_is_the_operators_fault(make, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(BackendAuthError, match="credentials"):
        await make(api_key=None).complete(ChatRequest(id="r", messages=HELLO))


async def test_a_late_first_token_and_a_late_end_are_timeouts(upstream, ask):
    said(upstream, "a")
    await drain(ask())
    upstream.pieces = [5.0, *words("a")]
    with pytest.raises(BackendTimeoutError, match=r"no token in 0\.2 s"):
        await drain(ask(first_token_seconds=0.2))
    upstream.pieces = [*words("a", finish=None), 5.0]
    with pytest.raises(BackendTimeoutError, match=r"no whole answer in 0\.5 s"):
        await drain(ask(total_seconds=0.5))
    with pytest.raises(BackendTimeoutError, match=r"no whole answer in 0\.5 s"):
        await drain(ask(total_seconds=0.5, first_token_seconds=0.1, params={"n": 2}))


async def test_a_role_is_no_first_token(upstream, ask):
    said(upstream, "a")
    await drain(ask())
    for start in (words(finish=None), anthropic.message(usage={"input_tokens": 3}, stop=None)[:1]):
        upstream.pieces = [*start, 5.0]
        model = CLAUDE if b"message_start" in start[0] else "openai/m"
        with pytest.raises(BackendTimeoutError, match=r"no token in 0\.2 s"):
            await drain(ask(model=model, first_token_seconds=0.2, total_seconds=3.0))


async def test_content_that_would_not_arrive_is_refused(upstream, ask):
    said(upstream, "a")
    messages = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]
    with pytest.raises(BackendRefusedError, match="no content of type input_audio"):
        await drain(ask(model=CLAUDE, messages=messages))
    assert upstream.bodies == []
    await drain(ask(messages=messages))
    assert upstream.bodies[0]["messages"] == messages


async def test_content_that_litellm_does_not_let_out_is_the_requests_fault(ask):
    messages = [{"role": "user", "content": [{"type": "unheard_of"}]}]
    with pytest.raises(BackendRefusedError, match="Invalid user message"):
        await drain(ask(messages=messages))


@pytest.mark.parametrize("model", ["openai/m", CLAUDE])
async def test_leaving_the_stream_closes_the_connection(upstream, ask, model):
    answer = (
        anthropic.message("a", usage={"input_tokens": 3}, stop=None)
        if model == CLAUDE
        else words("a", finish=None)
    )
    upstream.pieces = [*answer, 30.0]
    stream = ask(model=model)
    await anext(stream)
    await stream.aclose()
    async with asyncio.timeout(5):
        await upstream.left.wait()


@pytest.mark.parametrize("params", [{}, {"n": 2}])
async def test_a_caller_that_leaves_before_the_answer_closes_the_connection(upstream, ask, params):
    upstream.pieces = [30.0]
    reading = asyncio.create_task(drain(ask(params=params)))
    async with asyncio.timeout(20):
        while not upstream.bodies:
            await asyncio.sleep(0.01)
        reading.cancel()
        await upstream.left.wait()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_connections_are_kept(upstream, make):
    said(upstream, "a")
    backend = make()
    for _ in range(3):
        await backend.complete(ChatRequest(id="r", messages=HELLO))
    assert len(upstream.bodies) == 3
    assert len(upstream.connections) == 1


async def test_a_model_without_a_known_provider_is_refused_as_configuration():
    backend = LitellmBackend(model="nonesuch/model")
    with pytest.raises(ConfigError, match="knows no provider of 'nonesuch/model'") as caught:
        await backend.complete(ChatRequest(id="r", messages=HELLO))
    assert caught.value.param == "model"


def test_an_extra_argument_that_another_key_sets_is_refused_by_name():
    with pytest.raises(ConfigError, match="other keys") as caught:
        LitellmBackend(model="openai/m", extra={"api_key": "k"})
    assert caught.value.param == "extra.api_key"


def test_a_missing_litellm_is_told_with_the_command_that_mends_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ConfigError, match=r"pip install 'cascade-router\[litellm\]'"):
        LitellmBackend(model="openai/m")


FIRST_USE = """
import asyncio, os, sys
from cascade.backends.litellm_api import LitellmBackend
from cascade.errors import BackendUnreachableError
from cascade.types import ChatRequest

def refuse(event, arguments):
    if event == "socket.getaddrinfo" and arguments[0] != "127.0.0.1":
        os._exit(3)

async def main():
    sys.addaudithook(refuse)
    backend = LitellmBackend(model="openai/m", url="http://127.0.0.1:9/v1", api_key="k")
    assert "litellm" not in sys.modules
    asking = asyncio.ensure_future(
        backend.complete(ChatRequest(id="r", messages=[{"role": "user", "content": "hi"}]))
    )
    turns = 0
    while "litellm.main" not in sys.modules:
        await asyncio.sleep(0.01)
        turns += 1
    assert turns >= 10, f"the event loop was held: {turns} turns"
    try:
        await asking
    except BackendUnreachableError:
        pass
    assert "FROM_A_FILE" not in os.environ
    await backend.aclose()

asyncio.run(main())
"""


def test_the_first_use_holds_nothing_up_reads_no_file_and_says_nothing(tmp_path):
    (tmp_path / ".env").write_text("FROM_A_FILE=1\n")
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", FIRST_USE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("model", ["openai/m", CLAUDE])
async def test_a_backend_goes_on_when_another_for_the_same_model_is_closed(upstream, make, model):
    usage = {"input_tokens": 3, "output_tokens": 1}
    upstream.pieces = (
        anthropic.message("a", usage=usage) if model == CLAUDE else [*words("a"), DONE]
    )
    first, second = make(model=model), make(model=model)
    await first.complete(ChatRequest(id="r", messages=HELLO))
    await first.aclose()
    for _ in range(2):
        assert (await second.complete(ChatRequest(id="r", messages=HELLO))).text == "a"
