"""Simulations that run the shipped ledger, rules and prices against made-up traffic."""
