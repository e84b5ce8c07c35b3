"""Judges: they look at an answer and say how likely it is acceptable."""
