"""POST /v1/feedback: what somebody thinks of an answer, kept beside the request."""

import time
from typing import Annotated, Literal

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

_AHEAD_SECONDS = 300.0
"""How far a client's clock may be ahead."""

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
    compared_to: Id | None = None
    preferred: Literal["this", "other", "same"] | None = None
    source: Annotated[str, Field(max_length=200)] = ""
    comment: Long | None = None
    given_at: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


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
    if (said.score, said.label, said.correction, said.preferred) == (None,) * 4:
        raise RequestError(
            "score: give at least one of score, label, correction and preferred", param="score"
        )
    return Feedback(
        request_id=_bare(said.request_id),
        tenant=tenant,
        source=said.source,
        given_at=_given_at(said, time.time()),
        score=said.score,
        label=said.label,
        correction=said.correction,
        comment=said.comment,
        compared_to=_compared(said),
        preferred=said.preferred,
    )


def _compared(said: FeedbackBody) -> str | None:
    """The other request of a comparison; None when there is none."""
    if said.compared_to is None and said.preferred is None:
        return None
    if said.compared_to is None:
        raise RequestError(
            "compared_to: the request whose answer this one was laid beside is missing",
            param="compared_to",
        )
    if said.preferred is None:
        raise RequestError(
            'preferred: say which answer is better: "this", "other" or "same"', param="preferred"
        )
    other = _bare(said.compared_to)
    if other == _bare(said.request_id):
        raise RequestError(
            "compared_to: an answer cannot be laid beside itself", param="compared_to"
        )
    return other


def _given_at(said: FeedbackBody, now: float) -> float:
    """When it was said: now, if the client does not say that it was earlier."""
    if said.given_at is None:
        return now
    if said.given_at > now + _AHEAD_SECONDS:
        raise RequestError(
            "given_at: seconds since the epoch, and not in the future", param="given_at"
        )
    return min(said.given_at, now)


async def _known(audit: AuditLog, given: Feedback) -> bool:
    """Whether its requests are there; False when they may be but cannot be found yet."""
    named = [("request_id", given.request_id), ("compared_to", given.compared_to)]
    try:
        owners = [(field, each, await audit.owner(each)) for field, each in named if each]
    except AuditError:
        return False
    for field, each, owner in owners:
        if owner != given.tenant:
            raise UnknownRequestError(
                f"{field}: tenant {given.tenant!r} has no request {each!r}", param=field
            )
    return True


def _bare(identity: str) -> str:
    for prefix in _ANSWER_PREFIXES:
        if identity.startswith(prefix):
            return identity.removeprefix(prefix)
    return identity
