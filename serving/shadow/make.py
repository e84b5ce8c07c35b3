"""Makes what shadows requests from the configuration."""

from collections.abc import Callable, Collection, Mapping

from sqlalchemy import Engine

from cascade.forecast import Forecast
from cascade.protocols import AuditSink
from cascade.snapshot import Snapshot
from serving import config as cfg
from serving.shadow.budget import DayBudget, spent_on_shadows
from serving.shadow.check import tiers_asked, tiers_of
from serving.shadow.idle import Idle
from serving.shadow.shadows import LateSink, Shadows, Told, Tracer


def shadows_of(
    entry: cfg.Shadow,
    database: Engine,
    *,
    judges: Mapping[str, cfg.Judge],
    launched: Collection[str] = (),
    snapshot: Callable[[], Snapshot],
    forecast: Forecast,
    inner: AuditSink,
    log: LateSink,
    told: Told | None = None,
    tracer: Tracer | None = None,
) -> Shadows:
    """What shadows requests as the configuration says.

    Args:
        entry: the configuration's.
        database: the audit log's, which knows what other processes spent.
        judges: the configuration's.
        launched: tiers whose servers Cascade launches.
        snapshot: tells the configuration at a moment; not asked before the first request.
        forecast: the engine's.
        inner: takes every result.
        log: takes the shadow calls.
        told: is told how it goes.
        tracer: keeps traces of the calls.
    """
    waiting = {"launched": launched, "all": forecast.tiers, "none": ()}[entry.idle]
    return Shadows(
        entry,
        tiers_of(entry, forecast.tiers),
        asks={name: tiers_asked(judges, name) for name in entry.judges},
        idle=Idle(waiting, forecast, entry.idle_seconds),
        snapshot=snapshot,
        forecast=forecast,
        budget=DayBudget(entry.usd_per_day, spent_on_shadows(database)),
        inner=inner,
        log=log,
        told=told,
        tracer=tracer,
    )
