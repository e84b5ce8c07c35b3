"""Tells whether a request went out over a connection that an earlier one had left open.

A server may close such a connection at the moment it is used again. That shows at once, before any
work was done, and is the one failure after which the same request may be sent again unseen.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import aiohttp

_AT_ONCE_SECONDS = 0.5  # a round trip: who fails later may have worked, and wants to be paid


class Sending:
    """One request on its way; aiohttp is given it as `trace_request_ctx`."""

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()
        self._kept = False

    def over_a_kept_connection(self) -> None:
        """The request has a connection, and it is not a new one."""
        self._kept = True

    @property
    def was_in_vain(self) -> bool:
        """Whether the failure just now was that of a connection closed while it was idle."""
        return self._kept and asyncio.get_running_loop().time() - self._began < _AT_ONCE_SECONDS


def tracing() -> aiohttp.TraceConfig:
    """What a session needs so that its requests' `Sending` is told."""
    config = aiohttp.TraceConfig()
    config.on_connection_reuseconn.append(_reused)
    return config


async def _reused(_session: aiohttp.ClientSession, context: SimpleNamespace, _: Any) -> None:
    sending = context.trace_request_ctx
    if sending is not None:
        sending.over_a_kept_connection()
