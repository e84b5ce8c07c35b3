"""The published table of replica routing, simulated with the rules that serve, cell by cell."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any, Final, Literal, get_args

from cascade.backends.replica_choice import RuleName
from evals.panel_report import Printed
from evals.simulate.published import (
    PUBLISHED_CHAT,
    PUBLISHED_INFINITE,
    PUBLISHED_QUESTIONS,
    SERVERS,
    Published,
)
from evals.simulate.replicas import (
    IDLE_TOKENS,
    TOKEN_SECONDS,
    USD_PER_HOUR,
    Measured,
    Setting,
    infinite_cache,
    simulate,
)
from evals.simulate.workloads import Accounting, Chat, Questions

Part = Literal["chat", "infinite", "questions", "held-out"]
PARTS: Final = get_args(Part)

OURS: Final[RuleName] = "balanced_cache"
HELD_OUT: Final = 100
"""The first of the seeds that no constant of a rule was chosen on."""
HELD_OUT_SEEDS: Final = 8
RATES: Final = (4.0, 8.0, 16.0, 32.0)
"""Questions a second: half, once, twice and four times the rate of the published table."""

CHAT: Final = Chat()
QUESTIONS: Final = Questions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One setting and what was published of it, if anything."""

    part: Part
    setting: Setting
    published: Published | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A cell with its runs, one a seed."""

    cell: Cell
    seeds: Sequence[int]
    runs: Sequence[Measured]

    def mean(self, what: Callable[[Measured], float]) -> float:
        """Over the seeds."""
        return fmean(map(what, self.runs))

    def spread(self, what: Callable[[Measured], float]) -> float:
        """Standard deviation over the seeds; 0 for one."""
        values = list(map(what, self.runs))
        return stdev(values) if len(values) > 1 else 0.0


def cells(requests: int) -> list[Cell]:
    """All cells, with so many requests in each run."""
    return [*_chat(requests), *_infinite(requests), *_questions(requests), *_held_out(requests)]


def seeds_of(cell: Cell, seeds: int) -> range:
    """The seeds of a cell's runs."""
    if cell.part == "held-out":
        return range(HELD_OUT, HELD_OUT + HELD_OUT_SEEDS)
    return range(seeds)


def filled(cell: Cell, seeds: Sequence[int], done: Callable[[str], None]) -> Filled:
    """The cell's runs; `done` is told its part after each."""
    runs = []
    for seed in seeds:
        runs.append(simulate(cell.setting, seed))
        done(cell.part)
    return Filled(cell=cell, seeds=seeds, runs=runs)


def _chat(requests: int) -> Iterator[Cell]:
    for servers in (1, 2, 4, 8):
        for rule in _rules(servers):
            for accounting in ("own", "shared"):
                yield Cell(
                    part="chat",
                    setting=Setting(
                        workload=CHAT,
                        rule=rule,
                        replicas=servers,
                        accounting=accounting,
                        requests=requests,
                    ),
                    published=PUBLISHED_CHAT.get((servers, rule)),
                )


def _rules(servers: int) -> tuple[RuleName, ...]:
    return ("round_robin",) if servers == 1 else ("round_robin", "session", "cache_aware", OURS)


def _infinite(requests: int) -> Iterator[Cell]:
    for servers, published in PUBLISHED_INFINITE.items():
        yield Cell(
            part="infinite",
            setting=Setting(
                workload=CHAT,
                rule="random",
                replicas=servers,
                accounting="shared",
                requests=requests,
                idle_tokens=None,
            ),
            published=published,
        )


def _questions(requests: int) -> Iterator[Cell]:
    for rule in (*PUBLISHED_QUESTIONS, OURS):
        for accounting in ("own", "shared"):
            setting = _asked(rule, accounting, requests)
            yield Cell(part="questions", setting=setting, published=PUBLISHED_QUESTIONS.get(rule))


def _held_out(requests: int) -> Iterator[Cell]:
    for per_second in RATES:
        load = replace(QUESTIONS, per_second=per_second)
        for rule in ("prefix_hash", "cache_aware", OURS):
            yield Cell(part="held-out", setting=_asked(rule, "shared", requests, load))


def _asked(
    rule: RuleName, accounting: Accounting, requests: int, load: Questions = QUESTIONS
) -> Setting:
    return Setting(
        workload=load,
        rule=rule,
        replicas=SERVERS,
        accounting=accounting,
        requests=requests,
    )


def record(filled: Filled) -> dict[str, Any]:
    """A cell for machines: what was simulated, each seed's run, and what was published."""
    setting = filled.cell.setting
    return {
        "part": filled.cell.part,
        "workload": setting.workload.name,
        "rule": setting.rule,
        "replicas": setting.replicas,
        "accounting": setting.accounting,
        "requests": setting.requests,
        "requests_per_second": setting.workload.per_second,
        "idle_tokens": setting.idle_tokens,
        "published": asdict(filled.cell.published) if filled.cell.published else None,
        "runs": [
            {"seed": seed, **asdict(run)}
            for seed, run in zip(filled.seeds, filled.runs, strict=True)
        ],
    }


