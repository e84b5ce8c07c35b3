"""The nouns of the domain, as frozen values.

Engine, policies, judges and backends exchange these and never change them. Messages, tools and
parameters stay the JSON the client sent, in OpenAI's shape: what Cascade does not interpret it must
pass on untouched.

Units are dollars (Decimal), seconds and tokens unless a name says otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from cascade.commit import Commit, CommitRule
from cascade.embedding import Embedding
from cascade.quote import Quote

Json = Mapping[str, Any]
"""A JSON object as it came over the wire."""


class Kind(StrEnum):
    """What an attempt was made for."""

    ANSWER = "answer"
    ESTIMATE = "estimate"
    JUDGE = "judge"
    SAMPLE = "sample"
    SHADOW = "shadow"
    PREWARM = "prewarm"


class Outcome(StrEnum):
    """How an attempt ended."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    BACKEND_ERROR = "backend_error"
    ESTIMATE_ERROR = "estimate_error"
    JUDGE_ERROR = "judge_error"
    INVALID = "invalid"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call in disjoint buckets. None means not reported, which is not zero.

    Attributes:
        input: prompt tokens neither read from nor written to a cache.
        cache_read: prompt tokens read from a cache.
        cache_write: prompt tokens written to a cache, by time to live ("5m", "1h").
        output: tokens of the answer, reasoning excluded where it is reported.
        reasoning: tokens of hidden reasoning.
    """

    input: int | None = None
    cache_read: int | None = None
    cache_write: Mapping[str, int] | None = None
    output: int | None = None
    reasoning: int | None = None

    @property
    def prompt(self) -> int | None:
        """All prompt tokens, cached or not; None when the upstream reported none."""
        if self.input is None:
            return None
        return self.input + (self.cache_read or 0) + sum((self.cache_write or {}).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Dollars of one call, by what they paid for. An unknown cost is None, never a zero Cost."""

    input: Decimal = Decimal(0)
    cache_read: Decimal = Decimal(0)
    cache_write: Decimal = Decimal(0)
    output: Decimal = Decimal(0)

    @property
    def total(self) -> Decimal:
        """The sum of the four parts."""
        return self.input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            input=self.input + other.input,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
        )


FREE = Cost()
"""What a call costs that used no model."""


