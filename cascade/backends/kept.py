"""Tells whether a request went out over a connection that an earlier one had left open.

A server may close such a connection at the moment it is used again. That shows at once, before any
work was done, and is the one failure after which the same request may be sent again unseen.
"""

import asyncio
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.connector import Connection

_AT_ONCE_SECONDS = 0.5  # a round trip: who fails later may have worked, and wants to be paid


class Sending:
    """One request on its way, from when it is made on; the task that sends it makes it."""

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()
        self._kept = False
        _SENDING.set(self)

    def over_a_kept_connection(self) -> None:
        """The request has a connection, and it is not a new one."""
        self._kept = True

    @property
    def was_in_vain(self) -> bool:
        """Whether the failure just now was that of a connection closed while it was idle."""
        return self._kept and asyncio.get_running_loop().time() - self._began < _AT_ONCE_SECONDS


_SENDING: ContextVar[Sending | None] = ContextVar("sending", default=None)


class KeptConnections(aiohttp.TCPConnector):
    """Connections to a server, which tell the request that gets one whether it is a new one.

    aiohttp's hooks for tracing could tell as well, and take half as long as all the rest of sending
    a request.
    """

    def __init__(self, *, keepalive_seconds: float) -> None:
        super().__init__(limit=0, keepalive_timeout=keepalive_seconds)
        self._used = WeakSet[asyncio.BaseProtocol]()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - as aiohttp has it
    ) -> Connection:
        """A connection from before, or a new one."""
        connection = await super().connect(req, traces, timeout)
        if (protocol := connection.protocol) is not None:
            if protocol not in self._used:
                self._used.add(protocol)
            elif (sending := _SENDING.get()) is not None:
                sending.over_a_kept_connection()
        return connection
