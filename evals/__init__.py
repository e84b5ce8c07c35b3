"""Offline measurement: what a policy costs and how good its answers are."""
