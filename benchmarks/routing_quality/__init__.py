"""Routing quality on outcomes of other people's models, measured with what the product fits."""
