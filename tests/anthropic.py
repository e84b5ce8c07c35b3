"""The events of a streamed answer in Anthropic's shape."""

from typing import Any

import orjson


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


def message(*texts: str, usage: dict[str, Any], stop: str | None = "end_turn") -> list[bytes]:
    """An answer in these pieces; without a stop reason it breaks off.

    As the real one does, it reports the prompt at the beginning and the answer's tokens at the end.
    """
    start = {"role": "assistant", "model": "claude-1", "content": [], "stop_reason": None}
    output = {"output_tokens": usage.get("output_tokens")}
    events = [
        event("message_start", message={**start, "usage": {**usage, "output_tokens": 1}}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("ping"),
    ]
    events.extend(
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
        for text in texts
    )
    events.append(event("content_block_stop", index=0))
    if stop is not None:
        end = {"stop_reason": stop, "stop_sequence": None}
        events.extend([event("message_delta", delta=end, usage=output), event("message_stop")])
    return events
