"""What each arm's calls found in prompt caches, and what it cost them not to find it."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Double, case, cast, func, literal, select

from cascade.audit import PICO
from cascade.types import Kind
from serving.results.trial import Trial
from serving.results.units import latest
from serving.store.tables import attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Of the calls for answers of one arm's latest requests.

    Attributes:
        reported: prompt tokens of the calls that said how many were read from a cache.
        read: these.
        cold_premium: dollars a request more than with every prompt warm, in the mean of the
            requests of which that is known; None when it is of none.
    """

    reported: int
    read: int
    cold_premium: float | None

    @property
    def cached_share(self) -> float | None:
        """Share of prompt tokens read from a cache; None when no call reported it."""
        return self.read / self.reported if self.reported else None


def of_arms(connection: Connection, trial: Trial) -> Mapping[str, Prompts]:
    """By arm; shadow calls are not its doing."""
    asked = latest(trial)
    read = attempts.c.cache_read_tokens
    prompt = (
        func.coalesce(attempts.c.input_tokens, 0)
        + read
        + func.coalesce(attempts.c.cache_write_tokens, 0)
    )
    pico = attempts.c.cold_premium_pico
    premium = cast(func.sum(pico), Double) / literal(float(PICO))
    number = func.count(case((pico.is_not(None), asked.c.id)).distinct())
    wanted = select(
        asked.c.arm,
        func.coalesce(func.sum(case((read.is_not(None), prompt))), 0),
        func.coalesce(func.sum(read), 0),
        premium / func.nullif(number, 0),
    ).join_from(asked, attempts, attempts.c.request_id == asked.c.id)
    rows = connection.execute(
        wanted.where(attempts.c.kind == Kind.ANSWER.value).group_by(asked.c.arm)
    )
    return {
        arm: Prompts(reported=int(reported), read=int(tokens), cold_premium=dollars)
        for arm, reported, tokens, dollars in rows
    }