def tables(all_filled: Sequence[Filled]) -> list[Printed | str]:
    """What was measured beside what was published, to be printed or put into a page."""
    of = {part: [f for f in all_filled if f.cell.part == part] for part in _TABLES}
    parts: list[Printed | str] = []
    for part, printed in _TABLES.items():
        if of[part]:
            parts.append(printed(of[part]))
    return [*parts, _how(all_filled)]


def _chat_table(some: Sequence[Filled]) -> Printed:
    rows = []
    for own, shared in zip(some[::2], some[1::2], strict=True):
        setting, told = own.cell.setting, own.cell.published
        rows.append(
            (
                str(setting.replicas),
                setting.rule,
                _number(told.recomputed if told else None),
                _percent(own),
                _percent(shared),
                _number(told.dollars if told else None),
                f"{own.mean(_dollars):.1f}",
                f"{shared.mean(_dollars):.1f}",
                f"{shared.mean(_busiest_prefill):.2f}",
            )
        )
    head = ("servers", "rule", "published %", "own %", "shared %", "published $", "own $")
    return Printed("chat", (*head, "shared $", "busiest prefill"), rows)


def _infinite_table(some: Sequence[Filled]) -> Printed:
    rows = [
        (
            str(each.cell.setting.replicas),
            _number(each.cell.published.recomputed if each.cell.published else None),
            f"{100 * infinite_cache(CHAT, each.cell.setting.replicas):.2f}",
            _percent(each),
        )
        for each in some
    ]
    head = ("servers", "published %", "closed form %", "simulated %")
    return Printed("chat at random, caches without end", head, rows)


def _questions_table(some: Sequence[Filled]) -> Printed:
    rows = []
    for own, shared in zip(some[::2], some[1::2], strict=True):
        told = own.cell.published
        rows.append(
            (
                own.cell.setting.rule,
                _number(told.recomputed if told else None),
                _percent(shared),
                _percent(own),
                _number(told.busiest if told else None),
                f"{shared.mean(_busiest):.2f} ± {shared.spread(_busiest):.2f}",
                f"{shared.mean(_busiest_prefill):.2f}",
                _number(told.dollars if told else None),
                f"{shared.mean(_dollars):.0f}",
            )
        )
    head = ("rule", "published %", "shared %", "own %", "published busiest", "busiest")
    more = ("busiest prefill", "published $", "$")
    return Printed("questions on 280 documents, 8 servers", (*head, *more), rows)


def _held_out_table(some: Sequence[Filled]) -> Printed:
    rows = [
        (
            f"{each.cell.setting.workload.per_second:g}",
            each.cell.setting.rule,
            _percent(each),
            f"{each.mean(_busiest):.3f} ± {each.spread(_busiest):.3f}",
            f"{each.mean(_busiest_prefill):.2f}",
            f"{each.mean(_dollars):.0f}",
            f"{each.mean(lambda run: run.first_token_seconds[0]) * 1000:.0f}",
            f"{each.mean(_tail) * 1000:.0f} ± {each.spread(_tail) * 1000:.0f}",
        )
        for each in some
    ]
    head = ("a second", "rule", "computed %", "busiest", "busiest prefill", "$")
    title = f"questions, {HELD_OUT_SEEDS} held-out seeds"
    return Printed(title, (*head, "median ms", "p99 ms"), rows)


_TABLES: Final[dict[Part, Callable[[Sequence[Filled]], Printed]]] = {
    "chat": _chat_table,
    "infinite": _infinite_table,
    "questions": _questions_table,
    "held-out": _held_out_table,
}


def _how(all_filled: Sequence[Filled]) -> str:
    cell, seeds = all_filled[0].cell, all_filled[0].seeds
    return (
        f"{cell.setting.requests:,} requests a run after the caches filled; mean ± standard "
        f"deviation of seeds {seeds[0]} to {seeds[-1]} ({HELD_OUT} to "
        f"{HELD_OUT + HELD_OUT_SEEDS - 1} held out). {IDLE_TOKENS:,} tokens a cache. "
        f"{CHAT.per_second:g} chat requests and {QUESTIONS.per_second:g} questions a second, "
        f"{TOKEN_SECONDS * 1000:.1f} ms a token of an answer. $: of computing prompts, per million "
        f"requests at {USD_PER_HOUR} $ an hour. Busiest: requests, or seconds of computing "
        "prompts, of the server with the most, over the mean."
    )


def _percent(filled: Filled) -> str:
    return f"{100 * filled.mean(_recomputed):.1f} ± {100 * filled.spread(_recomputed):.1f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _recomputed(run: Measured) -> float:
    return run.recomputed


def _busiest(run: Measured) -> float:
    return run.busiest_requests


def _busiest_prefill(run: Measured) -> float:
    return run.busiest_prefill


def _dollars(run: Measured) -> float:
    return run.dollars


def _tail(run: Measured) -> float:
    return run.first_token_seconds[1]
