"""POST /v1/responses: how clients of OpenAI's newer API connect.

Nothing is stored, so what would refer to a stored response is not there, and says so.
"""

from fastapi import APIRouter, HTTPException, Response

from serving.answering import Shape
from serving.responses import request, response
from serving.responses.stream import ResponseStream

PATH = "/v1/responses"
_NOT_FOUND = 404

router = APIRouter()

RESPONSES = Shape(
    parse=request.parse,
    whole=response.whole,
    stream=ResponseStream,
    error=response.error,
)


@router.api_route(PATH + "/{rest:path}", methods=["GET", "POST", "DELETE"])
async def stored(rest: str) -> Response:
    """What this API offers for stored responses."""
    del rest
    raise HTTPException(
        _NOT_FOUND, "responses are not stored here, so none can be looked up, cancelled or counted"
    )
