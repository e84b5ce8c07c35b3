"""The difficulty estimators there are. A new one is a new file and a line here."""

from typing import Final

ESTIMATORS: Final = {"heuristic": "classifiers.heuristic:HeuristicEstimator"}
