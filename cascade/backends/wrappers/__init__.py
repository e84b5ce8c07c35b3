"""Behaviour around a backend: each wraps another backend and is one."""
