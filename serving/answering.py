"""The way of a request for an answer: read, find the arm, run the engine, answer.

It is the same for every API that Cascade speaks; an API is a Shape.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from cascade.changing import changed
from cascade.errors import CascadeError, RequestError
from cascade.experiments import Arm
from cascade.failures import failure
from cascade.result import CascadeResult
from cascade.snapshot import Snapshot
from cascade.types import ChatRequest, Completion, Failure
from serving import present
from serving.control import FIELD, HEADERS
from serving.experiment_config import HEADER
from serving.explain import explained
from serving.incoming import body_of, header_texts, key_id
from serving.schemas import Call, bounded
from serving.service import Service
from serving.stream import AnswerStream, unless_gone

CLIENT_LEFT = 499


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How one API asks and is answered.

    Attributes:
        parse: reads a request from its body, its headers and its id.
        whole: the body of a whole answer; raises CascadeError when it cannot be told.
        stream: sends a streamed one.
        error: the body for a failure of the request of that id.
    """

    parse: Callable[[bytes, Mapping[str, str], str], Call]
    whole: Callable[[CascadeResult, Completion], dict[str, Any]]
    stream: type[AnswerStream]
    error: Callable[[CascadeError | Failure, str], dict[str, Any]]


async def answer(http: Request, shape: Shape) -> Response:
    """Answer a request with the cheapest tier whose answer is good enough.

    Raises:
        RequestError: the request cannot be read, or names no model.
    """
    service: Service = http.app.state.service
    headers = header_texts(http)
    try:
        body = await body_of(http, headers, service.max_body_bytes)
    except ClientDisconnect:
        return Response(status_code=CLIENT_LEFT)
    call = shape.parse(body, headers, http.state.request_id)
    engine = service.engine
    snapshot = engine.snapshot  # the request keeps it, whatever takes its place meanwhile
    unit, arm = _assigned(call, snapshot, headers, http.headers)
    call = changed(call, request=changed(call.request, key_id=key_id(http), unit=unit))
    early = present.early_headers(call.request, arm)
    if call.stream:
        return shape.stream(engine.events(call.request, arm, snapshot=snapshot), call, early)
    result = await unless_gone(http.receive, engine.run(call.request, arm, snapshot=snapshot))
    if result is None:
        return Response(status_code=CLIENT_LEFT)
    return _whole(result, call, shape, early)


class Answering:
    """An API's endpoint as an ASGI application."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        http = Request(scope, receive)
        try:
            response = await answer(http, self._shape)
            await response(scope, receive, send)
        finally:
            service: Service = http.app.state.service
            if service.shadows is not None:
                service.shadows.sent(http.state.request_id)


class AnsweringFirst:
    """ASGI middleware: requests for answers go to their API at once, and all others go on.

    They are most of all requests and read their bodies themselves, so nothing of what FastAPI does
    around an endpoint and on the way to it is of use to them, and it takes a tenth of a request.

    Args:
        app: takes the others.
        apis: by path.
        refuse: the response to a request that cannot be answered.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        apis: Mapping[str, Shape],
        refuse: Callable[[Request, Exception], Awaitable[Response]],
    ) -> None:
        self._app = app
        self._apis = {path: Answering(shape) for path, shape in apis.items()}
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        api = self._apis.get(scope["path"]) if scope["type"] == "http" else None
        if api is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            await api(scope, receive, send)
        except CascadeError as error:  # raised before anything was sent
            response = await self._refuse(Request(scope, receive), error)
            await response(scope, receive, send)


def json_response(
    data: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON answer."""
    return Response(
        orjson.dumps(data),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )


def _whole(result: CascadeResult, call: Call, shape: Shape, early: Mapping[str, str]) -> Response:
    headers = {**early, **present.late_headers(result)}
    told = explained(result, asked=call.explain)
    fault = result.error
    if result.completion is not None:
        try:
            body = shape.whole(result, result.completion)
            return json_response(body | told, 200, headers)
        except CascadeError as error:
            fault = failure(error)
    fault = fault or present.bug(AssertionError())
    body = shape.error(fault, result.request.id)
    return json_response(body | told, fault.status, headers)


def _assigned(
    call: Call, snapshot: Snapshot, headers: Mapping[str, str], sent: Mapping[str, str]
) -> tuple[str, Arm]:
    """The call's sticky unit, and the arm that the unit is in or that the client chose.

    Args:
        call: as it was read.
        snapshot: the configuration that it is answered under.
        headers: those that Cascade reads.
        sent: all, of which an experiment may have named one.

    Raises:
        RequestError: there is no such model, or no such tier to pin.
    """
    request = call.request
    trials = snapshot.trials(request.model)
    unit = _unit(request, trials[0].unit, sent) if trials and not call.pin else ""
    arm = snapshot.arm(request.model, unit)  # a model that is not there is an error when pinned too
    if call.pin is not None:
        arm = _pinned(call.pin, snapshot, headers)
    return unit, arm


def _pinned(tier: str, snapshot: Snapshot, headers: Mapping[str, str]) -> Arm:
    taken = tier in snapshot.arms or tier in snapshot.experiments
    if tier not in snapshot.tiers or taken:
        header = HEADERS["pin"]
        field = header if headers.get(header) == tier else f"{FIELD}.pin"
        raise RequestError(
            f"{field}: {tier!r} is not the name of a tier; the tiers are: "
            f"{', '.join(snapshot.tiers)}",
            param=field,
        )
    return snapshot.arm(tier, "")


def _unit(request: ChatRequest, kind: str, sent: Mapping[str, str]) -> str:
    """The sticky key of a kind; where a request has none, that of its session."""
    if kind.startswith(HEADER):
        return bounded(sent.get(kind.removeprefix(HEADER), "")) or request.session
    keys = {
        "session": request.session,
        "tenant": request.tenant,
        "user": request.user,
        "request": request.id,
    }
    return keys[kind] or request.session
