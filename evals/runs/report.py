"""The page of a run: what the models did, what policies make of it, which to run, and is it better.

Everything on it is computed from the run's table anew, so that it always fits its table. A part
that the table cannot carry says so in its place.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from rich.markup import escape

from cascade.errors import CascadeError
from evals.choice import compare_report, tune_report
from evals.choice.block import Names, block, yaml
from evals.choice.comparison import Compared, compare
from evals.choice.goals import Goal
from evals.choice.tuned import Tuned, tune
from evals.frontier.known import FrontierError, complete
from evals.frontier.measure import measure
from evals.frontier.page import plot_html, script
from evals.frontier.policies import ALWAYS, replayed
from evals.frontier.report import report as frontier_report
from evals.frontier.report import verdict
from evals.panel_report import Printed
from evals.runs.html import Code, Folded, Markup, Part, Section, document
from evals.runs.record import RunRecord
from evals.runs.record import read as read_record
from evals.runs.run import TABLE
from evals.tables import OutcomeTable, load
from evals.tables.splits import SPLITS
from evals.tables.writing import answers_in

TUNED: Final = "utility"
COMPARED: Final = ("cascade", "utility")
"""Policies that are compared with each model alone, where the run does not say which."""

QUALITY: Final = 0.95
"""Share of the best single model's quality that is asked for."""

BUDGET: Final = 0.5
"""Share of its cost that is allowed."""

DELTA: Final = 0.1
SHOWN: Final = 10

Compare = Callable[[], Compared]


def page(path: Path) -> str:
    """The page of a run's folder, or of a table alone.

    Raises:
        RunError: the folder holds no record of a run.
        TableError: there is no such table, or it is none.
    """
    file, record = path, None
    if path.is_dir():
        file, record = path / TABLE, read_record(path)
    table = load(file)
    texts = answers_in(file) if file.suffix == ".parquet" else {}
    answers = {
        (name, tier): text
        for tier, some in texts.items()
        for name, text in zip(table.ids.tolist(), some, strict=True)
        if text is not None
    }
    title = f"Cascade: {record.name if record else table.source}"
    return document(title, sections(table, record, answers), head=script())


def sections(
    table: OutcomeTable, record: RunRecord | None, answers: Mapping[tuple[str, str], str]
) -> list[Section]:
    """What the page says.

    Args:
        table: of outcomes.
        record: of the run that it came from, if it is known.
        answers: texts by prompt and tier, where they are known.
    """
    names = Names(
        policy="tuned",
        judge=record.judge if record else "NAME_OF_THE_JUDGE",
        estimator=record.estimator if record else "NAME_OF_THE_ESTIMATOR",
    )
    policies = record.compared if record else COMPARED
    pairs = _pairs(table, policies)
    return [
        Section("In short", [*_tried(partial(_verdict, table)), *_tried(partial(_words, pairs))]),
        _asked(table, record),
        _models(table),
        Section("Quality against cost", _tried(partial(_frontier, table))),
        Section("A policy chosen from it", _tried(partial(_tuned, table, names))),
        Section("Is it better than one model?", _compared(table, pairs, answers)),
    ]


def _asked(table: OutcomeTable, record: RunRecord | None) -> Section:
    parts: list[Part] = []
    if record is not None:
        rows = [
            [escape(tier), escape(model), record.prices[tier]]
            for tier, model in record.models.items()
        ]
        parts = [Printed("models", ["tier", "model", "price"], rows), _said(record)]
    counts = {part: int((table.splits == part).sum()) for part in SPLITS}
    parts.append(
        f"{len(table)} prompts of {len(set(table.groups))} groups: {counts['fit']} to fit on, "
        f"{counts['choose']} to choose settings on, {counts['test']} to test on. What is told of "
        "policies is read off the test prompts only."
    )
    return Section("What was asked", parts)


def _said(record: RunRecord) -> str:
    return escape(
        f"{record.prompts}. Judged by {record.judge}, expected by {record.estimator}. Run on "
        f"{record.began} in {record.seconds:.0f} s ({record.machine}; Cascade {record.cascade}): "
        f"{record.calls} calls, ${record.dollars:f}."
    )


def _models(table: OutcomeTable) -> Section:
    """Each model's quality by kind."""
    kinds = [kind for kind in sorted(set(table.kinds)) if kind]
    rows = [_row("all", table), *(_row(kind, table.take(table.kinds == kind)) for kind in kinds)]
    costs = [
        f"{escape(tier)} ${np.nanmean(table.cost[:, at]):.3g} an answer"
        for at, tier in enumerate(table.tiers)
        if not np.isnan(table.cost[:, at]).all()
    ]
    return Section(
        "How good each model is",
        [
            Printed("quality on all prompts", ["kind", "prompts", *map(escape, table.tiers)], rows),
            f"Cost in the mean: {', '.join(costs) or 'unknown'}.",
        ],
    )


