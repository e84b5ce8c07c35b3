"""Keeps each experiment's last results, since those of a million requests take a second or two.

Who asks gets what is kept, and sets off that it is computed anew when it is old. Only the first who
asks waits.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine

from serving.results.results import Results, results
from serving.results.trial import Trial

FRESH_SECONDS = 10.0
SHARE_OF_TIME = 0.05
"""No more than that goes into computing the same results again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """Results as they were at a time.

    Attributes:
        at: seconds since the epoch.
        took: seconds.
    """

    results: Results
    at: float
    took: float

    def fresh(self, now: float) -> bool:
        """Whether it need not be computed anew."""
        return now - self.at < max(FRESH_SECONDS, self.took / SHARE_OF_TIME)


class KeptResults:
    """The last results by experiment.

    Args:
        compute: the results of a trial out of a database; it may block.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        compute: Callable[[Engine, Trial], Results] = results,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._compute = compute
        self._clock = clock
        self._kept: dict[str, Computed] = {}
        self._under_way: dict[str, asyncio.Task[Computed]] = {}

    async def of(self, engine: Engine, trial: Trial) -> Computed:
        """What is kept of the trial, or what is computed now when nothing is.

        A trial over another time, or with other weights, is another one.
        """
        known = self._kept.get(trial.name)
        if known is None or known.results.trial != trial:
            return await asyncio.shield(self._start(engine, trial))
        if not known.fresh(self._clock()):
            self._start(engine, trial)
        return known

    def _start(self, engine: Engine, trial: Trial) -> asyncio.Task[Computed]:
        """Compute it in a thread; who asks meanwhile waits for the same."""
        key = repr(trial)
        if key not in self._under_way:
            task = asyncio.create_task(self._work(engine, trial), name=f"results of {trial.name}")
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._over(key, done))
        return self._under_way[key]

    def _over(self, key: str, done: asyncio.Task[Computed]) -> None:
        del self._under_way[key]
        if not done.cancelled():
            done.exception()  # who waited was told; nobody else need be

    async def _work(self, engine: Engine, trial: Trial) -> Computed:
        began = self._clock()
        found = await asyncio.to_thread(self._compute, engine, trial)
        computed = Computed(results=found, at=began, took=self._clock() - began)
        self._kept[trial.name] = computed
        return computed
