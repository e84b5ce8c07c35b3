"""Puts what a benchmark measured into its page, as the commands do."""

from evals.pages import put

__all__ = ["put"]
