"""Experiments: what their arms do, and turning them on and off."""

import asyncio
import time
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from cascade.errors import RequestError
from serving.dashboard.forms import number, until
from serving.dashboard.trials import TrialState, measures, rows, trial_state, verdicts
from serving.dashboard.visit import Visit
from serving.overrides.changes import Changes, Note
from serving.overrides.store import EXPERIMENT, history, state, versions
from serving.results import trial_of
from serving.results.kept import Computed
from serving.results.period import current
from serving.results.present import doubts

SHOWN: Final = 20
AT_ONCE_SECONDS: Final = 0.2
"""How long a page waits for results before it is shown without."""
WEIGHT: Final = "weight."


def listed(visit: Visit) -> Response:
    """All experiments."""
    return visit.show("experiments.html", current="experiments", trials=_states(visit))


async def opened(visit: Visit) -> Response:
    """One experiment; without its results where counting them takes a while.

    Raises:
        HTTPException: there is none of that name.
    """
    name = _named(visit)
    computed = await _computed(visit, name, None if visit.query("wait") else AT_ONCE_SECONDS)
    found = computed.results if computed else None

    def shown() -> Response:
        return visit.show(
            "experiment.html",
            current="experiments",
            trial=next(each for each in _states(visit) if each.experiment.name == name),
            counted_at=computed.at if computed else None,
            found=found,
            verdicts=verdicts(found) if found else [],
            rows=rows(found) if found else [],
            measures=measures(found) if found else [],
            notes=list(doubts(found)) if found else [],
            changes=history(visit.page.database, f"{EXPERIMENT}{name}", SHOWN),
        )

    return await asyncio.to_thread(shown)


async def _computed(visit: Visit, name: str, patience: float | None) -> Computed | None:
    """An experiment's results; None when it takes longer than that to have any, and goes on."""
    database, config = visit.page.database, visit.page.sources.config
    filed = trial_of(name, config.experiments[name], config)
    try:
        async with asyncio.timeout(patience):
            trial = await asyncio.to_thread(current, database, filed, time.time())
            return await visit.page.sources.results.of(database, trial)
    except TimeoutError:
        return None


async def changed(visit: Visit) -> Response:
    """Change an experiment, or give it back to the file.

    Raises:
        HTTPException: there is none of that name.
        RequestError: the form asks for what cannot be, or gives no reason.
    """
    name, form = _named(visit), visit.form
    wanted = None if form.get("action") == "restore" else _wanted(visit, name)
    note = Note(
        who=visit.session.who,
        why=form.get("why", ""),
        until=until(form.get("minutes", "")) if wanted is not None else None,
        expected=int(number(form.get("version", ""), "version") or 0),
    )

    def change(changes: Changes) -> int:
        if wanted is None:
            return changes.restore(name, note)
        return changes.experiment(name, wanted, note)

    await visit.watcher.change(change)
    return visit.go(f"/experiments/{name}")


def _named(visit: Visit) -> str:
    name: str = visit.http.path_params["name"]
    if name not in visit.page.sources.config.experiments:
        raise HTTPException(404, "experiment")
    return name


def _states(visit: Visit) -> list[TrialState]:
    database, watcher = visit.page.database, visit.watcher
    held, newest = state(database), versions(database)
    return [
        trial_state(
            experiment, watcher.file.experiments[name], held, newest.get(f"{EXPERIMENT}{name}", 0)
        )
        for name, experiment in visit.page.service.engine.snapshot.experiments.items()
    ]


def _wanted(visit: Visit, name: str) -> dict[str, Any]:
    """The terms that a form asks for."""
    form, action = visit.form, visit.form.get("action", "")
    if action in {"start", "stop"}:
        return {"enabled": action == "start"}
    if action in {"arm_off", "arm_on"}:
        arm = form.get("arm", "")
        filed = visit.watcher.file.experiments[name].terms.weights.get(arm, 0.0)
        return {"weights": {arm: (filed or 1.0) if action == "arm_on" else 0.0}}
    if action == "set":
        weights = {
            field.removeprefix(WEIGHT): number(value, field)
            for field, value in form.items()
            if field.startswith(WEIGHT) and value
        }
        ramp = number(form.get("ramp", ""), "ramp")
        return {
            **({"weights": weights} if weights else {}),
            **({} if ramp is None else {"ramp": ramp / 100.0}),
        }
    raise RequestError(f"there is no change {action!r}", param="action")
