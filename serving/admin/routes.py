"""/admin: experiments, the pin and the drains, seen and changed while the service runs.

A change says why, and may say on which version of its subject it was made: as `expected_version` in
the body, or as the ETag of what was looked at in `if-match`. It is in force in this worker when the
answer comes, and in the others within two seconds.
"""

import time
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final

from fastapi import APIRouter, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from cascade.errors import CascadeError, RequestError
from serving.admin.access import Admin
from serving.answering import json_response
from serving.incoming import body_of
from serving.overrides import store
from serving.overrides.apply import ground_of
from serving.overrides.changes import Changes, Note
from serving.overrides.views import experiments_json, override_json, overrides_json, shapes_of
from serving.overrides.watcher import Watcher
from serving.schemas import read, validated
from serving.service import Service

router = APIRouter(prefix="/admin")

_MOST_BYTES: Final = 100_000
_MOST_ROWS: Final = 1000
_MOST_DIGITS: Final = 18

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=store.LONGEST_SECONDS, allow_inf_nan=False)]


class UnknownExperimentError(RequestError):
    """There is no experiment of that name."""

    status = 404
    code = "experiment_not_found"


class NoOverridesError(CascadeError):
    """This service has no database to keep overrides in."""

    status = 503
    code: ClassVar[str] = "no_overrides"


class Said(BaseModel):
    """What every change says.

    Attributes:
        why: for the record.
        until: when it ends by itself; never without one.
        for_seconds: the same, counted from now.
        expected_version: of the subject, as it was looked at; 0 for one never overridden.
    """

    model_config = ConfigDict(extra="forbid")

    why: Annotated[str, Field(min_length=1, max_length=store.MOST_WHY)]
    until: AwareDatetime | None = None
    for_seconds: Seconds | None = None
    expected_version: Annotated[int, Field(ge=0)] | None = None


class ExperimentSaid(Said):
    """A change of an experiment; what is not named stays, and null is as in the file."""

    enabled: Annotated[bool, Field(strict=True)] | None = None
    ramp: Annotated[float, Field(ge=0, le=1)] | None = None
    weights: dict[str, Weight | None] | None = None
    start: AwareDatetime | None = None
    end: AwareDatetime | None = None


class PinSaid(Said):
    """Where everything is to go."""

    tier: str


@router.get("/experiments")
async def experiments(http: Request, _: Admin) -> Response:
    """Every experiment: what the file says, what overrides it, what holds."""
    return json_response({"experiments": await _listed(_watcher(http))})


@router.get("/experiments/{name:path}")
async def experiment(http: Request, name: str, _: Admin) -> Response:
    """One of them, with its history."""
    watcher = _watcher(http)
    found = await _one(watcher, name)
    past = await watcher.within(lambda: store.history(watcher.database, store.EXPERIMENT + name))
    return _answer(found | {"history": [override_json(each) for each in past]}, found["version"])


@router.put("/experiments/{name:path}")
async def change(http: Request, name: str, who: Admin) -> Response:
    """Change it."""
    watcher = _watcher(http)
    await _one(watcher, name)
    said, note = await _said(http, ExperimentSaid, who)
    changes = said.model_dump(mode="json", include=said.model_fields_set - Said.model_fields.keys())
    await watcher.change(lambda to: to.experiment(name, changes, note))
    found = await _one(watcher, name)
    return _answer(found, found["version"])


@router.delete("/experiments/{name:path}")
async def restore(http: Request, name: str, who: Admin) -> Response:
    """Give it back to the file."""
    watcher = _watcher(http)
    await _one(watcher, name)
    _, note = await _said(http, Said, who)
    await watcher.change(lambda to: to.restore(name, note))
    found = await _one(watcher, name)
    return _answer(found, found["version"])


@router.get("/overrides")
async def overrides(http: Request, _: Admin) -> Response:
    """What is in force, and who changed what when and why, the latest first."""
    watcher, asked = _watcher(http), http.query_params
    subject, limit = asked.get("subject"), _limit(asked.get("limit"))
    past = await watcher.within(lambda: store.history(watcher.database, subject, limit))
    version = await watcher.within(lambda: store.latest(watcher.database))
    return json_response(_in_force(watcher, version) | {"history": list(map(override_json, past))})


