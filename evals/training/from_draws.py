"""Labels of requests that were drawn for shadow calls: what a judge said of every tier's answer.

Which requests these are was decided by chance, so unlike feedback they say of each tier how it does
on all of the traffic, and of the same request what each of them is worth.
"""

from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import Engine, Select, literal, select

from cascade.types import Kind
from evals.training.rows import TrainingError
from serving.store.tables import attempts

_SHADOW = attempts.c.kind == literal(Kind.SHADOW.value, literal_execute=True)


def drawn_ids(judge: str) -> Select[str]:
    """The requests of which a judge saw answers with nobody acting on it."""
    return select(attempts.c.request_id).where(_SHADOW, attempts.c.judge == judge)


def drawn_labels(engine: Engine, judge: str) -> Mapping[str, Mapping[str, float]]:
    """By request, what a judge gave the answer of each tier.

    Raises:
        TrainingError: it looked at none.
    """
    columns = (attempts.c.request_id, attempts.c.tier, attempts.c.score)
    wanted = select(*columns).where(_SHADOW, attempts.c.judge == judge)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    with engine.connect() as connection:
        for identity, tier, score in connection.execute(wanted.order_by(attempts.c.index)):
            if score is not None:
                found[identity][tier] = score
    if not found:
        raise TrainingError(f"judge {judge!r} looked at no answers of shadow calls")
    return found
