"""The tiers and their servers, and what an operator has pinned or drained."""

import asyncio
import time
from typing import Final

from starlette.responses import Response

from cascade.errors import RequestError
from serving.dashboard.fleet_state import fleet_state
from serving.dashboard.forms import until
from serving.dashboard.visit import Visit
from serving.overrides.changes import Changes, Note
from serving.overrides.store import DRAIN, PIN, history, state
from serving.store.overview import overview

DAY: Final = 24 * 3600.0
SHOWN: Final = 20
REFRESH_SECONDS: Final = 10


async def fleet(visit: Visit) -> Response:
    """Every tier as it is now, and what it did in the last day."""
    page = visit.page
    tiers = fleet_state(page.service)
    audit = await asyncio.to_thread(page.service.sink.state)

    def shown() -> Response:
        held = state(page.database)
        used = overview(page.database, time.time() - DAY)
        return visit.show(
            "fleet.html",
            current="fleet",
            tiers=tiers,
            use={each.tier: each for each in used.tiers},
            audit=audit,
            pin=held.get(PIN),
            drains={s.removeprefix(DRAIN): o for s, o in held.items() if s.startswith(DRAIN)},
            changes=[o for o in history(page.database) if o.subject.startswith(_OURS)][:SHOWN],
            refresh=REFRESH_SECONDS,
        )

    return await asyncio.to_thread(shown)


async def changed(visit: Visit) -> Response:
    """Pin or drain a tier, or take that back.

    Raises:
        RequestError: the form asks for what cannot be, or gives no reason.
    """
    tier, action, watcher = visit.form.get("tier", ""), visit.form.get("action", ""), visit.watcher
    note = Note(
        who=visit.session.who,
        why=visit.form.get("why", ""),
        until=until(visit.form.get("minutes", "")) if action in {"pin", "drain"} else None,
    )

    def change(changes: Changes) -> int:
        if action == "unpin":
            return changes.unpin(note)
        if action not in _CHANGES:
            raise RequestError(f"there is no change {action!r}", param="action")
        return _CHANGES[action](changes, tier, note)

    await watcher.change(change)
    return visit.go("/fleet")


_CHANGES: Final = {"pin": Changes.pin, "drain": Changes.drain, "undrain": Changes.undrain}
_OURS: Final = (PIN, DRAIN)
