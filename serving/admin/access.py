"""Who may use what is for the operator: whoever has the key; without a key, this machine only.

The key is the environment's CASCADE_ADMIN_KEY and comes as a bearer token, or, from a browser that
logged in with it, as a cookie that proves the key without containing it. A browser sends requests
for any page it shows, so a change must come from our own page, and where nothing but the address
tells who asks, the page must have been reached by this machine's own name: a foreign name can be
made to mean it.
"""

import hashlib
import hmac
import os
import secrets
import time
from ipaddress import ip_address
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request

from cascade.errors import CascadeError
from serving.admin.door import Door

KEY: Final = "CASCADE_ADMIN_KEY"
"""The environment variable with the key."""

COOKIE: Final = "cascade_admin"
WHO: Final = "x-cascade-who"
"""The header in which a client says for whom it asks; with one key for all, nobody can check it."""

SESSION_SECONDS: Final = 12 * 3600.0
_MOST_WHO: Final = 100
_FORWARDED: Final = frozenset(
    {
        *("forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip"),
        *("cf-connecting-ip", "true-client-ip", "x-original-forwarded-for"),
    }
)
_FORWARDED_PREFIX: Final = ("x-forwarded-", "x-envoy-")
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_SESSION: Final = b"cascade admin session until "


class AdminKeyError(CascadeError):
    """The admin key is missing or wrong."""

    status = 401
    code: ClassVar[str] = "admin_key_required"


class AdminRefusedError(CascadeError):
    """Only an operator on this machine may ask that, or only our own page."""

    status = 403
    code: ClassVar[str] = "admin_refused"


def admin_key() -> str:
    """The key that the environment states, without the blanks of a file's end; empty for none."""
    return os.environ.get(KEY, "").strip()


def admin(http: Request) -> str:
    """Who asks, for the record: the name that the client gives, or how it was let in.

    Raises:
        AdminKeyError: there is a key, and it was not given.
        AdminRefusedError: there is no key and the client is not on this machine, or the change
            comes from another site's page.
        TooManyKeysError: too many wrong keys came from the address.
    """
    _refuse_other_sites(http)
    key = admin_key()
    if key:
        _require(key, http)
        how = "the admin key"
    else:
        _require_this_machine(http)
        how = "this machine"
    return _named(http) or how


Admin = Annotated[str, Depends(admin)]
"""An endpoint's parameter of this type: who asks. Nobody else gets in."""


def session_for(key: str, until: float | None = None) -> str:
    """The value of the cookie of a browser that gave the key, good until a time.

    Each is another one, so that one can be ended.
    """
    end = f"{time.time() + SESSION_SECONDS if until is None else until:.0f}"
    named = f"{end}-{secrets.token_urlsafe(9)}"
    return f"{named}.{_proof(key, named)}"


def sign_in(http: Request, key: str, given: str) -> str | None:
    """The value of the cookie for who gives the key; None for a wrong one.

    Raises:
        AdminRefusedError: another site's page sent it, in the name of whoever looks at that.
        TooManyKeysError: too many wrong ones came from the address.
    """
    _refuse_other_sites(http)
    door, client = door_of(http), _client(http)
    door.look(client)
    if opens(key, given):
        return session_for(key)
    door.wrong(client, given)
    return None


def sign_out(http: Request) -> None:
    """End the session that a browser is in, so that its cookie is of no use to anybody."""
    cookie, key = http.cookies.get(COOKIE, ""), admin_key()
    if key and _in_session(key, cookie, door_of(http)):
        door_of(http).end(cookie, _end_of(cookie))


def door_of(http: Request) -> Door:
    """What this process knows of who is not let in."""
    door: Door = http.app.state.door
    return door


def opens(key: str, given: str) -> bool:
    """Whether that is the key, in a time that does not tell how much of it is right."""
    return hmac.compare_digest(_digest(given), _digest(key))


def _require(key: str, http: Request) -> None:
    if _in_session(key, http.cookies.get(COOKIE, ""), door_of(http)):
        return
    scheme, _, given = _header(http, "authorization").partition(" ")
    if scheme.lower() == "bearer" and sign_in(http, key, given.strip()):
        return
    raise AdminKeyError(
        f"the admin key is {'wrong' if scheme else 'missing'}: send it as `authorization: Bearer "
        f"KEY`; it is what the environment of the service calls {KEY}",
        param="authorization",
    )


def _in_session(key: str, cookie: str, door: Door) -> bool:
    named, _, proof = cookie.partition(".")
    if not hmac.compare_digest(_digest(proof), _digest(_proof(key, named))):
        return False
    return _end_of(cookie) > time.time() and not door.ended(cookie)


def _end_of(cookie: str) -> float:
    named = cookie.partition(".")[0]
    return float(named.partition("-")[0])  # we wrote it, so it is a number


def _require_this_machine(http: Request) -> None:
    named = http.headers.keys()
    forwarded = [n for n in named if n in _FORWARDED or n.startswith(_FORWARDED_PREFIX)]
    client = _client(http)
    if forwarded or not _loopback(client):
        seen = f"the header {forwarded[0]}" if forwarded else f"the address {client or 'unknown'}"
        raise AdminRefusedError(
            f"without {KEY} in the environment of the service only this machine itself may ask, "
            f"and {seen} says that it is another one"
        )
    host = _hostname(f"//{http.headers.get('host', '')}")
    if not _loopback(host):
        raise AdminRefusedError(
            f"without {KEY} in the environment of the service it must be asked as localhost or "
            f"127.0.0.1, not as {host!r}"
        )


def _refuse_other_sites(http: Request) -> None:
    """A page of another site can make a browser send a change, cookie and all."""
    origin = http.headers.get("origin")
    if http.method in _SAFE or origin is None:
        return
    host = http.headers.get("host", "")
    if _netloc(origin) != host.lower():
        raise AdminRefusedError(
            "origin: a change must come from the service's own page, and this one comes from "
            f"{origin} while the service was asked as {host} (a proxy must pass the host on)"
        )


def _client(http: Request) -> str:
    return http.client.host if http.client else ""


def _named(http: Request) -> str:
    name = "".join(c for c in _header(http, WHO) if c.isprintable())
    return name.strip()[:_MOST_WHO]


def _header(http: Request, name: str) -> str:
    """A header's text, which is UTF-8 unless it cannot be."""
    sent = http.headers.get(name, "")
    try:
        return sent.encode("latin-1").decode()
    except UnicodeDecodeError:
        return sent


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _proof(key: str, named: str) -> str:
    return hmac.new(key.encode(), _SESSION + named.encode(), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
