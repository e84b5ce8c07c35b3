"""Each tier's probability of an acceptable answer, before any call and after each verdict.

What is believed of a tier comes from the classifier before its call and from the judges after it.
The two are put together by a `Model` that `cascade train posterior` fitted, or, without one, by
`Unfitted`. Both also say how much a further verdict is expected to move what is believed, which is
what one more call is worth.
"""

from cascade.posterior.artifact import load
from cascade.posterior.heads import Head, Input
from cascade.posterior.model import Identity, Manifest, Model
from cascade.posterior.plain import KAPPA, PRIOR, Judged, Unfitted, prior, update

Posterior = Model | Unfitted
"""What a policy puts an estimate and verdicts together with."""

__all__ = [
    "KAPPA",
    "PRIOR",
    "Head",
    "Identity",
    "Input",
    "Judged",
    "Manifest",
    "Model",
    "Posterior",
    "Unfitted",
    "load",
    "prior",
    "update",
]