def total(costs: Sequence[Cost | None]) -> Cost | None:
    """The sum; None when any is unknown."""
    known = [cost for cost in costs if cost is not None]
    return None if len(known) < len(costs) else sum(known, FREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the client allows and wants of one request; None where it did not say.

    Attributes:
        dollars: no call is begun whose expected bill would bring the request above it.
        seconds: from the request's arrival; no call is begun that is not expected to end in time.
        quality: the lowest probability of being acceptable at which an answer is taken.
    """

    dollars: Decimal | None = None
    seconds: float | None = None
    quality: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One chat request.

    Attributes:
        id: unique, also the key of the audit row.
        model: what the client asked for: an experiment, a policy or a tier.
        messages: the conversation, as sent.
        params: everything else the client sent except model, messages, tools and stream options.
        tools: tool definitions as sent; None when the client sent none.
        tenant: whose request it is; caches are never shared between tenants.
        user: the client's name for whoever asked; empty without one.
        key_id: short hash of the key that the client sent; empty without one.
        session: the conversation it belongs to.
        unit: sticky key of experiment assignment.
        budget: the client's limits, if it stated any.
        idempotency_key: the client's name for this request and its repetitions; empty without one.
        tags: labels the client put on the request.
        trace: the trace it is part of, as the client's `traceparent` header; empty without one.
        trace_state: what others noted on that trace, as its `tracestate`; empty without one.
        context: headers that a call for it carries: where in a trace it is; empty without traces.
        escalation: how much its session had to go up lately, from 0 to 1.
        served_by: the tier that answered its session's last turn; empty when that is not known.
        prewarm: only a cache is to be filled; nobody reads the answer.
    """

    id: str
    model: str = ""
    messages: Sequence[Json]
    params: Json = field(default_factory=dict)
    tools: Sequence[Json] | None = None
    tenant: str = "default"
    user: str = ""
    key_id: str = ""
    session: str = ""
    unit: str = ""
    budget: Budget | None = None
    idempotency_key: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    trace: str = ""
    trace_state: str = ""
    context: Mapping[str, str] = field(default_factory=dict)
    escalation: float = 0.0
    served_by: str = ""
    prewarm: bool = False

    def asking(self, needs: Json) -> "ChatRequest":
        """This request with the parameters that a judge needs; the client's larger ask stands."""
        if not needs:
            return self
        mine = self.params
        more = {name: max(value, mine.get(name) or value) for name, value in needs.items()}
        return replace(self, params={**mine, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of the n answers of a completion.

    Attributes:
        text: the answer's text; empty when there is none.
        tool_calls: complete tool calls in OpenAI's shape.
        finish_reason: why it ended; None when it was cut.
        logprobs: one OpenAI logprob entry a token; None when the upstream gave none.
        extra: message fields that Cascade does not interpret (reasoning_content, refusal, ...).
    """

    text: str = ""
    tool_calls: Sequence[Json] = ()
    finish_reason: str | None = None
    logprobs: Sequence[Json] | None = None
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What one call to one model returned; partial when it was cut or cancelled.

    Attributes:
        choices: at least one.
        tier: name of the tier that was called.
        model: the model's own name, as the upstream gave it.
        replica: which of the tier's servers answered.
        usage: tokens by bucket.
        partial: True when the stream ended before the model did.
        tries: how often the upstream was asked for it.
        unreported_tries: failed tries before it that may have been billed; with any, nobody knows
            what it cost.
        queued_seconds: how long it waited for its turn before it was sent.
    """

    choices: Sequence[Choice]
    tier: str = ""
    model: str = ""
    replica: str | None = None
    usage: Usage = field(default_factory=Usage)
    partial: bool = False
    tries: int = 1
    unreported_tries: int = 0
    queued_seconds: float = 0.0

    @property
    def text(self) -> str:
        """Text of the first choice."""
        return self.choices[0].text

    @property
    def tool_calls(self) -> Sequence[Json]:
        """Tool calls of the first choice."""
        return self.choices[0].tool_calls

    @property
    def finish_reason(self) -> str | None:
        """Finish reason of the first choice."""
        return self.choices[0].finish_reason

    @property
    def logprobs(self) -> Sequence[Json] | None:
        """Logprob entries of the first choice."""
        return self.choices[0].logprobs

    def each(self) -> list["Completion"]:
        """One completion a choice, for judges, which look at one answer at a time."""
        if len(self.choices) == 1:
            return [self]
        return [replace(self, choices=(choice,)) for choice in self.choices]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a streamed answer, in OpenAI's chunk shape; the last has the completion."""

    choices: Sequence[Json] = ()
    model: str = ""
    replica: str | None = None
    completion: Completion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """P(a tier's answer is acceptable), for each tier.

    Attributes:
        mean: probability by tier name.
        covariance: of the probabilities, by pair of tier names; None when not estimated.
        flags: what a policy or an analyst must know of it ("out_of_domain", "fallback").
        features: what the estimate was made from, for the audit log.
        embedding: of what was classified, for the audit log where it is to keep that.
        cost: of the estimate itself; None when it is unknown.
    """

    mean: Mapping[str, float]
    covariance: Mapping[tuple[str, str], float] | None = None
    flags: frozenset[str] = frozenset()
    features: Mapping[str, float] = field(default_factory=dict)
    embedding: Embedding | None = None
    cost: Cost | None = FREE


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge says of an answer.

    Attributes:
        judge: the judge's name.
        score: in [0, 1], higher is better; None means that the judge cannot tell.
        others: of tiers that did not give this answer, P(theirs would be acceptable), by tier.
        features: numbers the score came from.
        final: no further judge needs to be asked.
        reason: one sentence for the person who reads the audit log.
        cost: of the judge's own model calls; None when it is unknown.
    """

    judge: str
    score: float | None
    others: Mapping[str, float] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)
    final: bool = False
    reason: str = ""
    cost: Cost | None = FREE

    def __post_init__(self) -> None:
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise ValueError(f"judge {self.judge!r} gave score {self.score!r}, outside [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call a policy wants: the tier, the judge of its answer (None: accept unseen)."""

    tier: str
    judge: str | None = None
    commit: CommitRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a policy wants next. Only the first step is used; no steps means that it is done.

    Attributes:
        steps: calls still to make, the next one first.
        reason: one sentence, with the numbers it rests on.
        threshold: the score the last verdict was held against; None when there was none.
        accept: index of the attempt whose answer is taken; None with steps, or with no answer.
        degraded: the answer taken is less than the policy wanted.
        leads: by how many dollars each tier that may be asked leads what else could be done, below
            0 how much cheaper it would have to be; of a policy that weighs dollars.
    """

    steps: Sequence[Step] = ()
    reason: str = ""
    threshold: float | None = None
    accept: int | None = None
    degraded: bool = False
    leads: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt or a request has no answer: the error's class, text, HTTP status and code.

    Attributes:
        retry_after: seconds after which the client may try again; None when nobody said.
    """

    type: str
    message: str
    status: int
    code: str = "internal_error"
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call that was made, whatever became of it.

    Attributes:
        index: position among the request's attempts.
        step: the step it carries out.
        reason: why the policy made it.
        threshold: the score its verdict was held against.
        commit: how it was released while it grew; None when it was not.
        cost: None when it is unknown.
        usage_estimated: nobody said what the call used; tokens and cost are what it probably did.
        propensity: how likely a call drawn by chance was to be made; None of any other.
        started: seconds after the request began.
        seconds: how long it took.
        first_token_seconds: until the first piece of the answer; None when none came.
        queued_seconds: how long it waited for its turn; None of a call that failed without waiting.
    """

    index: int
    kind: Kind
    step: Step
    reason: str = ""
    quote: Quote | None = None
    outcome: Outcome | None = None
    completion: Completion | None = None
    verdict: Verdict | None = None
    threshold: float | None = None
    commit: Commit | None = None
    error: Failure | None = None
    cost: Cost | None = FREE
    cold_premium: Decimal | None = None
    usage_estimated: bool = False
    propensity: float | None = None
    started: float = 0.0
    seconds: float = 0.0
    first_token_seconds: float | None = None
    queued_seconds: float | None = None

    @property
    def answered(self) -> bool:
        """Whether it is an answer that came in whole."""
        whole = self.completion is not None and not self.completion.partial
        return self.kind is Kind.ANSWER and whole and self.error is None
