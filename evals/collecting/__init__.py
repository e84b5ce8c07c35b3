"""Asks models a set of prompts, within a budget, and makes an outcome table of what came back."""
