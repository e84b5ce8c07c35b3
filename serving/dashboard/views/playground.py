"""A prompt through any policy: asked as any client asks, with how the answer came about."""

from typing import Final

from starlette.responses import JSONResponse, Response

from serving.dashboard.visit import Visit

MOST_SENTENCES: Final = 50


def told(visit: Visit) -> Response:
    """The log's sentences that are given, in the visitor's language, as plain text."""
    said = visit.http.query_params.getlist("said")[:MOST_SENTENCES]
    return JSONResponse([visit.texts.logged(each).striptags() for each in said])


def playground(visit: Visit) -> Response:
    """The form; the browser itself asks the service's own API."""
    snapshot = visit.page.service.engine.snapshot
    models: dict[str, list[str]] = {}
    for name, kind in snapshot.models:
        models.setdefault(kind, []).append(name)
    asked = visit.query("model")
    known = [name for name, _ in snapshot.models]
    return visit.show(
        "playground.html",
        current="playground",
        models=models,
        chosen=asked if asked in known else known[0],
    )
