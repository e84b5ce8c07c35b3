"""What was published of replica routing, to hold the simulator against.

Shares of prompt tokens that were computed, in percent; requests of the busiest server over the
mean; dollars of computing prompts, per million requests, on an H100 at 4.29 dollars an hour.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cascade.backends.replica_choice import RuleName


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What one cell said.

    Attributes:
        recomputed: percent of the prompt tokens.
        within: percentage points that a simulation may differ by.
        busiest: requests of the busiest server over the mean.
        dollars: per million requests.
    """

    recomputed: float
    within: float
    busiest: float | None = None
    dollars: float | None = None


PUBLISHED_CHAT: Final[Mapping[tuple[int, RuleName], Published]] = {
    (1, "round_robin"): Published(recomputed=48.6, within=0.7),
    (2, "round_robin"): Published(recomputed=49.0, within=0.7),
    (2, "session"): Published(recomputed=34.7, within=0.7),
    (2, "cache_aware"): Published(recomputed=34.7, within=1.5),
    (4, "round_robin"): Published(recomputed=49.7, within=0.7),
    (4, "session"): Published(recomputed=12.8, within=0.7),
    (4, "cache_aware"): Published(recomputed=12.4, within=1.5),
    (8, "round_robin"): Published(recomputed=51.0, within=0.7, dollars=127.0),
    (8, "session"): Published(recomputed=3.7, within=0.7, dollars=9.5),
    (8, "cache_aware"): Published(recomputed=4.3, within=1.5, dollars=11.0),
}
"""By servers and rule."""

PUBLISHED_INFINITE: Final[Mapping[int, Published]] = {
    4: Published(recomputed=25.8, within=0.1),
    8: Published(recomputed=39.4, within=0.1),
}
"""Chat at random, with caches that hold everything, by servers."""

PUBLISHED_QUESTIONS: Final[Mapping[RuleName, Published]] = {
    "random": Published(recomputed=60.9, within=1.0, busiest=1.01, dollars=499.0),
    "prefix_hash": Published(recomputed=17.4, within=1.0, busiest=1.68, dollars=144.0),
    "cache_aware": Published(recomputed=19.1, within=1.0, busiest=1.04, dollars=157.0),
}
"""On eight servers, by rule."""
SERVERS: Final = 8

SKEW_WITHIN: Final = 0.3
"""By which `busiest` may differ where documents are hashed."""
DOLLARS_WITHIN: Final = 0.05
"""Of the published dollars."""
FIRST_TOKEN_MS: Final = 1_042
"""The 99th percentile under `cache_aware` on questions."""
