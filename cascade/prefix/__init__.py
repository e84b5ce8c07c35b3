"""What of a prompt a cache may hold: its chain of blocks, and its segments for who asks why not.

A chain is compared with what a model has seen; the segments only say in words where two prompts
part, and are kept as hashes.
"""

from cascade.prefix.canonical import (
    Rendered,
    answer_rendering,
    has_media,
    message_rendering,
    rendering,
    tool_renderings,
)
from cascade.prefix.chain import BLOCK_BYTES, Chain, Chained, chain_of_ids, chain_of_text
from cascade.prefix.ratio import TokenRatio
from cascade.prefix.segments import (
    Fingerprint,
    Fingerprints,
    Mask,
    Segment,
    SegmentName,
    fingerprint,
)

__all__ = [
    "BLOCK_BYTES",
    "Chain",
    "Chained",
    "Fingerprint",
    "Fingerprints",
    "Mask",
    "Rendered",
    "Segment",
    "SegmentName",
    "TokenRatio",
    "answer_rendering",
    "chain_of_ids",
    "chain_of_text",
    "fingerprint",
    "has_media",
    "message_rendering",
    "rendering",
    "tool_renderings",
]
