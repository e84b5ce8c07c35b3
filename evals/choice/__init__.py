"""Chooses a policy's setting, bounds what it is worth, and tells two policies apart."""
