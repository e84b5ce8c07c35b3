"""One request for a page: who asks, in which language, and how an answer to it is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cascade.errors import RequestError
from serving.admin.access import admin_key
from serving.dashboard import formats
from serving.dashboard.forms import MOST_MINUTES, storable
from serving.dashboard.language import LANGUAGES, Texts
from serving.dashboard.page import ROOT, Page
from serving.dashboard.sessions import FORM_COOKIE, Session
from serving.overrides.watcher import Watcher

THEMES: Final = ("auto", "light", "dark")
VIEWS: Final = ("overview", "requests", "judges", "experiments", "fleet", "playground")

_FILTERS: Final = (
    *("money", "pico_money", "count", "short", "share", "score", "milliseconds"),
    *("instant", "clock", "usd", "coded"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Somebody who is let in and asks for a page.

    Attributes:
        form: the fields of a POST, the first value of each.
    """

    http: Request
    page: Page
    session: Session
    texts: Texts
    theme: str
    form: Mapping[str, str]

    def query(self, name: str) -> str:
        """A query parameter as the log would have it; empty without one."""
        return storable(self.http.query_params.get(name, "")).strip()

    @property
    def watcher(self) -> Watcher:
        """What makes changes while the service runs, and follows them.

        Raises:
            RequestError: nothing does in this service.
        """
        watcher = self.page.service.overrides
        if watcher is None:
            raise RequestError("this service follows no overrides")
        return watcher

    def show(self, template: str, status: int = 200, /, **content: Any) -> Response:
        """A page made of a template."""
        return render(
            template,
            status,
            http=self.http,
            page=self.page,
            texts=self.texts,
            theme=self.theme,
            session=self.session,
            content=content,
        )

    def go(self, path: str) -> Response:
        """To another page, after a form."""
        return RedirectResponse(ROOT + path, status_code=303)


def render(
    template: str,
    status: int = 200,
    *,
    http: Request,
    page: Page,
    texts: Texts,
    theme: str,
    session: Session | None,
    content: Mapping[str, Any],
) -> Response:
    """A page, for anybody."""
    values = {
        "t": texts,
        "root": ROOT,
        "asset": page.assets.address,
        "views": VIEWS,
        "languages": LANGUAGES,
        "themes": THEMES,
        "theme": theme,
        "session": session,
        "keyed": bool(admin_key()),
        "current": "",
        "most_minutes": MOST_MINUTES,
        "base_url": str(http.base_url).removesuffix("/").removesuffix(ROOT),
        "here": http.url.path + (f"?{http.url.query}" if http.url.query else ""),
        **content,
    }
    response = HTMLResponse(_environment().get_template(template).render(values), status)
    if session is not None and http.cookies.get(FORM_COOKIE) != session.cookie:
        keep(response, http, FORM_COOKIE, session.cookie)
    return response


def keep(
    response: Response, http: Request, name: str, value: str, seconds: int | None = None
) -> None:
    """Let the browser keep something: for this page alone, out of reach of scripts.

    Args:
        response: that tells the browser.
        http: what it answers.
        name: of the cookie.
        value: plain ASCII.
        seconds: for how long; None until the browser is closed.
    """
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=ROOT,
        secure=_encrypted(http),
        httponly=True,
        samesite="strict",
    )


def _encrypted(http: Request) -> bool:
    """Whether the browser came by https, to us or to a proxy that says so.

    Who lies about it only has their own cookies kept more strictly.
    """
    return "https" in {http.url.scheme, http.headers.get("x-forwarded-proto", "").lower()}


def compiled() -> None:
    """Compile every template before one is asked for."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("serving.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {name: getattr(formats, name) for name in _FILTERS}
    return made