def _row(name: str, table: OutcomeTable) -> list[str]:
    means = [
        "unknown" if np.isnan(some).all() else f"{np.nanmean(some):.3f}" for some in table.quality.T
    ]
    return [escape(name), str(len(table)), *means]


def _verdict(table: OutcomeTable) -> list[Part]:
    return [verdict(measure(table))]


def _frontier(table: OutcomeTable) -> list[Part]:
    found = measure(table)
    return [Markup(plot_html(found)), *frontier_report(found)]


def _tuned(table: OutcomeTable, names: Names) -> list[Part]:
    """A setting for a quality, and one for a budget."""
    rows = complete(table)
    best = _best(rows)
    budget = BUDGET * float(rows.cost[:, best].mean())
    goals = {
        f"at least {QUALITY:g} of {table.tiers[best]}'s quality": Goal(
            kind="quality", value=QUALITY, delta=DELTA
        ),
        f"at most {BUDGET:.0%} of {table.tiers[best]}'s cost": Goal(
            kind="budget", value=budget, delta=DELTA
        ),
    }
    parts: list[Part] = []
    for title, goal in goals.items():
        parts.append(f"The policy {TUNED}, set for {title}:")
        parts += _tried(partial(_choice, table, goal, names))
    return parts


def _choice(table: OutcomeTable, goal: Goal, names: Names) -> list[Part]:
    found: Tuned = tune(table, TUNED, goal)
    parts: list[Part] = [*tune_report.report(found, table.tiers)]
    refused = tune_report.refusal(found)
    if refused:
        return [*parts, f"{refused}."]
    run = block(replayed(complete(table))[TUNED], found.chosen.knob, table.tiers, names)
    return [*parts, Code(f"policies:\n{yaml(names.policy, run)}")]


def _pairs(table: OutcomeTable, policies: Sequence[str]) -> list[Compare]:
    """Each policy against the best model and against the cheapest."""
    try:
        best = table.tiers[_best(complete(table))]
    except FrontierError:  # which every pair will say in its place
        best = table.tiers[-1]
    return [
        partial(compare, table, policy, f"{ALWAYS}{tier}")
        for policy in policies
        for tier in dict.fromkeys((best, table.tiers[0]))
    ]


def _best(rows: OutcomeTable) -> int:
    """The tier that is best on the rows that nothing is read off; on all where there are none."""
    known = rows.take(rows.splits != "test")
    return int((known if len(known) else rows).quality.mean(axis=0).argmax())


def _words(pairs: Sequence[Compare]) -> list[Part]:
    """What is said of the first policy."""
    return [compare_report.sentences(pair())[0] for pair in pairs[:2]]


def _compared(
    table: OutcomeTable, pairs: Sequence[Compare], answers: Mapping[tuple[str, str], str]
) -> list[Part]:
    return [part for pair in pairs for part in _tried(partial(_pair, table, pair, answers))]


def _pair(table: OutcomeTable, pair: Compare, answers: Mapping[tuple[str, str], str]) -> list[Part]:
    found = pair()
    test = complete(table).of("test")
    return [
        *compare_report.report(found, test, 0),
        Folded("the prompts where they differ most", _apart(found, test, answers)),
    ]


def _apart(
    found: Compared, test: OutcomeTable, answers: Mapping[tuple[str, str], str]
) -> list[Part]:
    parts: list[Part] = []
    for each in found.apart[:SHOWN]:
        name = str(test.ids[each.row])
        sides = ", ".join(
            f"{side.policy.name}: {tier}, quality {quality:g}, ${cost:.3g}"
            for side, tier, quality, cost in zip(
                found.sides, each.served, each.quality, each.cost, strict=True
            )
        )
        parts += [escape(f"{name}. {sides}"), Code(test.prompts[each.row])]
        parts += [
            Folded(f"what {tier} answered", [Code(answers[name, tier])])
            for tier in dict.fromkeys(each.served)
            if (name, tier) in answers
        ]
    return parts


def _tried(make: Callable[[], Sequence[Part]]) -> Sequence[Part]:
    """The parts, or why the table does not carry them."""
    try:
        return make()
    except CascadeError as error:
        return [escape(error.message)]
