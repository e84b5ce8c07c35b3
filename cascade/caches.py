"""How a model's prompt cache works: what of a prompt it keeps, in which steps, and for how long.

Data of a tier, beside its prices. What is in a cache at a moment is the ledger's to know.
"""

from dataclasses import dataclass
from typing import Literal

CacheKind = Literal["blocks", "slots", "ttl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCard:
    """How one model's servers, or its provider, keep prompts.

    Attributes:
        kind: "blocks" keeps full blocks and drops those least recently used when its memory is full
            (vLLM); "slots" keeps the last prompt of each slot, exact to the token (llama.cpp);
            "ttl" keeps what was used within a time, whatever else is asked (APIs).
        block: tokens in a block; what fills none is not cached. 1 where it is exact to the token.
        capacity_tokens: tokens that fit into a replica's cache; None where that is not known. Of
            kind "slots" those that the host's memory keeps besides the slots; None for none.
        slots: prompts that are kept at the same time, of kind "slots".
        ttl_seconds: how long after its last use a prefix is kept, of kind "ttl".
        minimum_tokens: shorter prompts are not cached.
        marked: only what its client marks of a request (cache_control) is cached.
    """

    kind: CacheKind
    block: int = 1
    capacity_tokens: int | None = None
    slots: int = 1
    ttl_seconds: float | None = None
    minimum_tokens: int = 0
    marked: bool = False

    def __post_init__(self) -> None:
        """Refuses what no cache is like.

        Raises:
            ValueError: a field is out of its range, or one that the kind needs is missing.
        """
        for name, value, least in (
            ("block", self.block, 1),
            ("slots", self.slots, 1),
            ("minimum_tokens", self.minimum_tokens, 0),
            ("capacity_tokens", self.capacity_tokens, self._least_capacity),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name} is {value}, below {least}")
        if self.ttl_seconds is not None and not self.ttl_seconds > 0:
            raise ValueError(f"ttl_seconds is {self.ttl_seconds}, not above 0")
        if self.kind == "ttl" and self.ttl_seconds is None:
            raise ValueError('ttl_seconds is missing, which kind "ttl" needs')

    @property
    def _least_capacity(self) -> int:
        return self.block if self.kind == "blocks" else 0
