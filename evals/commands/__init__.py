"""The sub-commands of `python -m evals`."""
