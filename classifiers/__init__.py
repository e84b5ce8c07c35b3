"""Difficulty estimators: they look at a request and say which tier's answer will be acceptable."""
