"""Who is not let in for now: addresses that gave many wrong keys, and browsers that signed out.

It is what this process knows. Another one counts for itself, and a session that was ended here goes
on there until it ends by itself.
"""

import hashlib
import secrets
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from threading import Lock
from typing import ClassVar, Final, TypeVar

from cascade.errors import CascadeError

V = TypeVar("V")

MOST_WRONG: Final = 10
"""Different wrong keys from one address within WITHIN_SECONDS."""

WITHIN_SECONDS: Final = 60.0
ROOM: Final = 10_000
"""Addresses, and sessions, that are remembered at most."""

_LONGEST_ADDRESS: Final = 45
"""Characters; who stands behind a proxy has the address that this one makes of them."""

_NETWORK: Final = 64
"""Bits of an IPv6 address that tell one subscriber from another."""


class TooManyKeysError(CascadeError):
    """An address has given too many wrong keys."""

    status = 429
    code: ClassVar[str] = "too_many_wrong_keys"


class Door:
    """Remembers wrong keys and sessions that were ended.

    The same wrong key again says nothing new and counts once, so that a program with an old key
    keeps nobody out. Any thread may ask it.

    Args:
        clock: seconds since the epoch.
        room: for so many addresses, and as many sessions; the oldest are forgotten.
    """

    def __init__(self, clock: Callable[[], float] = time.time, room: int = ROOM) -> None:
        self._clock = clock
        self._room = room
        self._salt = secrets.token_bytes(32)
        self._wrong: dict[str, dict[bytes, float]] = {}
        self._ended: dict[str, float] = {}
        self._turn = Lock()

    def look(self, client: str) -> None:
        """Whether a key from an address is looked at.

        Raises:
            TooManyKeysError: not now.
        """
        now, place = self._clock(), _place(client)
        with self._turn:
            given = self._wrong.get(place, {})
            for known in [key for key, at in given.items() if at <= now - WITHIN_SECONDS]:
                del given[known]
            times = sorted(given.values())
        if len(times) >= MOST_WRONG:
            left = times[0] + WITHIN_SECONDS - now
            raise TooManyKeysError(
                f"{MOST_WRONG} wrong admin keys came from {place} within a minute", retry_after=left
            )

    def wrong(self, client: str, key: str) -> None:
        """An address gave a key that is none."""
        now, place = self._clock(), _place(client)
        digest = hashlib.blake2b(key.encode(errors="surrogatepass"), key=self._salt).digest()
        with self._turn:
            given = self._wrong.pop(place, {})
            given.setdefault(digest, now)
            self._wrong[place] = given
            _forget(self._wrong, self._room)

    def end(self, session: str, until: float) -> None:
        """A session that would have gone on until then is over."""
        now = self._clock()
        with self._turn:
            for over in [each for each, end in self._ended.items() if end <= now]:
                del self._ended[over]
            self._ended[session] = until
            _forget(self._ended, self._room)

    def ended(self, session: str) -> bool:
        """Whether somebody has ended it."""
        return session in self._ended


def _forget(known: dict[str, V], room: int) -> None:
    while len(known) > room:
        del known[next(iter(known))]


def _place(client: str) -> str:
    """An address as far as it tells one client from another."""
    try:
        address = ip_address(client)
    except ValueError:
        return client[:_LONGEST_ADDRESS]
    if not isinstance(address, IPv6Address):
        return client
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    shift = 128 - _NETWORK
    return f"{IPv6Address(int(address) >> shift << shift)}/{_NETWORK}"
