"""What is warm where: which prefixes each model's caches hold, as far as can be told from outside.

Caches say what they held only after a call. The ledger remembers what went to them, forgets as they
do, and is corrected by every report.
"""

from cascade.ledger.cache import Warm
from cascade.ledger.ledger import Ledger

__all__ = ["Ledger", "Warm"]
