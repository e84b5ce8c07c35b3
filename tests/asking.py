"""One question asked through each of the clients that people use, and their answers made alike.

A client is a function; what comes back says the same whichever it was, so that one test holds for
all of them. Each streams through its own library's accumulator, which refuses a malformed stream.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anthropic
import openai

from cascade.backends.litellm_api import import_litellm

DEADLINE_SECONDS = 120.0

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "maxLength": 20},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    },
    "required": ["place", "unit"],
    "additionalProperties": False,
}

_ENDS = {"response.completed", "response.incomplete"}


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked, in nobody's shape.

    `schema` is the form of the answer; `tool` the parameters of a tool that must be called; `extra`
    goes into the body as it is.
    """

    model: str
    text: str
    max_tokens: int = 24
    schema: dict[str, Any] | None = None
    tool: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back. `prompt_tokens` include the cached ones; None where it was not said."""

    text: str
    calls: Sequence[tuple[str, Any]]
    model: str
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    finish: str | None


Client = Callable[[str, Question, bool], Awaitable[Answer]]


async def openai_chat(url: str, question: Question, streamed: bool) -> Answer:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        asked = {**_chat(question), "extra_body": _exact(question)}
        if not streamed:
            return _chat_answer(await client.chat.completions.create(**asked))
        async with client.chat.completions.stream(
            **asked, stream_options={"include_usage": True}
        ) as stream:
            try:
                return _chat_answer(await stream.get_final_completion())
            except openai.LengthFinishReasonError as cut:  # raised whatever was asked for
                return _chat_answer(cut.completion)


async def litellm_chat(url: str, question: Question, streamed: bool) -> Answer:
    litellm = import_litellm()
    asked = {
        **_chat(question),
        **_exact(question),
        "model": f"openai/{question.model}",
        "api_base": f"{url}/v1",
        "api_key": "none",
        "max_retries": 0,
    }
    if not streamed:
        return _chat_answer(await litellm.acompletion(**asked))
    stream = await litellm.acompletion(**asked, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    # litellm puts the name that was asked for where the name of who answered belongs.
    named = {chunk.hidden_params.get("provider_response_model") for chunk in chunks} - {None}
    return replace(_chat_answer(litellm.stream_chunk_builder(chunks)), model=" ".join(named))


async def anthropic_messages(url: str, question: Question, streamed: bool) -> Answer:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0) as client:
        asked = _messages(question)
        if streamed:
            async with client.messages.stream(**asked) as stream:
                message = await stream.get_final_message()
        else:
            message = await client.messages.create(**asked)
    usage = message.usage
    return Answer(
        text="".join(block.text for block in message.content if block.type == "text"),
        calls=[(b.name, b.input) for b in message.content if b.type == "tool_use"],
        model=message.model,
        prompt_tokens=usage.input_tokens + (usage.cache_read_input_tokens or 0),
        cached_tokens=usage.cache_read_input_tokens,
        output_tokens=usage.output_tokens,
        finish={"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}.get(
            message.stop_reason or ""
        ),
    )


async def openai_responses(url: str, question: Question, streamed: bool) -> Answer:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        asked = _responses(question)
        if streamed:
            async with client.responses.stream(**asked) as stream:
                # get_final_response knows no answer that was cut by its limit
                ends = [e async for e in stream if e.type in _ENDS]
            [response] = [end.response for end in ends]
        else:
            response = await client.responses.create(**asked)
    calls = [item for item in response.output if item.type == "function_call"]
    usage = response.usage
    finish = "tool_calls" if calls else "stop"
    return Answer(
        text=response.output_text,
        calls=[(call.name, json.loads(call.arguments)) for call in calls],
        model=response.model,
        prompt_tokens=usage and usage.input_tokens,
        cached_tokens=usage and usage.input_tokens_details.cached_tokens,
        output_tokens=usage and usage.output_tokens,
        finish="length" if response.status == "incomplete" else finish,
    )


CLIENTS: dict[str, Client] = {
    "openai": openai_chat,
    "litellm": litellm_chat,
    "anthropic": anthropic_messages,
    "responses": openai_responses,
}


async def ask(client: str, url: str, question: Question, *, streamed: bool) -> Answer:
    """Ask through that client; an answer that does not come in time is a failure, not a hang."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await CLIENTS[client](url, question, streamed)


def _exact(question: Question) -> dict[str, Any]:
    return {"temperature": 0, **(question.extra or {})}


def _chat(question: Question) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model": question.model,
        "messages": [{"role": "user", "content": question.text}],
        "max_tokens": question.max_tokens,
    }
    if question.schema is not None:
        form = {"name": "answer", "schema": question.schema, "strict": True}
        asked["response_format"] = {"type": "json_schema", "json_schema": form}
    if question.tool is not None:
        function = {"name": "weather", "parameters": question.tool, "strict": True}
        asked["tools"] = [{"type": "function", "function": function}]
        asked["tool_choice"] = "required"
    return asked


def _messages(question: Question) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model": question.model,
        "messages": [{"role": "user", "content": question.text}],
        "max_tokens": question.max_tokens,
        "extra_body": _exact(question),
    }
    if question.schema is not None:
        form = {"type": "json_schema", "schema": question.schema}
        asked["output_config"] = {"format": form}
    if question.tool is not None:
        asked["tools"] = [{"name": "weather", "input_schema": question.tool, "strict": True}]
        asked["tool_choice"] = {"type": "any"}
    return asked


def _responses(question: Question) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model": question.model,
        "input": question.text,
        "max_output_tokens": question.max_tokens,
        "extra_body": _exact(question),
    }
    if question.schema is not None:
        form = {"type": "json_schema", "name": "answer", "schema": question.schema, "strict": True}
        asked["text"] = {"format": form}
    if question.tool is not None:
        tool = {"type": "function", "name": "weather", "parameters": question.tool, "strict": True}
        asked["tools"] = [tool]
        asked["tool_choice"] = "required"
    return asked


def _chat_answer(completion: Any) -> Answer:
    [choice] = completion.choices
    usage = completion.usage
    details = usage and usage.prompt_tokens_details
    return Answer(
        text=choice.message.content or "",
        calls=[
            (call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or ()
        ],
        model=completion.model,
        prompt_tokens=usage and usage.prompt_tokens,
        cached_tokens=details and details.cached_tokens,
        output_tokens=usage and usage.completion_tokens,
        finish=choice.finish_reason,
    )
