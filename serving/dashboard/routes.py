"""The page as an application of its own: what is where, and what every answer of it carries."""

from dataclasses import dataclass
from http import HTTPStatus
from threading import Thread
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cascade.errors import CascadeError
from serving.admin.access import AdminKeyError
from serving.admin.door import Door
from serving.dashboard.assets import Assets
from serving.dashboard.entrance import (
    View,
    guarded,
    prefer,
    sign_in,
    sign_out,
    texts_of,
    theme_of,
)
from serving.dashboard.language import Texts
from serving.dashboard.page import ROOT, Page, Sources
from serving.dashboard.sessions import Session, session_of
from serving.dashboard.views import experiments, fleet, judges, overview, playground, requests
from serving.dashboard.visit import compiled, render
from serving.present import retry
from serving.service import Service

HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    # The hash is that of nothing: plotly makes an empty style and adds its rules one by one.
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: a form would then come with an origin of null.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}

LOOKS: Final[dict[str, View]] = {
    "/": overview.overview,
    "/requests": requests.listed,
    "/requests/{id}": requests.opened,
    "/judges": judges.judges,
    "/experiments": experiments.listed,
    "/experiments/{name:path}": experiments.opened,
    "/fleet": fleet.fleet,
    "/playground": playground.playground,
    "/told": playground.told,
}
CHANGES: Final[dict[str, View]] = {
    "/experiments/{name:path}": experiments.changed,
    "/fleet": fleet.changed,
}


def mounted(service: Service, sources: Sources, door: Door) -> ASGIApp:
    """The page's own application, to be mounted at its root.

    Args:
        service: that it shows.
        sources: what it is made from.
        door: which the service's other addresses have as well.
    """
    page = Page(service=service, sources=sources, assets=Assets(ROOT))
    Thread(target=_prepare, args=(page,), name="dashboard", daemon=True).start()
    app = Starlette(
        routes=[
            *(Route(path, guarded(page, view), methods=["GET"]) for path, view in LOOKS.items()),
            *(Route(path, guarded(page, view), methods=["POST"]) for path, view in CHANGES.items()),
            Route("/login", sign_in(page), methods=["GET", "POST"]),
            Route("/logout", sign_out(page), methods=["POST"]),
            Route("/prefer", prefer, methods=["GET"]),
            Route("/static/{version}/{name}", page.assets.response, methods=["GET"]),
        ],
        exception_handlers={kind: _Faults(page) for kind in (CascadeError, HTTPException, 500)},
    )
    app.state.door = door
    return Guarding(app)  # around all of it, as a bug is answered outside of any middleware


def _prepare(page: Page) -> None:
    """What the first visitor would wait for otherwise."""
    compiled()
    page.assets.prepare()


class Guarding:
    """ASGI middleware: puts on every answer what a browser is to keep it from."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def guarding(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, guarding)


def _session(http: Request) -> Session | None:
    """Of who may see the page; what went wrong may be that they may not."""
    try:
        return session_of(http)
    except CascadeError:
        return None


def _of_a_request(http: Request, status: int) -> bool:
    """Whether a request of the log was not found, which may still be on its way there."""
    return status == HTTPStatus.NOT_FOUND and "id" in http.path_params


class _Faults:
    """Says as a page what went wrong.

    Args:
        page: whose it is.
    """

    def __init__(self, page: Page) -> None:
        self._page = page

    async def __call__(self, http: Request, error: Exception) -> Response:
        """The page for one error."""
        texts = texts_of(http)
        fault = _told(error, texts)
        written = _of_a_request(http, fault.status)
        response = render(
            "fault.html",
            fault.status,
            http=http,
            page=self._page,
            texts=texts,
            theme=theme_of(http),
            session=_session(http),
            content={
                "fault": fault,
                "post": http.method == "POST",
                "hint": texts("fault.written") if written else "",
            },
        )
        if isinstance(error, CascadeError):
            response.headers.update(retry(error))
        return response


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    """What is said of an error.

    Attributes:
        message: in the visitor's language.
        detail: in the service's own words; may be empty.
        seconds: after which it is worth another try; None when nobody knows.
    """

    status: int
    message: str
    detail: str = ""
    seconds: str | None = None


def _told(error: Exception, texts: Texts) -> _Fault:
    if isinstance(error, AdminKeyError):
        return _Fault(status=error.status, message=texts("fault.signed_out"))
    if isinstance(error, CascadeError):
        return _Fault(
            status=error.status,
            message=texts.named("fault", error.code),
            detail=error.message,
            seconds=retry(error).get("retry-after"),
        )
    if isinstance(error, HTTPException):
        return _Fault(status=error.status_code, message=texts.named("fault", error.detail))
    return _Fault(status=500, message=texts("fault.bug"))
