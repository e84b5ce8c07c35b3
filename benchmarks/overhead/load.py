"""A closed-loop client on bare asyncio: so many connections, each asking again once answered.

    python -m benchmarks.overhead.load URL MODEL CONNECTIONS SECONDS whole|streamed

Prints one JSON object: requests after the warm-up and all that were sent, errors, requests a
second, p50 and p99 in milliseconds.
"""

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

import orjson
import uvloop

MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant. " * 8},
    {"role": "user", "content": "What is six times seven? Answer with one short sentence."},
]
WARM_UP_SHARE = 0.2


def request(url: str, model: str, *, stream: bool) -> bytes:
    """The bytes of one request."""
    where = urlsplit(url)
    body = orjson.dumps({"model": model, "messages": MESSAGES, "stream": stream, "max_tokens": 64})
    head = (
        f"POST {where.path}/chat/completions HTTP/1.1\r\nhost: {where.netloc}\r\n"
        f"authorization: Bearer sk-bench\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> bool:
    """Send one request and read its whole answer; whether it was a 200."""
    writer.write(data)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    start = head.find(b"content-length:")
    if start >= 0:
        await reader.readexactly(int(head[start + 15 :].split(b"\r\n", 1)[0]))
    else:
        await _chunked(reader)
    return head.startswith(b"http/1.1 200")


async def _chunked(reader: asyncio.StreamReader) -> None:
    while size := int(await reader.readline(), 16):
        await reader.readexactly(size + 2)
    await reader.readline()


async def connection(url: str, data: bytes, until: float, times: list[tuple[float, float]]) -> int:
    """Ask again and again; returns the number of answers that were no 200."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=1 << 22)
    errors = 0
    while (began := time.perf_counter()) < until:
        errors += not await ask(reader, writer, data)
        times.append((began, time.perf_counter() - began))
    writer.close()
    return errors


async def measure(
    url: str, model: str, connections: int, seconds: float, *, stream: bool
) -> dict[str, float]:
    """Load the service and sum up; the first fifth of the time is warm-up and left out."""
    data = request(url, model, stream=stream)
    times: list[tuple[float, float]] = []
    began = time.perf_counter()
    warm = began + seconds * WARM_UP_SHARE
    errors = await asyncio.gather(
        *(connection(url, data, began + seconds, times) for _ in range(connections))
    )
    ended = time.perf_counter()
    counted = sorted(took for at, took in times if at >= warm)
    return {
        "requests": len(counted),
        "sent": len(times),
        "errors": sum(errors),
        "per_second": len(counted) / (ended - warm),
        "p50_ms": counted[len(counted) // 2] * 1e3,
        "p99_ms": counted[int(len(counted) * 0.99)] * 1e3,
    }


if __name__ == "__main__":
    url_, model_, connections_, seconds_, how = sys.argv[1:]
    found = uvloop.run(
        measure(url_, model_, int(connections_), float(seconds_), stream=how == "streamed")
    )
    print(json.dumps(found))  # noqa: T201  # its output is what it is for