@router.put("/pin")
async def pin(http: Request, who: Admin) -> Response:
    """Send everything to one tier."""
    said, note = await _said(http, PinSaid, who)
    return await _changed(http, lambda to: to.pin(said.tier, note))


@router.delete("/pin")
async def unpin(http: Request, who: Admin) -> Response:
    """Answer what is asked for again."""
    _, note = await _said(http, Said, who)
    return await _changed(http, lambda to: to.unpin(note))


@router.put("/drain/{tier:path}")
async def drain(http: Request, tier: str, who: Admin) -> Response:
    """Send nothing to a tier any more."""
    _, note = await _said(http, Said, who)
    return await _changed(http, lambda to: to.drain(tier, note))


@router.delete("/drain/{tier:path}")
async def undrain(http: Request, tier: str, who: Admin) -> Response:
    """Let it be asked again."""
    _, note = await _said(http, Said, who)
    return await _changed(http, lambda to: to.undrain(tier, note))


async def _changed(http: Request, work: Callable[[Changes], int]) -> Response:
    watcher = _watcher(http)
    version = await watcher.change(work)
    return _answer(_in_force(watcher, version), version)


def _in_force(watcher: Watcher, version: int) -> dict[str, Any]:
    return overrides_json(watcher.state, version, watcher.doubts)


def _watcher(http: Request) -> Watcher:
    service: Service = http.app.state.service
    if service.overrides is None:
        raise NoOverridesError("this service keeps no overrides: it has no audit database")
    return service.overrides


async def _listed(watcher: Watcher) -> list[dict[str, Any]]:
    versions = await watcher.within(lambda: store.versions(watcher.database))
    ground, shapes = ground_of(watcher.file), shapes_of(watcher.file)
    return experiments_json(ground, shapes, watcher.state, versions)


async def _one(watcher: Watcher, name: str) -> dict[str, Any]:
    """One experiment.

    Raises:
        UnknownExperimentError: there is none of that name.
    """
    known = watcher.file.experiments
    if name not in known:
        there = ", ".join(known) or "none"
        raise UnknownExperimentError(
            f"there is no experiment {name!r}; there are: {there}", param="name"
        )
    return next(each for each in await _listed(watcher) if each["name"] == name)


async def _said(http: Request, shape: type[Any], who: str) -> tuple[Any, Note]:
    """What a change says, in the body or, where there is none, in the query.

    Raises:
        RequestError: naming the field at fault.
    """
    body = await body_of(http, http.headers, _MOST_BYTES)
    data = read(body) if body else dict(http.query_params)
    said = validated(shape, data)
    if said.until is not None and said.for_seconds is not None:
        raise RequestError("for_seconds: give it or until, not both", param="for_seconds")
    until = said.until.timestamp() if said.until else None
    if said.for_seconds is not None:
        until = time.time() + said.for_seconds
    expected = _matched(http) if said.expected_version is None else said.expected_version
    return said, Note(who=who, why=said.why, until=until, expected=expected)


def _matched(http: Request) -> int | None:
    given = http.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    tag = given.strip().removeprefix("W/").strip('"')
    if not tag.isdecimal() or len(tag) > _MOST_DIGITS:
        raise RequestError(
            "if-match: it is not the ETag of what was looked at, which is a version in quotes",
            param="if-match",
        )
    return int(tag)


def _limit(given: str | None) -> int:
    if given is None:
        return 100
    if not given.isdecimal() or len(given) > _MOST_DIGITS or not 0 < int(given) <= _MOST_ROWS:
        raise RequestError(f"limit: a number from 1 to {_MOST_ROWS}", param="limit")
    return int(given)


def _answer(data: dict[str, Any], version: int) -> Response:
    return json_response(data, headers={"etag": f'"{version}"'})
