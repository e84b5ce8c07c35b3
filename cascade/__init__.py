"""Cascade's domain: what a routed chat request is, and the loop that answers it.

Importing this package loads the standard library only. Implementations (judges, classifiers, the
service) depend on it and never the other way round.
"""
