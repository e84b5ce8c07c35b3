"""The page as an application of its own: what is where, and what every answer of it carries."""

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
from serving.dashboard.page import ROOT, Page, Sources
from serving.dashboard.sessions import Session, session_of
from serving.dashboard.views import experiments, fleet, judges, overview, playground, requests
from serving.dashboard.visit import compiled, render
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
}
CHANGES: Final[dict[str, View]] = {
    "/experiments/{name:path}": experiments.changed,
    "/fleet": fleet.changed,
}


def mounted(service: Service, sources: Sources) -> ASGIApp:
    """The page's own application, to be mounted at its root."""
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
        status, message = 500, texts("fault.bug")
        if isinstance(error, AdminKeyError):
            status, message = error.status, texts("fault.signed_out")
        elif isinstance(error, CascadeError):
            status, message = error.status, error.message
        elif isinstance(error, HTTPException):
            status, message = error.status_code, texts.named("fault", error.detail)
        return render(
            "fault.html",
            status,
            http=http,
            page=self._page,
            texts=texts,
            theme=theme_of(http),
            session=_session(http),
            content={
                "status": status,
                "message": message,
                "again": http.url.path if http.method == "POST" else "",
                "hint": texts("fault.written") if _of_a_request(http, status) else "",
            },
        )
