"""The page at /dashboard: what the service spent, saved and decided, and where that is changed.

It is rendered here, works without a network, and is only loaded where its extra is installed.
"""
