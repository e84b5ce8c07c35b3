"""Asks a policy, step by step, what it would have done with a request of the log.

It gets what it would have got: beliefs, quotes, answers and verdicts. Where the log does not know
what a tier would have said, the policy cannot be followed any further.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cascade.audit import PICO, AttemptRecord, AuditRecord
from cascade.engine import MOST_ATTEMPTS
from cascade.errors import CascadeError
from cascade.experiments import Arm
from cascade.forecast import OUTPUT_TOKENS
from cascade.quote import Quote, Shared
from cascade.tiers import ModelTier
from cascade.types import (
    Attempt,
    Beliefs,
    ChatRequest,
    Choice,
    Completion,
    Failure,
    Kind,
    Step,
    Usage,
    Verdict,
)
from evals.logged.calls import Answered, Calls, dollars, total


class ReplayError(CascadeError):
    """A policy cannot be replayed over a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """What a policy does with one request, as far as it can be followed.

    Attributes:
        tier: whose answer the client gets; None when there is none, or it is not known.
        given: whether that is the answer that the client did get.
        dollars: of what was followed; None where that is not known.
        calls: models asked for an answer.
        missing: the tier of which it would have to be known what it says; None when it was followed
            to its end.
        quoted: what asking that tier is expected to cost; None where that is not known.
    """

    tier: str | None = None
    given: bool = False
    dollars: float | None = None
    calls: int = 0
    missing: str | None = None
    quoted: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """Follows one policy.

    Attributes:
        arm: the policy, with what it believes.
        tiers: of the configuration.
        output_tokens: how many an answer of each tier has in the mean.
    """

    arm: Arm
    tiers: Mapping[str, ModelTier]
    output_tokens: Mapping[str, float]

    def follow(self, record: AuditRecord, beliefs: Beliefs, calls: Calls, served_by: str) -> Path:
        """What it does with a request.

        Args:
            record: of the request.
            beliefs: what the arm believes before any call.
            calls: what is known.
            served_by: the tier that answered the session's last turn; empty when not known.

        Raises:
            ReplayError: the policy does not come to an end.
        """
        request = ChatRequest(
            id=record.id,
            messages=(),
            tenant=record.tenant,
            session=record.session,
            tags=record.tags,
            served_by=served_by,
        )
        quotes = self.quotes(record)
        attempts: list[Attempt] = []
        spent: list[int | None] = [calls.estimate_pico if self.arm.estimator else 0]
        given: dict[int, bool] = {}
        asked: Counter[str] = Counter()
        now = beliefs
        while len(attempts) < MOST_ATTEMPTS:
            plan = self.arm.policy.decide(request, now, quotes, attempts)
            if not plan.steps:
                return _end(plan.accept, attempts, given, spent)
            step = plan.steps[0]
            found = calls.answer(step.tier, asked[step.tier])
            if found is None or not _judged(found, step):
                quote = quotes.get(step.tier)
                return Path(
                    dollars=dollars(total(spent)),
                    calls=len(attempts) + 1,
                    missing=step.tier,
                    quoted=None if quote is None or quote.dollars is None else float(quote.dollars),
                )
            asked[step.tier] += 1
            given[len(attempts)] = found.given
            spent += _bill(found, step)
            attempts.append(_attempt(len(attempts), step, found))
            said = [(each.step.tier, each.verdict) for each in attempts]
            now = self.arm.posterior.after(beliefs, said)
        raise ReplayError(f"policy {self.arm.policy.name!r} does not come to an end")

    def quotes(self, record: AuditRecord) -> dict[str, Quote]:
        """Of each tier: what was quoted where it was asked, and by list price, cold, elsewhere.

        What shadow calls were quoted is left out: what a policy does must not depend on the draw.
        """
        own = [call for call in record.attempts if call.kind == Kind.ANSWER]
        quoted = {call.tier: _quote(call) for call in reversed(own) if call.quoted_pico is not None}
        prompt = next((tokens for call in own if (tokens := prompt_tokens(call))), None)
        return {
            name: quoted.get(name) or self._listed(tier, prompt)
            for name, tier in self.tiers.items()
        }

    def _listed(self, tier: ModelTier, prompt: int | None) -> Quote:
        output = round(self.output_tokens.get(tier.name, OUTPUT_TOKENS))
        if prompt is None or tier.prices is None:
            return Quote(tier=tier.name)
        ttl = tier.prices.written_for(prompt)
        usage = Usage(input=prompt, cache_read=0, output=output)
        if ttl is not None:
            usage = Usage(input=0, cache_read=0, cache_write={ttl: prompt}, output=output)
        cost = tier.price(usage)
        return Quote(
            tier=tier.name,
            cold_tokens=prompt,
            expected_output_tokens=output,
            dollars=cost.total if cost else None,
        )


def prompt_tokens(call: AttemptRecord) -> int | None:
    """How long a call's prompt was: as reported, else as quoted."""
    if call.input_tokens is not None:
        return call.input_tokens + (call.cache_read_tokens or 0) + (call.cache_write_tokens or 0)
    if call.cold_tokens is None:
        return None
    return call.cold_tokens + (call.warm_tokens or 0)


def _judged(found: Answered, step: Step) -> bool:
    """Whether all is known that the step would bring."""
    failed = found.call.error_type is not None or found.call.partial
    return failed or step.judge is None or step.judge in found.said


def _bill(found: Answered, step: Step) -> list[int | None]:
    judged = found.said.get(step.judge) if step.judge else None
    return [found.call.cost_pico] if judged is None else [found.call.cost_pico, judged.pico]


def _attempt(index: int, step: Step, found: Answered) -> Attempt:
    call, said = found.call, found.said.get(step.judge or "")
    fault = None
    if call.error_type is not None:
        fault = Failure(type=call.error_type, message=call.error_message or "", status=502)
    verdict = None
    if said is not None:
        verdict = Verdict(judge=said.judge, score=said.score, features=said.features)
    answer = Completion(choices=(Choice(),), tier=step.tier, partial=call.partial)
    return Attempt(
        index=index,
        kind=Kind.ANSWER,
        step=step,
        completion=None if fault else answer,
        verdict=verdict,
        error=fault,
    )


def _end(
    accept: int | None,
    attempts: Sequence[Attempt],
    given: Mapping[int, bool],
    spent: Sequence[int | None],
) -> Path:
    return Path(
        tier=None if accept is None else attempts[accept].step.tier,
        given=accept is not None and given[accept],
        dollars=dollars(total(spent)),
        calls=len(attempts),
    )


def _quote(call: AttemptRecord) -> Quote:
    return Quote(
        tier=call.tier,
        replica=call.replica,
        warm_tokens=call.warm_tokens or 0,
        cold_tokens=call.cold_tokens or 0,
        expected_output_tokens=call.expected_output_tokens or 0,
        dollars=None if call.quoted_pico is None else Decimal(call.quoted_pico) / PICO,
        shared=Shared(credit=dollars(call.credit_pico) or 0.0),
        estimated=bool(call.quote_estimated),
    )
