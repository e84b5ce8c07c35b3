"""A prompt through any policy: asked as any client asks, with how the answer came about."""

from starlette.responses import Response

from serving.dashboard.visit import Visit


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
