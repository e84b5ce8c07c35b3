"""The HTTP surface: OpenAI's chat completions, what can be asked for, and how the service is."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from cascade.errors import UnknownModelError
from cascade.snapshot import Snapshot
from serving import present, schemas
from serving.answering import Shape, json_response
from serving.readiness import readiness
from serving.service import Service
from serving.stream import ChatStream

router = APIRouter()

CHAT_PATH = "/v1/chat/completions"

CHAT = Shape(
    parse=schemas.parse,
    whole=present.completion,
    stream=ChatStream,
    error=lambda fault, _: present.error(fault),
)


@router.get("/v1/models")
async def models(http: Request) -> Response:
    """Everything that a client may put into the model field."""
    snapshot = _snapshot(http)
    data = [_model(name, kind) for name, kind in snapshot.models]
    return json_response({"object": "list", "data": data})


@router.get("/v1/models/{name:path}")
async def model(http: Request, name: str) -> Response:
    """One of them."""
    for known, kind in _snapshot(http).models:
        if known == name:
            return json_response(_model(known, kind))
    raise UnknownModelError(f"there is no model {name!r}", param="model")


@router.get("/healthz")
async def healthz() -> Response:
    """The process lives; no I/O."""
    return json_response({"status": "ok"})


@router.get("/readyz")
async def readyz(http: Request) -> Response:
    """Whether requests can be answered and audited."""
    service: Service = http.app.state.service
    audit = await asyncio.to_thread(service.sink.state)  # it looks into a folder
    now = service.engine.snapshot
    ready = readiness(now.tiers, service.servers.states(), audit, now.drained)
    overridden = {} if service.overrides is None else {"overrides": service.overrides.report()}
    return json_response(ready.report | overridden, 200 if ready.ready else 503)


def _snapshot(http: Request) -> Snapshot:
    service: Service = http.app.state.service
    return service.engine.snapshot


def _model(name: str, kind: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "cascade", "kind": kind}
