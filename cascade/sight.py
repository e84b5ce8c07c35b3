"""What is warm of a prompt at each of a model's servers, and what these have to do."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from cascade.types import ChatRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is warm of a prompt at each server, by its name; what is not said is cold.

    Attributes:
        warm_tokens: in its cache.
        victim_age_seconds: how long ago that was last used which goes next there; None while there
            is room, and where nobody knows.
    """

    warm_tokens: Mapping[str, int] = field(default_factory=dict)
    victim_age_seconds: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A prompt, and what is warm of it where.

    Attributes:
        tokens: of the prompt.
        prefix: stands for what others' prompts begin with as well, and whose they are.
        prefix_tokens: of that.
        seen: at each server.
    """

    tokens: int
    prefix: str
    prefix_tokens: int
    seen: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one of a model's servers has to do, as this process knows it.

    Attributes:
        name: of the server; None where a tier has only one.
        in_flight: calls that it has now; None where nobody counts them.
        waiting: calls that wait for one of those to end.
        most: calls that it is asked at once; None for no limit.
        cooling: whether it is being left alone.
    """

    name: str | None = None
    in_flight: int | None = None
    waiting: int = 0
    most: int | None = None
    cooling: bool = False


Look = Callable[[ChatRequest, Collection[str]], Sight | None]
"""Says of a request what is warm of it at the servers of these names; None when it is unknown."""
