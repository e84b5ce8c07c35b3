"""What an experiment's arms do, and what they differ by."""

from serving.results.arms import ArmReport
from serving.results.comparisons import Comparison
from serving.results.results import Results, results
from serving.results.trial import Trial, trial_of

__all__ = ["ArmReport", "Comparison", "Results", "Trial", "results", "trial_of"]
