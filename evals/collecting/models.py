"""A configuration's tiers as a collection asks them: directly, or through a running service."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.backends.wrappers.retry import Retries, RetryingBackend
from cascade.errors import ConfigError
from cascade.pricing import PriceCard
from cascade.snapshot import Snapshot
from cascade.tiers import ModelTier
from evals.collecting.meter import Meter
from evals.models import RETRIES, own_fleet
from serving.config import ConfigFile
from serving.models.launch import Launch
from serving.models.sources import Progress, silent
from serving.wiring import Wiring, launches

_LEAST_TIERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of a configuration is asked, and how.

    Attributes:
        file: the configuration.
        tiers: the names of its tiers that are asked; none: all.
        prices: the cards of tiers that are to be priced otherwise.
        service: address of a running service, ending in /v1, that is asked for the tiers by their
            names; empty: the tiers' own models are asked, and started where Cascade launches them.
        api_key: for the service.
        estimator: by its name, or none: whose estimates are wanted.
        judge: by its name, or none: which judge is wanted.
        grader: the tier, or none, whose model compares answers; it need not be among those asked.
    """

    file: ConfigFile
    tiers: Sequence[str] = ()
    prices: Mapping[str, PriceCard]
    service: str = ""
    api_key: str | None = None
    estimator: str | None = None
    judge: str | None = None
    grader: str | None = None

    @property
    def names(self) -> list[str]:
        """The tiers that are asked, from the cheapest to the best as the configuration has them.

        Raises:
            ConfigError: there is no such tier, or only one.
        """
        known = self.file.config.tiers
        graders = () if self.grader is None else (self.grader,)
        for name in (*self.tiers, *self.prices, *graders):
            if name not in known:
                raise ConfigError(f"there is no tier {name!r}; there are: {', '.join(known)}")
        found = [name for name in known if not self.tiers or name in self.tiers]
        if len(found) < _LEAST_TIERS:
            raise ConfigError(f"only tier {found[0]} is asked: one leaves nothing to compare")
        return found

    @property
    def models(self) -> dict[str, str]:
        """The model behind each of them."""
        return {name: self.file.config.tiers[name].served_model or name for name in self.names}

    @property
    def launches(self) -> list[Launch]:
        """The model servers that have to be started for them."""
        if self.service:
            return []
        asked = {*self.names, self.grader, *self.told}
        return [launch for launch in launches(self.file.config) if launch.tier in asked]

    @property
    def told(self) -> set[str]:
        """The tiers whose models the judge and the estimator ask."""
        config, found = self.file.config, set[str]()
        left = [self.judge] if self.judge in config.judges else []
        for name in left:
            entry = config.judges[name]
            found |= {str(entry.options.get(key, "")) for key in ("tier", "against")}
            left += [*(entry.members or ()), *([entry.of] if entry.of else ())]
        if self.estimator in config.estimators:
            found.add(str(config.estimators[self.estimator].options.get("tier", "")))
        return found & config.tiers.keys()


@asynccontextmanager
async def ready(
    wanted: Wanted, meter: Meter, progress: Progress = silent, *, starts: bool = True
) -> AsyncIterator[Snapshot]:
    """The configuration with its models running and their calls metered, until the block ends.

    Args:
        wanted: what of it.
        meter: counts the calls.
        progress: told of model files as they are fetched.
        starts: whether any model will be asked; else none is fetched and started.

    Raises:
        ConfigError: it cannot work, or a model cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="cascade-evals-") as name:
        fleet = own_fleet(wanted.launches if starts else (), Path(name), progress)
        await fleet.start()
        try:
            launched = {
                tier: {"url": f"{server.url}/v1", "api_key": server.api_key}
                for tier, server in fleet.servers.items()
            }
            snapshot = wired(wanted, meter, launched)
            yield snapshot
            for tier in snapshot.tiers.values():
                await tier.backend.aclose()
        finally:
            await fleet.stop()


def wired(
    wanted: Wanted, meter: Meter, launched: Mapping[str, Mapping[str, str]] | None = None
) -> Snapshot:
    """The configuration with the calls of all tiers metered, each try for itself.

    Args:
        wanted: what of it.
        meter: counts the calls.
        launched: by tier, `url` and `api_key` of the servers that run; None: only to look at.

    Raises:
        ConfigError: it cannot work; says which line.
    """
    file = wanted.file
    entries = file.config.tiers
    priced = {*wanted.names, wanted.grader, *wanted.told}

    def around(tier: ModelTier) -> ModelTier:
        retry = entries[tier.name].retry
        retries = None if retry is None else Retries(**retry.model_dump())
        if wanted.service:
            asked = OpenAIHttpBackend(url=wanted.service, model=tier.name, api_key=wanted.api_key)
            tier, retries = replace(tier, backend=asked), RETRIES
        tier = replace(tier, prices=wanted.prices.get(tier.name, tier.prices))
        if tier.name in priced:
            meter.require_price(tier)
        tier = meter.metered(tier)
        # The tries go around the meter: each may cost what a call costs.
        return (
            tier
            if retries is None
            else replace(tier, backend=RetryingBackend(tier.backend, retries))
        )

    once = {name: entry.model_copy(update={"retry": None}) for name, entry in entries.items()}
    config = file.config.model_copy(update={"tiers": once})
    try:
        return Wiring(config, file.path.parent, launched, around).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None
