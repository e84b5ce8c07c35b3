"""Idempotency-Key: a repetition never pays twice.

A repetition joins the first request while that runs, and gets its recording afterwards. When the
recording is gone, because the service was restarted or memory was short, the audit log still knows
that the key was answered, and the repetition is refused rather than paid for.

The audit log keeps a key's hash and its tenant, so a key names one request of a tenant, whatever
the endpoint: used on another one it is used for another request.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from fastapi import Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cascade.errors import AuditError, CascadeError, RequestError
from serving.incoming import body_of, header_texts
from serving.recordings import Recording
from serving.schemas import tenant_of
from serving.service import Service
from serving.stream import unless_gone

logger = logging.getLogger(__name__)

HEADER = "idempotency-key"
MOST_CHARACTERS = 255
_RAW_HEADER = HEADER.encode()

Refuse = Callable[[Request, Exception], Awaitable[Response]]


class KeyReusedError(RequestError):
    """The key was used for another request."""

    status = 422
    code = "idempotency_key_reused"


class AnswerGoneError(RequestError):
    """The key was answered, and the answer is no longer here."""

    status = 409
    code = "idempotency_answer_gone"


class Idempotency:
    """ASGI middleware: requests with an Idempotency-Key are answered once.

    Args:
        app: what answers.
        service: whose recordings and whose audit log.
        paths: where answers are asked for; elsewhere the header means nothing.
        refuse: the response for an error.
    """

    def __init__(
        self, app: ASGIApp, *, service: Service, paths: Collection[str], refuse: Refuse
    ) -> None:
        self._app = app
        self._service = service
        self._paths = frozenset(paths)
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; one without the header goes straight on."""
        if scope["type"] != "http" or not self._concerned(scope):
            await self._app(scope, receive, send)
            return
        http = Request(scope, receive)
        try:
            recording, again = await self._recording(http)
        except ClientDisconnect:
            return
        except CascadeError as error:
            response = await self._refuse(http, error)
            await response(scope, receive, send)
            return
        await unless_gone(receive, recording.play(send, again=again))

    def _concerned(self, scope: Scope) -> bool:
        if scope["path"] in self._paths and scope["method"] == "POST":
            for name, _ in scope["headers"]:  # no generator: every request comes by here
                if name == _RAW_HEADER:
                    return True
        return False

    async def _recording(self, http: Request) -> tuple[Recording, bool]:
        """The recording of this request, and whether an earlier one began it."""
        headers = header_texts(http)
        key = _checked(headers[HEADER])
        body = await body_of(http, headers, self._service.max_body_bytes)
        tenant, digest = tenant_of(headers), _digest(http.url.path, body)
        recordings, audit = self._service.recordings, self._service.sink
        found = recordings.find((tenant, key))
        if found is None:
            recorded = recordings.record(
                (tenant, key),
                digest,
                work=lambda send: self._answer(http, body, (tenant, key), send),
                answered=lambda: audit.answered_lately(tenant, key) is not None,
            )
            return recorded, False
        if found.digest != digest:
            raise KeyReusedError(
                f"{HEADER} {key!r} was used for another request; take a new key for each request",
                param=HEADER,
            )
        return found, True

    async def _answer(self, http: Request, body: bytes, name: tuple[str, str], send: Send) -> None:
        if (earlier := await self._answered(*name)) is not None:
            error = AnswerGoneError(
                f"{HEADER} {name[1]!r} was answered as request {earlier}, and that answer is no "
                "longer kept; with a new key the request runs, and is paid for, anew",
                param=HEADER,
            )
            response = await self._refuse(http, error)
            # OpenAI's and Anthropic's clients take a 409 for a lock and would try again.
            response.headers["x-should-retry"] = "false"
            await response(http.scope, _never, send)
            return
        await self._app(http.scope, _once(body), send)

    async def _answered(self, tenant: str, key: str) -> str | None:
        """The id of the request that answered this key before.

        While the database cannot be asked, a key counts as new unless memory knows it: an outage
        of the audit log does not keep requests from being answered, with a key or without.
        """
        try:
            return await self._service.sink.answered(tenant, key)
        except AuditError as error:
            logger.warning("an idempotency key could not be looked up: %s", error.message)
            return None


def _checked(key: str) -> str:
    if not 1 <= len(key) <= MOST_CHARACTERS or not (key.isascii() and key.isprintable()):
        raise RequestError(
            f"{HEADER}: must be 1 to {MOST_CHARACTERS} printable ASCII characters", param=HEADER
        )
    return key


def _digest(path: str, body: bytes) -> bytes:
    return hashlib.blake2b(path.encode() + b"\n" + body, digest_size=16).digest()


def _once(body: bytes) -> Receive:
    """An ASGI receive that gives the body, and then nothing: this client never leaves."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else await _never()

    return receive


async def _never() -> Any:
    await asyncio.Event().wait()
