"""Backends: the ways to ask a model."""
