"""Asks a running service the prompts of a dataset and keeps what came back.

Goes through the public address with an ordinary client, so that what is measured is what a client
gets: answer, tier, attempts and bill from the response and its headers.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, cast

import openai
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

from cascade.backends.usage import from_openai
from cascade.errors import BackendConnectionError, UnknownModelError
from cascade.types import Usage
from evals.datasets import Prompt

TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one model name answered to one prompt.

    Attributes:
        model: the name that was asked for.
        right: the scorer's word; False when there is no answer.
        tier: who answered.
        attempts: how many models were asked.
        usage: of the call that answered.
        billed: dollars of all attempts, as the service counted them; None when unknown.
        degraded: a stand-in answered.
        request_id: the key of the audit row.
        error: why there is no answer; empty when there is one.
    """

    prompt: Prompt
    model: str
    right: bool = False
    text: str = ""
    tier: str = ""
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)
    billed: Decimal | None = None
    degraded: bool = False
    request_id: str = ""
    error: str = ""


class Asker:
    """Asks one service.

    Args:
        base_url: ends in /v1.
        concurrency: prompts in flight at once.
        api_key: sent as a bearer token.
    """

    def __init__(self, base_url: str, *, concurrency: int = 1, api_key: str = "none") -> None:
        self._base_url = base_url
        self._places = asyncio.Semaphore(concurrency)
        self._client = AsyncOpenAI(base_url=base_url, api_key=api_key, timeout=TIMEOUT_SECONDS)

    async def ask_all(
        self, model: str, prompts: Sequence[Prompt], done: Callable[[Outcome], None]
    ) -> list[Outcome]:
        """All outcomes in the order of the prompts; done is called as each comes in.

        A prompt that gets no answer is an outcome with its error.

        Raises:
            BackendConnectionError: nothing listens at the address.
            UnknownModelError: the service does not know the model's name.
        """

        async def one(prompt: Prompt) -> Outcome:
            async with self._places:
                outcome = await self._ask(model, prompt)
            done(outcome)
            return outcome

        return await asyncio.gather(*(one(prompt) for prompt in prompts))

    async def aclose(self) -> None:
        """Release connections."""
        await self._client.close()

    async def _ask(self, model: str, prompt: Prompt) -> Outcome:
        try:
            response = await self._client.chat.completions.with_raw_response.create(
                model=model,
                messages=cast("Any", prompt.messages),
                **prompt.params(),
            )
        except openai.APITimeoutError:
            return Outcome(prompt=prompt, model=model, error=f"no answer in {TIMEOUT_SECONDS:g} s")
        except openai.APIConnectionError:
            raise BackendConnectionError(
                f"no service answers at {self._base_url}; start one with `make run`"
            ) from None
        except openai.NotFoundError as error:
            raise UnknownModelError(f"{self._base_url} does not serve {model!r}: {error}") from None
        except openai.APIStatusError as error:
            return Outcome(prompt=prompt, model=model, error=str(error))
        return read(prompt, model, response.parse(), response.headers)


def read(prompt: Prompt, model: str, answer: ChatCompletion, headers: Mapping[str, str]) -> Outcome:
    """The outcome that a whole answer and its headers stand for."""
    text = (answer.choices[0].message.content if answer.choices else None) or ""
    return Outcome(
        prompt=prompt,
        model=model,
        right=prompt.right(text),
        text=text,
        tier=headers.get("x-cascade-tier", ""),
        attempts=int(headers.get("x-cascade-attempts", "1")),
        usage=from_openai(answer.usage.model_dump() if answer.usage else None),
        billed=_dollars(headers.get("x-cascade-cost-usd")),
        degraded=headers.get("x-cascade-degraded") == "true",
        request_id=headers.get("x-cascade-request-id", ""),
    )


def _dollars(stated: str | None) -> Decimal | None:
    try:
        return Decimal(stated or "unknown")
    except InvalidOperation:
        return None
