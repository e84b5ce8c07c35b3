"""Asks other tiers and judges about a share of the traffic, behind the clients' backs."""
