"""Requests of the audit log for people, in 100 columns, and as JSON for programs.

Whatever came from a client or a model is shown as plain text: it may hold what a terminal, or rich,
would take for a command.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cascade.audit import PICO, AttemptRecord, AuditRecord
from cascade.types import Kind
from serving.store.feedback import Feedback
from serving.store.formats import (
    COLOURS,
    NONE,
    coloured,
    columns,
    decimal,
    duration,
    features,
    moment,
    percent,
    pico_dollars,
    plain,
    tokens,
)

_ID_WIDTH = 12


def tail_table(records: Iterable[AuditRecord]) -> RenderableType:
    """One line a request, in the order given."""
    numbers = ("cost", "time", "own")
    table = columns("at (UTC)", "id", "asked for", "way", "status", right=numbers)
    for record in records:
        table.add_row(
            moment(record.created_at)[11:19],
            plain(record.id[:_ID_WIDTH]),
            plain(record.requested_model),
            _way(record),
            coloured(record.status),
            pico_dollars(record.cost_pico),
            duration(record.duration_ms),
            duration(record.overhead_ms),
        )
    return table


def request_view(record: AuditRecord, said: Sequence[Feedback] = ()) -> RenderableType:
    """One request: what was known, what was done and why, what it cost, what was said of it."""
    return Group(
        Panel(_head(record), title=plain(f"request {record.id}"), title_align="left"),
        _beliefs(record),
        _calls([call for call in record.attempts if not _judges(call)]),
        _steps(record),
        _foot(record),
        *(plain(_feedback(each)) for each in said),
    )


def request_json(record: AuditRecord, said: Sequence[Feedback] = ()) -> dict[str, Any]:
    """The record as JSON takes it: money as decimal strings of dollars, times as ISO 8601."""
    return {
        **_in_dollars(asdict(record)),
        "created_at": _iso(record.created_at),
        "attempts": [_in_dollars(asdict(call)) for call in record.attempts],
        "feedback": [{**asdict(each), "given_at": _iso(each.given_at)} for each in said],
    }


def _head(record: AuditRecord) -> RenderableType:
    experiment = f"experiment {record.experiment}, arm {record.arm}, " if record.experiment else ""
    messages = "1 message" if record.prompt_messages == 1 else f"{record.prompt_messages} messages"
    lines = {
        "time": f"{moment(record.created_at)} UTC",
        "asked for": f"{record.requested_model} ({experiment}policy {record.policy})",
        "answered by": f"{record.tier} ({record.model})" if record.tier else "nobody",
        "whose": _whose(record),
        "prompt": f"{messages}{_kept(record)}",
        "versions": _versions(record),
        "segments": ", ".join(
            f"{each['name']} {each['tokens']:,}" for each in record.segments or ()
        ),
        "tags": ", ".join(f"{name}={value}" for name, value in record.tags.items()),
        "error": f"{record.error_type}: {record.error_message}" if record.error_type else "",
    }
    grid = Table.grid(padding=(0, 2))
    grid.add_row(plain("status", "dim"), coloured(record.status))
    for name, value in lines.items():
        if value:
            grid.add_row(plain(name, "dim"), plain(value))
    return grid


def _whose(record: AuditRecord) -> str:
    user = f", user {record.end_user}" if record.end_user else ""
    key = f", key {record.key_id}" if record.key_id else ""
    return f"tenant {record.tenant}, session {record.session or NONE}{user}{key}"


def _kept(record: AuditRecord) -> str:
    """What is kept of the prompt, and how it is read."""
    hashed = f", hash {record.prompt_hash}" if record.prompt_hash else ""
    if record.prompt_text is None:
        return hashed
    return f"{hashed}, kept {record.prompt_form}: --prompt prints it"


def _versions(record: AuditRecord) -> str:
    """Of what may have changed since: configuration, prices, and the experiment."""
    prices = f", prices {record.prices_version}" if record.prices_version else ""
    changed = record.experiment_version
    experiment = "" if changed is None else f", experiment changed by {changed}"
    return f"configuration {record.config_version}{prices}{experiment}"


def _beliefs(record: AuditRecord) -> RenderableType:
    if not record.beliefs:
        return plain("No estimate was made.", "dim")
    means = ", ".join(f"{tier} {decimal(mean)}" for tier, mean in record.beliefs.items())
    flags = f" ({', '.join(record.belief_flags)})" if record.belief_flags else ""
    made_from = f"\nestimated from {features(record.features)}" if record.features else ""
    hard = "" if record.difficulty is None else f"; difficulty {decimal(record.difficulty)}"
    return plain(f"P(acceptable answer){flags}: {means}{hard}{made_from}")


def _calls(calls: Sequence[AttemptRecord]) -> RenderableType:
    if not calls:
        return plain("No model was called.", "dim")
    numbers = ("score", "in", "cached", "out", "cost", "time")
    table = columns("#", "tier", "outcome", right=numbers)
    for call in calls:
        table.add_row(
            str(call.index),
            plain(call.tier),
            coloured(call.outcome or NONE),
            _against(call),
            tokens(call.input_tokens),
            tokens(call.cache_read_tokens),
            tokens(_sum(call.output_tokens, call.reasoning_tokens)),
            _bill(call),
            duration(call.duration_ms),
        )
    return table


def _steps(record: AuditRecord) -> RenderableType:
    """Why each step was taken and what came of it, in words."""
    grid = Table.grid(padding=(0, 1))
    for call in record.attempts:
        judging = _judges(call)
        who = f"{call.judge} judges {call.tier}" if judging else f"{call.tier}, {call.kind}"
        grid.add_row(plain(str(call.index), "dim"), plain(f"{who}: {call.reason}", "bold"))
        for fact in _judge_facts(call) if judging else _call_facts(call):
            grid.add_row("", plain(fact))
    return grid


def _judges(call: AttemptRecord) -> bool:
    """Whether it is about an answer, and not one: a shadow call with a judge is such a one too."""
    return call.kind == Kind.JUDGE or (call.kind == Kind.SHADOW and call.judge is not None)


def _call_facts(call: AttemptRecord) -> Iterator[str]:
    model = f" by {call.model}" if call.model else ""
    replica = f" at {call.replica}" if call.replica else ""
    first = f", first token after {duration(call.first_token_ms)}" if call.first_token_ms else ""
    finish = f", finished: {call.finish_reason}" if call.finish_reason else ""
    cut = ", cut off" if call.partial else ""
    tries = f", asked {call.tries} times" if (call.tries or 1) > 1 else ""
    begun = f"{duration(call.started_ms)} after the request"
    chance = "" if call.propensity is None else f", drawn with probability {call.propensity:g}"
    yield f"{begun}{model}{replica}{tries}{first}{finish}{cut}{chance}"
    if call.quoted_pico is not None:
        premium = call.cold_premium_pico
        cold = f", {pico_dollars(premium)} of it because its cache was cold" if premium else ""
        credit = (
            f" less {pico_dollars(call.credit_pico)} for what it warms" if call.credit_pico else ""
        )
        yield f"quoted {pico_dollars(call.quoted_pico)}{credit}, billed {_bill(call)}{cold}"
    if call.warm_tokens:
        prompt = call.warm_tokens + (call.cold_tokens or 0)
        yield f"{call.warm_tokens:,} of {prompt:,} prompt tokens were expected to be warm"
    if call.usage_estimated:
        yield "the model did not say what it used: tokens and bill are estimated"
    if call.error_type:
        yield f"{call.error_type}: {call.error_message}"


def _judge_facts(call: AttemptRecord) -> Iterator[str]:
    took = f"{duration(call.duration_ms)} for {pico_dollars(call.cost_pico)}"
    if call.error_type:
        yield f"failed in {took}: {call.error_type}: {call.error_message}"
        return
    score = "cannot tell" if call.score is None else f"score {call.score:.3f}"
    yield f"{score} in {took}{f': {call.verdict_reason}' if call.verdict_reason else ''}"
    if call.features:
        yield features(call.features)


def _foot(record: AuditRecord) -> RenderableType:
    return Group(
        Text(),
        Text.assemble(
            ("total ", "dim"),
            (pico_dollars(record.cost_pico), "bold"),
            (" in ", "dim"),
            (duration(record.duration_ms), "bold"),
            (f", of which {duration(record.overhead_ms)} were Cascade's own", "dim"),
        ),
        *([plain(_comparison(record))] if record.baseline_pico is not None else []),
        plain(record.reason),
    )


def _comparison(record: AuditRecord) -> str:
    """What the request would have cost without Cascade."""
    baseline = record.baseline_pico or 0
    told = f"the dearest tier alone: {pico_dollars(baseline)}"
    if record.cost_pico is None:
        return told
    saved = baseline - record.cost_pico
    return f"{told}, saved {pico_dollars(saved)} ({percent(saved, baseline)})"


_PREFERRED = {"this": "better than", "other": "worse than", "same": "as good as"}


def _feedback(said: Feedback) -> str:
    score = None if said.score is None else f"score {decimal(said.score)}"
    correction = f"should have been: {said.correction}" if said.correction is not None else None
    compared = None
    if said.preferred is not None:
        compared = f"{_PREFERRED[said.preferred]} that of {said.compared_to}"
    parts = [each for each in (score, said.label, compared, correction, said.comment) if each]
    source = f" of {said.source}" if said.source else ""
    return f"feedback{source}, {moment(said.given_at)} UTC: {'; '.join(parts)}"


def _bill(call: AttemptRecord) -> str:
    """What a call cost, marked when that is an estimate."""
    mark = "~" if call.usage_estimated and call.cost_pico is not None else ""
    return f"{mark}{pico_dollars(call.cost_pico)}"


def _way(record: AuditRecord) -> Text:
    """The tiers asked, in order, each in the colour of its outcome."""
    calls = [call for call in record.attempts if call.kind == Kind.ANSWER]
    steps = [plain(call.tier, COLOURS.get(call.outcome or "", "")) for call in calls]
    return Text(" > ").join(steps) if steps else Text(NONE)


def _against(call: AttemptRecord) -> str:
    """The score beside the threshold it was held against."""
    if call.judge is None:
        return NONE
    if call.score is None:
        return "none"
    if call.threshold is None:
        return f"{call.score:.3f}"
    sign = ">=" if call.score >= call.threshold else "<"
    return f"{call.score:.3f} {sign} {call.threshold:.3f}"


def _sum(*numbers: int | None) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _in_dollars(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name.replace("_pico", "_usd"): _exact(value) if name.endswith("_pico") else value
        for name, value in fields.items()
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _exact(pico: int | None) -> str | None:
    return None if pico is None else f"{Decimal(pico) / PICO:f}"
