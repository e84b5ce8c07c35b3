"""Filling a cache ahead of the requests that will read it."""
