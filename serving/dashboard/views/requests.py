"""Requests of the log: all that match, and one in full."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Final
from urllib.parse import urlencode

from starlette.responses import Response

from cascade.audit import AuditRecord
from cascade.errors import RequestError
from cascade.types import Kind
from serving.dashboard.forms import storable
from serving.dashboard.misses import read
from serving.dashboard.visit import Visit
from serving.dashboard.waterfall import waterfall
from serving.doctor.losses import TierFacts
from serving.store.queries import Filters, Position, feedback_on, show, tail

PER_PAGE: Final = 50
STATUSES: Final = ("ok", "degraded", "cancelled", "error")
_FIELDS: Final = ("status", "policy", "experiment", "arm", "tier", "tenant", "session")
SEARCHED: Final = "id"
PREFIX: Final = "chatcmpl-"
"""What clients see before an id."""


class NoRequestError(RequestError):
    """No request of the log is the one that is asked for."""

    status = 404
    code = "no_such_request"


def listed(visit: Visit) -> Response:
    """The latest requests that match, a page at a time."""
    chosen = {name: visit.query(name) for name in _FIELDS}
    prefix = visit.query(SEARCHED).removeprefix(PREFIX)
    found = _found(visit, chosen, prefix)
    shown = list(reversed(found))[:PER_PAGE]
    asked = {name: value for name, value in {**chosen, SEARCHED: prefix}.items() if value}
    snapshot = visit.page.service.engine.snapshot
    return visit.show(
        "requests.html",
        current="requests",
        records=shown,
        ways={record.id: _way(record) for record in shown},
        chosen={**chosen, SEARCHED: prefix},
        filtered=bool(asked),
        paged=bool(visit.query("before")),
        first=urlencode(asked),
        older=_older(shown[-1], asked) if len(found) > PER_PAGE else None,
        statuses=STATUSES,
        policies=list(snapshot.arms),
        experiments=list(snapshot.experiments),
        tiers=list(snapshot.tiers),
    )


def opened(visit: Visit) -> Response:
    """One request: its attempts along a line, why each was made, and what its prompt lost.

    Raises:
        NoRequestError: there is none whose id begins like that, or several.
    """
    page = visit.page
    try:
        record = show(page.database, storable(visit.http.path_params["id"]).removeprefix(PREFIX))
    except RequestError as error:
        raise NoRequestError(error.message) from None
    tiers = page.service.engine.snapshot.tiers
    facts = {name: TierFacts(cache=tier.cache, prices=tier.prices) for name, tier in tiers.items()}
    return visit.show(
        "request.html",
        current="requests",
        record=record,
        fall=waterfall(record),
        reading=read(page.database, record, facts),
        said=feedback_on(page.database, [record]).get(record.id, []),
        raw=asdict(record),
    )


def _found(visit: Visit, chosen: Mapping[str, str], searched: str) -> list[AuditRecord]:
    """A page of requests and one more, if there is: by the beginning of an id, else by session."""
    filters = Filters(**{name: value or None for name, value in chosen.items()})
    before = _position(visit.query("before"))

    def page(wanted: Filters) -> list[AuditRecord]:
        return tail(visit.page.database, PER_PAGE + 1, before=before, filters=wanted)

    found = page(replace(filters, id_prefix=searched or None))
    if found or not searched or filters.session:
        return found
    return page(replace(filters, session=searched))


def _way(record: AuditRecord) -> list[str]:
    """The tiers that were asked for the answer, in order."""
    return [each.tier for each in record.attempts if each.kind == Kind.ANSWER.value]


def _older(last: AuditRecord, asked: Mapping[str, str]) -> str:
    return urlencode({**asked, "before": f"{last.created_at!r},{last.id}"})


def _position(text: str) -> Position | None:
    """From an address; None where it cannot be read, which is the first page."""
    seconds, _, identity = text.partition(",")
    try:
        return (float(seconds), identity) if identity else None
    except ValueError:
        return None
