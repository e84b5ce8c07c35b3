"""Which requests are drawn: by a hash of their id, so that it depends on nothing else of them.

A request is drawn or not as a whole: of one that is, every tier that may be asked has answered in
the end. So each of its calls had the same chance, the share, whatever path the request took, and a
policy of several steps can be followed to its end.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence

from cascade.result import CascadeResult
from cascade.types import Kind

_SCALE = 2.0**64


def drawn(request_id: str, share: float, salt: str = "") -> bool:
    """Whether a request is among that share of all."""
    key = f"shadow\x1f{salt}\x1f{request_id}".encode()
    digest = hashlib.blake2b(key, digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * _SCALE


def answered(result: CascadeResult) -> bool:
    """Whether a client got an answer; of failures and of clients that left there is no telling."""
    return result.completion is not None and result.error is None and not result.cancelled


def unasked(
    result: CascadeResult, tiers: Sequence[str], ruled_out: Mapping[str, str] | Collection[str]
) -> list[str]:
    """The tiers that were not asked for an answer and may be."""
    asked = {each.step.tier for each in result.attempts if each.kind is Kind.ANSWER}
    return [name for name in tiers if name not in asked and name not in ruled_out]
