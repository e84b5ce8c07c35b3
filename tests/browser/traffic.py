"""Three days of made-up traffic in an audit log, the same each time but for when it ends.

Before them lies one request whose names are as bad as a client can make them.
"""

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from cascade.prefix.segments import fingerprint
from cascade.quote import Quote
from cascade.result import CascadeResult
from cascade.types import Attempt, Beliefs, ChatRequest, Cost, Failure, Kind, Outcome, Step, Usage
from serving.alerts.log import Finding, keep
from serving.store.database import engine_for
from serving.store.feedback import Feedback
from serving.store.schema import upgrade
from serving.store.sink import SqlAuditSink
from tests.builders import attempt, completion, failed, request, result, verdict

HOURS = 70
HOSTILE_HOURS = 100
HOSTILE = "<b>" + "w" * 150
"""A long word that looks like markup."""
SESSIONS = 170
TENANTS = ("acme", "globex", "initech")
SYSTEM = "You answer for the help desk of a shop that sells bicycles. " * 30
RATES = {"small": (0.02, 0.002, 0.04), "large": (0.2, 0.02, 0.4)}
MODELS = {"small": "qwen2.5-coder-0.5b", "large": "qwen2.5-coder-1.5b"}
THRESHOLD = 0.7


class Traffic:
    """Results in the order in which they were asked for, and what was said of them."""

    def __init__(self, until: float, seed: int = 7) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - nothing secret
        self._times = random.Random(seed + 1)  # noqa: S311 - nor this
        self._until = until
        self.results: list[CascadeResult] = []
        self.feedback: list[Feedback] = []
        for number in range(SESSIONS):
            self._session(number)
        self.results.append(self._wide())
        self.results.sort(key=lambda each: each.started_at)

    def _wide(self) -> CascadeResult:
        """A request whose every word is that."""
        long = HOSTILE
        asked = request(
            id="wide",
            model=long,
            session=long,
            unit=long,
            tenant=long,
            user=long,
            tags={long: long},
        )
        return result(
            request=asked,
            policy=long,
            experiment=None,
            arm=None,
            attempts=(attempt(reason=long),),
            reason=long,
            started_at=self._until - HOSTILE_HOURS * 3600,
        )

    def _session(self, number: int) -> None:
        draw, age = self._draw, self._age()
        tenant, arm = draw.choice(TENANTS), ("control", "cascade")[number % 2]
        date = "2026-11-30" if number % 5 else "2026-11-30 10:0"
        messages = [{"role": "system", "content": SYSTEM + date}]
        warm: dict[str, int] = {}
        for turn in range(draw.choice((1, 2, 3, 5))):
            if number % 5 == 0:
                messages[0] = {"role": "system", "content": f"{SYSTEM}{date}{turn}"}
                warm = {}
            messages.append({"role": "user", "content": f"Question {turn} of {number}. " * 12})
            asked = request(
                id=f"{number:03d}{turn}{draw.getrandbits(72):018x}",
                messages=list(messages),
                session=f"s-{number}",
                unit=f"s-{number}",
                tenant=tenant,
                user=f"u-{number % 40}",
                tags={},
            )
            made = self._request(asked, arm, self._until - age, warm)
            self.results.append(made)
            self._say(made)
            messages.append({"role": "assistant", "content": f"Answer {turn} of {number}. " * 20})
            age -= 20 + 200 * self._times.random()
            if age < 5:
                return

    def _age(self) -> float:
        """Seconds before the end at which a session begins: more by day than by night.

        The day is counted back from the end, so that the draws are the same whenever that is.
        """
        while True:
            age = 60 + HOURS * 3600 * self._times.random()
            if self._times.random() < 0.55 + 0.45 * math.cos(age / 86400 * 2 * math.pi):
                return age

    def _request(
        self, asked: ChatRequest, arm: str, at: float, warm: dict[str, int]
    ) -> CascadeResult:
        draw, tokens = self._draw, sum(len(str(m["content"])) for m in asked.messages) // 4
        hard = draw.betavariate(1.2, 2.2)
        baseline = self._baseline(tokens, min(warm.get("dearest", 0), tokens))
        warm["dearest"] = tokens + 80
        attempts, clock = list[Attempt](), 0.003
        if draw.random() < 0.02:
            why = "always large"
            late = 0.5 + draw.random()
            attempts = [failed(0, tier="large", reason=why, started=clock, seconds=late)]
            answer, reason = None, "large failed; no tier is left to ask"
        elif arm == "control":
            attempts = [self._call(0, "large", tokens, warm, clock, "always large")]
            answer, reason = attempts[0].completion, "always large"
        else:
            attempts, reason = self._ladder(tokens, warm, clock, hard)
            [answer] = [each.completion for each in attempts if each.outcome is Outcome.ACCEPTED]
        ended = max(each.started + each.seconds for each in attempts) + 0.001
        fault = Failure(type="NoAnswerError", message="connection refused", status=503)
        degraded = answer is not None and draw.random() < 0.015
        costs = [each.cost for each in attempts if each.cost is not None]
        return result(
            request=asked,
            policy="cascade" if arm == "cascade" else "always-large",
            config_version="c0ffee123456",
            arm=arm,
            beliefs=Beliefs(mean={"small": 1 - hard, "large": 1 - hard * 0.45}),
            attempts=tuple(attempts),
            completion=answer,
            cost=sum(costs, Cost()) if answer else None,
            baseline=baseline,
            reason=reason,
            degraded=degraded,
            error=None if answer else fault,
            started_at=at,
            seconds=ended,
            overhead_seconds=0.003,
            fingerprint=fingerprint(asked, tokens_per_byte=0.25),
        )

    def _ladder(
        self, tokens: int, warm: dict[str, int], clock: float, hard: float
    ) -> tuple[list[Attempt], str]:
        draw = self._draw
        score = min(max(1 - hard + draw.gauss(0, 0.14), 0.02), 0.99)
        step = Step(tier="small", judge="confident")
        said = f"mean {math.log(score):.3f} over {tokens // 10} tokens"
        word = verdict(round(score, 3), judge="confident", reason=said)
        first = self._call(0, "small", tokens, warm, clock, "the first step of the ladder")
        told, good = f"confident gives small's answer {score:.3f}", score >= THRESHOLD
        first = replace(
            first,
            step=step,
            verdict=word,
            threshold=THRESHOLD,
            outcome=Outcome.ACCEPTED if good else Outcome.REJECTED,
        )
        end = first.started + first.seconds
        judge = attempt(
            1,
            kind=Kind.JUDGE,
            step=step,
            reason="judges attempt 0",
            outcome=None,
            completion=None,
            verdict=word,
            cost=Cost(),
            quote=None,
            cold_premium=None,
            started=end,
            seconds=0.004 + 0.01 * draw.random(),
            first_token_seconds=None,
        )
        if good:
            return [first, judge], f"{told}, which reaches {THRESHOLD:.3f}"
        why = f"{told}, which is below {THRESHOLD:.3f}"
        up = self._call(2, "large", tokens, warm, end + judge.seconds, why)
        return [first, judge, up], "large is not judged"

    def _call(  # noqa: PLR0917 - all of them in one order
        self, index: int, tier: str, tokens: int, warm: dict[str, int], clock: float, why: str
    ) -> Attempt:
        draw = self._draw
        read = min(warm.get(tier, 0), tokens) // 16 * 16
        output = 20 + int(120 * draw.random())
        expected = 80
        fresh, cached, out = RATES[tier]
        cost = Cost(
            input=Decimal(str(fresh)) * (tokens - read) / 10**6,
            cache_read=Decimal(str(cached)) * read / 10**6,
            output=Decimal(str(out)) * output / 10**6,
        )
        quoted = (fresh * (tokens - read) + cached * read + out * expected) / 1e6
        warm[tier] = tokens + output
        first = (
            (0.04 if tier == "small" else 0.11)
            * (1 + (tokens - read) / 900)
            * (0.8 + 0.5 * draw.random())
        )
        return attempt(
            index,
            tier=tier,
            reason=why,
            quote=Quote(
                tier=tier,
                warm_tokens=read,
                cold_tokens=tokens - read,
                expected_output_tokens=expected,
                dollars=Decimal(f"{quoted:.12f}"),
            ),
            completion=completion(
                tier=tier,
                model=MODELS[tier],
                replica=f"127.0.0.1:{8101 + (tier == 'large')}",
                usage=Usage(input=tokens - read, cache_read=read, output=output),
            ),
            cost=cost,
            cold_premium=Decimal(str(fresh - cached)) * (tokens - read) / 10**6,
            started=clock,
            seconds=first + output * (0.006 if tier == "small" else 0.014),
            first_token_seconds=first,
        )

    def _baseline(self, tokens: int, read: int) -> Cost:
        fresh, cached, out = RATES["large"]
        dollars = (fresh * (tokens - read) + cached * read + out * 80) / 1e6
        return Cost(input=Decimal(f"{dollars:.12f}"))

    def _say(self, made: CascadeResult) -> None:
        draw = self._draw
        if made.completion is None or draw.random() > 0.6:
            return
        believed = made.beliefs.mean[made.completion.tier] if made.beliefs else 0.5
        score = float(draw.random() < min(believed + 0.12, 0.97))
        self.feedback.append(
            Feedback(
                request_id=made.request.id,
                tenant=made.request.tenant,
                source="thumbs",
                given_at=made.started_at + 30,
                score=score,
                label="good" if score else "bad",
                correction=None,
                comment=None,
            )
        )


def fill(url: str, spool: Path, until: float) -> Traffic:
    """A database with the traffic in it."""
    upgrade(url)
    traffic = Traffic(until)
    engine = engine_for(url)
    sink = SqlAuditSink(engine, spool)
    sink.start()
    for each in traffic.results:
        sink.write(each)
    asyncio.run(_keep(sink, traffic.feedback))
    alert = Finding(
        kind="cache_hit_rate",
        subject="small",
        message=(
            "tier small read 31% of its prompt tokens from a cache in the last hour; usual is "
            "56.2%, the least of the week was 47.9%"
        ),
        details={},
    )
    assert keep(engine, alert)
    assert sink.flush(60)
    sink.close(5)
    engine.dispose()
    return traffic


async def _keep(sink: SqlAuditSink, said: Sequence[Feedback]) -> None:
    await asyncio.gather(*map(sink.keep, said))
