"""Whose clicks are meant: what ties a form to the browser that it was rendered for.

A browser keeps a random cookie that no script and no other site can read, and each form brings a
hash of it. Nothing is stored, so every worker takes every form.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from starlette.requests import Request

from serving.admin.access import admin

FORM_COOKIE: Final = "cascade_form"
WHO_COOKIE: Final = "cascade_who"
LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A browser that is let in.

    Attributes:
        who: whom the log of changes names.
        cookie: what the browser keeps.
        csrf: what a form must bring along to be this browser's own.
    """

    who: str
    cookie: str
    csrf: str

    def meant(self, mark: str) -> bool:
        """Whether a form with that mark is this browser's own."""
        return hmac.compare_digest(mark.encode(), self.csrf.encode())


def session_of(http: Request) -> Session:
    """The session of whoever asks.

    Raises:
        AdminKeyError: there is an admin key, and they did not give it.
        AdminRefusedError: they are not to ask from where they are.
    """
    who = admin(http)
    cookie = http.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(24)
    csrf = hashlib.sha256(f"cascade form\x1f{cookie}".encode()).hexdigest()
    named = _tidy(unquote(http.cookies.get(WHO_COOKIE, "")))
    return Session(who=named or who, cookie=cookie, csrf=csrf)


def name_cookie(name: str) -> str:
    """What the browser keeps of a name that somebody gave; empty for none."""
    return quote(_tidy(name))


def _tidy(name: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in name)
    return " ".join(printable.split())[:LONGEST_NAME]
