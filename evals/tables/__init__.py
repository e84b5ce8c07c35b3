"""Outcome tables: how good and how dear each tier's answer to each prompt was, from any source."""

from evals.tables.columns import Columns, TableError, columns
from evals.tables.loading import load
from evals.tables.outcome_table import OutcomeTable
from evals.tables.splits import SplitRule
from evals.tables.writing import write

__all__ = ["Columns", "OutcomeTable", "SplitRule", "TableError", "columns", "load", "write"]
