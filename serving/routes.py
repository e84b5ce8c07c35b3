"""The HTTP surface. A chat request's way: parse, find the arm, run the engine, answer."""

import asyncio
from dataclasses import replace
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from starlette.requests import ClientDisconnect

from cascade.errors import RequestTooLargeError, UnknownModelError
from cascade.experiments import Arm
from cascade.snapshot import Snapshot
from cascade.types import ChatRequest
from serving import present, schemas, stream
from serving.readiness import readiness
from serving.service import Service

router = APIRouter()

CLIENT_LEFT = 499


@router.post("/v1/chat/completions")
async def chat(http: Request) -> Response:
    """Answer a chat request with the cheapest tier whose answer is good enough."""
    service: Service = http.app.state.service
    try:
        body = await _body(http, service.max_body_bytes)
    except ClientDisconnect:
        return Response(status_code=CLIENT_LEFT)
    call = schemas.parse(body, http.headers, http.state.request_id)
    engine = service.engine
    call, arm = _assigned(call, engine.snapshot)
    early = present.early_headers(call.request, arm)
    if call.stream:
        return stream.ChatStream(engine.events(call.request, arm), call, early)
    result = await stream.unless_gone(http.receive, engine.run(call.request, arm))
    if result is None:
        return Response(status_code=CLIENT_LEFT)
    headers = early | present.late_headers(result)
    if result.completion is not None:
        return _json(present.completion(result, result.completion), 200, headers)
    fault = result.error or present.bug(AssertionError())
    return _json(present.error(fault), fault.status, headers)


@router.get("/v1/models")
async def models(http: Request) -> Response:
    """Everything that a client may put into the model field."""
    snapshot = _snapshot(http)
    data = [_model(name, kind) for name, kind in snapshot.models]
    return _json({"object": "list", "data": data})


@router.get("/v1/models/{name:path}")
async def model(http: Request, name: str) -> Response:
    """One of them."""
    for known, kind in _snapshot(http).models:
        if known == name:
            return _json(_model(known, kind))
    raise UnknownModelError(f"there is no model {name!r}", param="model")


@router.get("/healthz")
async def healthz() -> Response:
    """The process lives; no I/O."""
    return _json({"status": "ok"})


@router.get("/readyz")
async def readyz(http: Request) -> Response:
    """Whether requests can be answered and audited."""
    service: Service = http.app.state.service
    audit = await asyncio.to_thread(service.sink.state)  # it looks into a folder
    ready = readiness(service.servers.states(), audit)
    return _json(ready.report, 200 if ready.ready else 503)


def _assigned(call: schemas.Call, snapshot: Snapshot) -> tuple[schemas.Call, Arm]:
    """The call with its sticky unit, and the arm that the unit is in."""
    request = call.request
    experiment = snapshot.experiments.get(request.model)
    unit = _unit(request, experiment.unit) if experiment else ""
    arm = snapshot.arm(request.model, unit)
    return replace(call, request=replace(request, unit=unit)), arm


def _unit(request: ChatRequest, kind: str) -> str:
    return {"session": request.session, "tenant": request.tenant, "request": request.id}[kind]


async def _body(http: Request, limit: int) -> bytes:
    pieces, size = [], 0
    async for piece in http.stream():
        size += len(piece)
        if size > limit:
            raise RequestTooLargeError(f"the body is larger than {limit} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _snapshot(http: Request) -> Snapshot:
    service: Service = http.app.state.service
    return service.engine.snapshot


def _model(name: str, kind: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "cascade", "kind": kind}


def _json(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(
        orjson.dumps(data),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )
