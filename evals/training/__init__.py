"""Fits models of difficulty: from outcomes to what the estimator `learned` applies."""
