"""How long a model is waited for: until its answer begins, then until it ends.

A server that sends comments to keep the line open, or a chunk with nothing but the role, has not
begun to answer.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from cascade.answers import is_answer
from cascade.errors import BackendTimeoutError
from cascade.types import Chunk

_T = TypeVar("_T")


class Patience:
    """How long the next piece of one answer may take.

    Args:
        name: of the model or its server, for the error.
        first: seconds until a piece that carries any of the answer.
        total: seconds until the whole answer.
        whole: the answer comes in one piece, so there is no first one.
    """

    def __init__(self, name: str, *, first: float, total: float, whole: bool = False) -> None:
        now = asyncio.get_running_loop().time()
        self._name = name
        self._first, self._total = first, total
        self._first_at, self._total_at = now + first, now + total
        self.begun = whole

    def saw(self, chunk: Chunk) -> None:
        """A chunk came."""
        if not self.begun:
            self.begun = is_answer(chunk.choices)

    async def wait(self, awaited: Awaitable[_T]) -> _T:
        """What is awaited.

        Raises:
            BackendTimeoutError: it did not come in time.
        """
        at = self._total_at if self.begun else min(self._first_at, self._total_at)
        limit = asyncio.timeout_at(at)
        try:
            async with limit:
                return await awaited
        except TimeoutError:
            if not limit.expired():
                raise
            missing = "no token" if at < self._total_at else "no whole answer"
            seconds = self._first if at < self._total_at else self._total
            raise BackendTimeoutError(f"{self._name} gave {missing} in {seconds:g} s") from None
