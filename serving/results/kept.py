"""Keeps each experiment's last results in the audit database.

Those of a million requests take seconds to compute. Whoever computes them keeps them: the watch,
the page, the command. So all processes share one computation, and one that has just started has
what the others had. What is kept is found by the experiment, the time that counts, the weights, the
bounds and the release: results of anything else are other results.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Engine, and_, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from serving.results.document import document, read
from serving.results.results import Results, results
from serving.results.trial import Trial
from serving.store.adding import take_turn
from serving.store.database import WRITES
from serving.store.removal import removed
from serving.store.tables import experiment_results as table

SHARE_OF_TIME = 0.05
"""No more than that goes into computing an experiment's results again and again."""

SHOWN_TIMES = 400.0
"""Results that are older than that many times what they took are not shown, but waited for."""

KEPT_SECONDS = 86_400.0
"""After which what is kept of an experiment's earlier times and weights goes."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """Results as they were at a time.

    Attributes:
        at: seconds since the epoch, when it was begun to compute them.
        took: seconds.
        removed: how many requests had been removed from the log before it was begun.
    """

    results: Results
    at: float
    took: float
    removed: int = 0

    def fresh(self, now: float) -> bool:
        """Whether it need not be computed anew."""
        return self._age(now) < self.took / SHARE_OF_TIME

    def recent(self, now: float) -> bool:
        """Whether it may be shown; otherwise who asks had better wait for new ones."""
        return self._age(now) < self.took * SHOWN_TIMES

    def _age(self, now: float) -> float:
        return abs(now - self.at)  # by another computer's clock, it may be from the future


def compute(engine: Engine, trial: Trial, *, clock: Callable[[], float] = time.time) -> Computed:
    """Compute results, and keep nothing.

    Args:
        engine: of the audit database.
        trial: the experiment, and the time that counts.
        clock: seconds since the epoch.
    """
    at, before = clock(), removed_before(engine)
    found = results(engine, trial)
    return Computed(results=found, at=at, took=clock() - at, removed=before)


def removed_before(engine: Engine) -> int:
    """How many requests were removed from the log up to now."""
    with engine.connect() as connection:
        return removed(connection)


def kept(engine: Engine, trial: Trial) -> Computed | None:
    """What was computed of the trial last; None when nothing is kept."""
    wanted = select(table).where(_of(trial))
    with engine.connect() as connection:
        row = connection.execute(wanted).mappings().first()
    if row is None:
        return None
    found = read(row["document"])
    if found is None:
        return None
    return Computed(results=found, at=row["computed_at"], took=row["took_seconds"])


def keep(engine: Engine, found: Computed) -> None:
    """Keep results in the place of earlier ones.

    Those that may count what was removed meanwhile are not kept. Nor does a database that cannot be
    written keep any, which is no reason to go without results.
    """
    try:
        with engine.execution_options(**WRITES).begin() as connection:
            take_turn(connection)  # as who removes requests does, so that nobody waits in a circle
            if removed(connection) == found.removed:
                _put(connection, found)
    except (DBAPIError, NoConnectionError) as error:
        first, *_ = str(error).splitlines() or [""]
        logger.info("results of %s are not kept: %s", found.results.trial.name, first)


class KeptResults:
    """What is kept, for who must not wait: it is computed anew beside them.

    Args:
        compute: the results of a trial out of a database; it may block.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        compute: Callable[[Engine, Trial], Computed] = compute,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._compute = compute
        self._clock = clock
        self._under_way: dict[str, asyncio.Task[Computed]] = {}

    async def of(self, engine: Engine, trial: Trial) -> Computed:
        """What is kept of the trial, or what is computed now when that is nothing, or too old."""
        known = await asyncio.to_thread(kept, engine, trial)
        now = self._clock()
        if known is None or not known.recent(now):
            return await asyncio.shield(self._start(engine, trial))
        if not known.fresh(now):
            self._start(engine, trial)
        return known

    def _start(self, engine: Engine, trial: Trial) -> asyncio.Task[Computed]:
        """Compute it in a thread; who asks meanwhile waits for the same."""
        key = _digest(trial)
        if key not in self._under_way:
            work = asyncio.to_thread(self._work, engine, trial)
            task = asyncio.create_task(work, name=f"results of {trial.name}")
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._over(key, done))
        return self._under_way[key]

    def _over(self, key: str, done: asyncio.Task[Computed]) -> None:
        del self._under_way[key]
        if not done.cancelled():
            done.exception()  # who waited was told; nobody else need be

    def _work(self, engine: Engine, trial: Trial) -> Computed:
        found = self._compute(engine, trial)
        keep(engine, found)
        return found


def _put(connection: Connection, found: Computed) -> None:
    trial = found.results.trial
    values = {
        "experiment": trial.name,
        "trial": _digest(trial),
        "computed_at": found.at,
        "took_seconds": found.took,
        "document": document(found.results),
    }
    old = table.c.computed_at < found.at - KEPT_SECONDS
    connection.execute(delete(table).where(table.c.experiment == trial.name, old))
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    putting = dialect.insert(table).values(values)
    connection.execute(
        putting.on_conflict_do_update(
            index_elements=["experiment", "trial"],
            set_={name: putting.excluded[name] for name in values},
        )
    )


def _of(trial: Trial) -> ColumnElement[bool]:
    return and_(table.c.experiment == trial.name, table.c.trial == _digest(trial))


def _digest(trial: Trial) -> str:
    """Tells what results are of, and which release computed them."""
    said = {
        **asdict(trial),
        "weights": {arm: float(weight) for arm, weight in trial.weights.items()},
        "acting": sorted(trial.acting),
        "release": version("cascade-router"),
    }
    text = orjson.dumps(said, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=16).hexdigest()
