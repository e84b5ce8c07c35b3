"""Reads the data of server-sent events from a stream of bytes, however it is cut into pieces."""

from collections.abc import Iterator


class EventLines:
    """Turns pieces of a stream into the data of its events; comments and other fields are skipped.

    OpenAI-style servers put each event's data on one line, so a line is an event.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of the events that this piece completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
