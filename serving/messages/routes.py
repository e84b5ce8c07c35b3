"""POST /v1/messages: how clients of Anthropic's API, coding agents among them, connect.

Keys and version headers are accepted and not looked at.
"""

from fastapi import APIRouter, Request, Response

from serving.answering import Shape, answer
from serving.messages import request, response
from serving.messages.stream import MessageStream

PATH = "/v1/messages"

router = APIRouter()

MESSAGES = Shape(
    parse=request.parse,
    whole=response.message,
    stream=MessageStream,
    error=response.error,
)


@router.post(PATH)
async def messages(http: Request) -> Response:
    """Answer a message with the cheapest tier whose answer is good enough."""
    return await answer(http, MESSAGES)
