"""Dimensions of a few public models, so that the arithmetic of caches needs no typing.

From each model's published configuration. Dense models with grouped-query attention only: experts,
latent attention and sliding windows follow other formulas.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cascade.cache_economics import ModelShape

SHAPES: Final[Mapping[str, ModelShape]] = MappingProxyType(
    {
        "llama-3-70b": ModelShape(params=70e9, layers=80, kv_heads=8, head_dim=128, heads=64),
        "llama-3.1-8b": ModelShape(params=8.0e9, layers=32, kv_heads=8, head_dim=128, heads=32),
        "llama-3.2-3b": ModelShape(params=3.2e9, layers=28, kv_heads=8, head_dim=128, heads=24),
        "qwen3-8b": ModelShape(params=8.2e9, layers=36, kv_heads=8, head_dim=128, heads=32),
        "qwen3-4b": ModelShape(params=4.0e9, layers=36, kv_heads=8, head_dim=128, heads=32),
        "qwen2.5-coder-1.5b": ModelShape(
            params=1.54e9, layers=28, kv_heads=2, head_dim=128, heads=12
        ),
        "qwen2.5-coder-0.5b": ModelShape(
            params=0.49e9, layers=24, kv_heads=2, head_dim=64, heads=14
        ),
    }
)
"""By the name that people use."""
