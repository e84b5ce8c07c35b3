"""POST /v1/messages: how clients of Anthropic's API, coding agents among them, connect.

Keys and version headers are accepted and not looked at.
"""

from serving.answering import Shape
from serving.messages import request, response
from serving.messages.stream import MessageStream

PATH = "/v1/messages"

MESSAGES = Shape(
    parse=request.parse,
    whole=response.message,
    stream=MessageStream,
    error=response.error,
)
