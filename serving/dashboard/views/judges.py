"""What the judges say, how often they are right, and where people disagree with them."""

from typing import Final

from starlette.responses import Response

from serving.dashboard.charts import Figure, Line
from serving.dashboard.disagreements import disagreements
from serving.dashboard.span import LENGTHS, span_of
from serving.dashboard.visit import Visit
from serving.store.overview import Bin, JudgeReport
from serving.store.overview import judges as reported

SHOWN: Final = 12


def judges(visit: Visit) -> Response:
    """Every judge of every tier's answers, for a time."""
    span = span_of(visit, "30d")
    found = reported(visit.page.database, span.since, span.until)
    return visit.show(
        "judges.html",
        current="judges",
        span=span,
        styled=visit.page.assets.styled,
        lengths=LENGTHS,
        reports=[(each, _reliability(visit, each, number)) for number, each in enumerate(found)],
        apart=disagreements(visit.page.database, span.since, span.until, SHOWN),
        configured=list(visit.page.service.engine.snapshot.judges),
    )


def _reliability(visit: Visit, report: JudgeReport, number: int) -> Figure:
    """Mean feedback against mean score: of a calibrated judge they are the same."""
    t = visit.texts
    bins = [each for each in report.bins if each.answers]
    return Figure(
        name=f"judge-{number}",
        title=t("judges.curve", judge=report.judge, tier=report.tier),
        axis="score",
        places=[_place(each) for each in bins],
        unit="share",
        diagonal=True,
        lines=[
            Line(
                name=t("line.label"),
                values=[each.mean_label for each in bins],
                mark="points",
                notes=[t("judges.labelled", number=each.labelled) for each in bins],
            ),
            Line(
                name=t("line.answers"),
                values=[each.answers / report.answers for each in bins],
                role="faint",
                mark="bar",
            ),
        ],
    )


def _place(each: Bin) -> float:
    return (each.low + each.high) / 2 if each.mean_score is None else each.mean_score
