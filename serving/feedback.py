"""POST /v1/feedback: what somebody thinks of an answer, kept beside the request."""

import time
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import ClientDisconnect

from cascade.errors import AuditError, RequestError
from serving.answering import CLIENT_LEFT, json_response
from serving.incoming import body_of, header_texts
from serving.schemas import read, tenant_of, validated
from serving.service import AuditLog, Service
from serving.store.feedback import Feedback

router = APIRouter()

PATH = "/v1/feedback"
_ANSWER_PREFIXES = ("chatcmpl-", "msg_", "resp_")
"""What the APIs put in front of a request's id to make their answer's."""

_STORED, _ACCEPTED = 200, 202

Id = Annotated[str, Field(max_length=200, pattern=r"^[!-~]+$")]
Short = Annotated[str, Field(min_length=1, max_length=200)]
Long = Annotated[str, Field(max_length=1_000_000)]


class UnknownRequestError(RequestError):
    """The tenant has no such request."""

    status = 404
    code = "request_not_found"


class FeedbackBody(BaseModel):
    """The body; unlike a chat request's it is all ours, so an unknown field is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True)

    request_id: Id
    score: Annotated[float, Field(ge=0, le=1)] | None = None
    label: Short | None = None
    correction: Long | None = None
    source: Annotated[str, Field(max_length=200)] = ""
    comment: Long | None = None


@router.post(PATH)
async def feedback(http: Request) -> Response:
    """Keep what somebody says of an answer; the last word of each source counts."""
    service: Service = http.app.state.service
    headers = header_texts(http)
    try:
        body = await body_of(http, headers, service.max_body_bytes)
    except ClientDisconnect:
        return Response(status_code=CLIENT_LEFT)
    given = _read(body, tenant_of(headers))
    known = await _known(service.sink, given)
    stored = await service.sink.keep(given) and known
    answer = {"object": "feedback", "request_id": given.request_id, "stored": stored}
    return json_response(answer, _STORED if stored else _ACCEPTED)


def _read(body: bytes, tenant: str) -> Feedback:
    said = validated(FeedbackBody, read(body))
    if (said.score, said.label, said.correction) == (None, None, None):
        raise RequestError("score: give at least one of score, label and correction", param="score")
    return Feedback(
        request_id=_bare(said.request_id),
        tenant=tenant,
        source=said.source,
        given_at=time.time(),
        score=said.score,
        label=said.label,
        correction=said.correction,
        comment=said.comment,
    )


async def _known(audit: AuditLog, given: Feedback) -> bool:
    """Whether the request is there; False when it may be there but cannot be found yet."""
    try:
        owner = await audit.owner(given.request_id)
    except AuditError:
        return False
    if owner != given.tenant:
        raise UnknownRequestError(
            f"request_id: tenant {given.tenant!r} has no request {given.request_id!r}",
            param="request_id",
        )
    return True


def _bare(identity: str) -> str:
    for prefix in _ANSWER_PREFIXES:
        if identity.startswith(prefix):
            return identity.removeprefix(prefix)
    return identity
