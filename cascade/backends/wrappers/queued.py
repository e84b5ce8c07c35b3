"""Says of a call how long it waited for its turn: the part of its time that no model had."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from cascade.errors import BackendError
from cascade.types import Chunk


async def queued(stream: AsyncGenerator[Chunk], seconds: float) -> AsyncGenerator[Chunk]:
    """A call's chunks, with a wait added to those that it says or fails with.

    Args:
        stream: the call, which begins once it is its turn.
        seconds: how long it waited for that.

    Raises:
        BackendError: the call's own.
    """
    try:
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                yield _noting(chunk, seconds)
    except BackendError as error:
        error.queued_seconds = (error.queued_seconds or 0.0) + seconds
        raise


def _noting(chunk: Chunk, seconds: float) -> Chunk:
    answer = chunk.completion
    if answer is None:
        return chunk
    waited = replace(answer, queued_seconds=answer.queued_seconds + seconds)
    return replace(chunk, completion=waited)
