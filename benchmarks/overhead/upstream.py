"""A model server that costs nothing: the same answer to every chat request, at once.

    python -m benchmarks.overhead.upstream PORT

Written on bare asyncio, so that what is measured is the service in front of it.
"""

import asyncio
import sys

import orjson

WORDS = ("The ", "answer ", "is ", "forty", "-two", ".")
USAGE = {
    "prompt_tokens": 40,
    "completion_tokens": len(WORDS),
    "total_tokens": 40 + len(WORDS),
    "prompt_tokens_details": {"cached_tokens": 0},
}
HEAD = {"id": "chatcmpl-1", "created": 1, "model": "instant"}


def _whole() -> bytes:
    message = {"role": "assistant", "content": "".join(WORDS)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = orjson.dumps({**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE})
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


def _streamed() -> bytes:
    deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in WORDS), {}]
    events = [
        {
            **HEAD,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}],
        }
        for delta in deltas
    ]
    events.append({**HEAD, "object": "chat.completion.chunk", "choices": [], "usage": USAGE})
    data = [*map(orjson.dumps, events), b"[DONE]"]
    chunks = [b"data: " + one + b"\n\n" for one in data]
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked"
    return f"{head}\r\n\r\n".encode() + body


class Instant(asyncio.Protocol):
    """Answers each request of a kept-alive connection."""

    whole = _whole()
    streamed = _streamed()

    def __init__(self) -> None:
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember whom to answer."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer once a request is whole."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower()
            start = head.find(b"content-length:")
            length = int(head[start + 15 :].split(b"\r\n", 1)[0]) if start >= 0 else 0
            if len(self._data) < end + 4 + length:
                return
            body = self._data[end + 4 : end + 4 + length]
            self._data = self._data[end + 4 + length :]
            wants_stream = b'"stream":true' in body.replace(b" ", b"")
            if self._transport is not None:
                self._transport.write(self.streamed if wants_stream else self.whole)


async def serve(port: int) -> None:
    """Serve until cancelled."""
    server = await asyncio.get_running_loop().create_server(Instant, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
