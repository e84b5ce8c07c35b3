"""Whole runs: from a set of prompts to a page that shows what was found."""
