"""Routing policies: they decide what is called next and what is accepted."""
