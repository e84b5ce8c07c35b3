"""Tiers: what each can be asked, and what a request becomes on its way to one."""

from cascade.tiers.tier import ExpectedTokens, ModelTier

__all__ = ["ExpectedTokens", "ModelTier"]
