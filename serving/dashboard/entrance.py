"""Lets visitors in: the sign-in form, the forms' marks, and what a visitor prefers.

Views run in threads, as they ask a database; only those that look at the running service are
coroutines, as its state belongs to the event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Final, cast
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from serving.admin import access
from serving.admin.access import COOKIE, SESSION_SECONDS, AdminKeyError, admin_key
from serving.dashboard.forms import storable
from serving.dashboard.language import LANGUAGES, Texts, wanted
from serving.dashboard.page import ROOT, Page
from serving.dashboard.sessions import LONGEST_NAME, WHO_COOKIE, name_cookie, session_of
from serving.dashboard.visit import THEMES, Visit, keep, render
from serving.store.database import faults_of

View = Callable[[Visit], Response] | Callable[[Visit], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]

LANGUAGE: Final = "cascade_language"
THEME: Final = "cascade_theme"
PREFERENCE_SECONDS: Final = 365 * 24 * 3600
WRONG_KEY_SECONDS: Final = 0.5
"""How long a wrong key waits for its answer."""
MOST_FORM_BYTES: Final = 64 * 1024


def guarded(page: Page, view: View) -> Endpoint:
    """The view, for those who are let in; a form only when it is this page's own."""

    async def endpoint(http: Request) -> Response:
        try:
            session = session_of(http)
        except AdminKeyError:
            if http.method == "GET":
                return RedirectResponse(f"{ROOT}/login?to={quote(here(http))}", status_code=303)
            raise
        form = await _form(http) if http.method == "POST" else {}
        if http.method == "POST" and not session.meant(form.get("csrf", "")):
            raise HTTPException(403, "csrf")
        visit = Visit(
            http=http,
            page=page,
            session=session,
            texts=texts_of(http),
            theme=theme_of(http),
            form=form,
        )
        with faults_of(page.sources.url):
            if iscoroutinefunction(view):
                answer: Response = await view(visit)
            else:
                answer = cast("Response", await run_in_threadpool(view, visit))
            return answer

    return endpoint


def sign_in(page: Page) -> Endpoint:
    """The form that takes the admin key and a name for the log of changes."""

    async def endpoint(http: Request) -> Response:
        key, to = admin_key(), _own(http.query_params.get("to", ""))
        if not key:
            return RedirectResponse(to, status_code=303)
        if http.method == "POST":
            form = await _form(http)
            if cookie := access.sign_in(http, key, form.get("key", "").strip()):
                return _let_in(http, cookie, form.get("who", ""), to)
            await asyncio.sleep(WRONG_KEY_SECONDS)
        wrong = http.method == "POST"
        return render(
            "login.html",
            403 if wrong else 200,
            http=http,
            page=page,
            texts=texts_of(http),
            theme=theme_of(http),
            session=None,
            content={"wrong": wrong, "to": to, "longest": LONGEST_NAME},
        )

    return endpoint


def sign_out(page: Page) -> Endpoint:
    """Ends the session, here and in the browser."""

    async def leave(visit: Visit) -> Response:
        access.sign_out(visit.http)
        response = visit.go("/login")
        response.delete_cookie(COOKIE, path=ROOT, httponly=True, samesite="strict")
        return response

    return guarded(page, leave)


async def prefer(http: Request) -> Response:
    """Keeps a language or a theme, and goes back to where it was chosen."""
    response = RedirectResponse(_own(http.query_params.get("to", "")), status_code=303)
    for cookie, name, known in ((LANGUAGE, "language", LANGUAGES), (THEME, "theme", THEMES)):
        value = http.query_params.get(name, "")
        if value in known:
            keep(response, http, cookie, value, PREFERENCE_SECONDS)
    return response


def texts_of(http: Request) -> Texts:
    """The texts in the visitor's language."""
    accepted = http.headers.get("accept-language", "")
    return Texts(wanted(http.cookies.get(LANGUAGE), accepted))


def theme_of(http: Request) -> str:
    """The theme that the visitor chose, or the browser's own."""
    chosen = http.cookies.get(THEME, "")
    return chosen if chosen in THEMES else THEMES[0]


def here(http: Request) -> str:
    """Path and query of what was asked for."""
    return http.url.path + (f"?{http.url.query}" if http.url.query else "")


def _let_in(http: Request, cookie: str, who: str, to: str) -> Response:
    response = RedirectResponse(to, status_code=303)
    keep(response, http, COOKIE, cookie, int(SESSION_SECONDS))
    keep(response, http, WHO_COOKIE, name_cookie(who), PREFERENCE_SECONDS)
    return response


async def _form(http: Request) -> dict[str, str]:
    """The fields of a form, the first value of each.

    Raises:
        HTTPException: it is too large, or another site sent it.
    """
    if http.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise HTTPException(403, "csrf")
    body = b""
    async for piece in http.stream():
        body += piece
        if len(body) > MOST_FORM_BYTES:
            raise HTTPException(413, "form")
    fields = parse_qsl(body.decode(errors="replace"), keep_blank_values=True)
    return {name: storable(value) for name, value in reversed(fields)}


def _own(path: str) -> str:
    """A path of this page to go to; the page itself for anything else."""
    own = path == ROOT or path.startswith((f"{ROOT}/", f"{ROOT}?"))
    return path if own and "\\" not in path and "//" not in path else f"{ROOT}/"
