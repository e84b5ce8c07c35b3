"""A made-up audit log whose truth is known: what each tier's answer was worth, and what it cost."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from cascade.audit import record
from cascade.quote import Quote
from cascade.types import Attempt, Beliefs, Cost, Kind, Outcome, Step, Usage
from serving.config import ConfigFile
from serving.shadow.draw import drawn
from serving.store.feedback import Feedback
from serving.store.late import Late
from serving.store.rows import decode, encode, insert
from serving.wiring import Wiring
from tests.builders import attempt, completion, request, result, verdict

CONFIG = """\
tiers:
  small: {backend: scripted, capabilities: [logprobs],
          price: {input: 0.1, cache_read: 0.01, output: 0.2}}
  large: {backend: scripted, price: {input: 1, cache_read: 0.1, output: 2}}
  huge: {backend: scripted, price: {input: 10, cache_read: 1, output: 20}}
judges:
  sound: {type: logprob}
  quality: {type: format}
estimators:
  looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}
policies:
  cascade: {type: ladder, steps: [{tier: small, judge: sound, accept_at: 0.7}, {tier: large}]}
  loose: {type: ladder, steps: [{tier: small, judge: sound, accept_at: 0.4}, {tier: large}]}
  strict: {type: ladder, steps: [{tier: small, judge: sound, accept_at: 0.9}, {tier: large}]}
  other-judge: {type: ladder, steps: [{tier: small, judge: quality, accept_at: 0.5}, {tier: large}]}
  weighing: {type: utility, estimator: looks, tiers: [{tier: small, judge: sound}, {tier: large}],
             quality_usd: 0.001}
  poor: {type: utility, estimator: looks, tiers: [{tier: small, judge: sound}, {tier: large}],
         quality_usd: 0.00000001}
  rich: {type: utility, estimator: looks, tiers: [{tier: small, judge: sound}, {tier: large}],
         quality_usd: 1000}
  always-small: {type: fixed, tier: small}
  always-large: {type: fixed, tier: large}
  always-huge: {type: fixed, tier: huge}
"""
START = 1_790_000_000.0


def wired(folder, text=CONFIG):
    path = folder / "cascade.yaml"
    path.write_text(text)
    file = ConfigFile(path)
    return Wiring(file.config, path.parent).snapshot()


@dataclass(frozen=True)
class Truth:
    """By tier, of every request: what its answer is worth and what it costs; and the score."""

    worth: dict[str, np.ndarray]
    cost: dict[str, np.ndarray]
    score: np.ndarray

    def ladder(self, accept_at):
        """Mean cost and worth of the ladder from small to large."""
        up = self.score < accept_at
        cost = self.cost["small"] + np.where(up, self.cost["large"], 0.0)
        return float(cost.mean()), float(
            np.where(up, self.worth["large"], self.worth["small"]).mean()
        )

    def always(self, tier):
        return float(self.cost[tier].mean()), float(self.worth[tier].mean())


def truth(n, seed=0):
    rng = np.random.default_rng(seed)
    hard = rng.random(n)
    small = (rng.random(n) < 0.95 - 0.7 * hard).astype(float)
    large = (rng.random(n) < 0.97 - 0.3 * hard).astype(float)
    score = np.clip(0.45 + 0.4 * small + rng.normal(scale=0.18, size=n), 0.01, 0.99)
    tokens = {"small": rng.integers(20, 200, size=n), "large": rng.integers(20, 200, size=n)}
    prompt = 100
    cost = {
        "small": (prompt * 0.1 + tokens["small"] * 0.2) / 1e6,
        "large": (prompt * 1.0 + tokens["large"] * 2.0) / 1e6,
    }
    return Truth(worth={"small": small, "large": large}, cost=cost, score=score)


def write(
    engine,
    real,
    *,
    accept_at=0.7,
    share=0.2,
    judged=True,
    said=0.0,
    seed=0,
    policy="cascade",
    start=START,
):
    """The log of the ladder's service, with shadow calls of a share of the requests."""
    rng = np.random.default_rng(seed + 1)
    entries = []
    for i, score in enumerate(real.score):
        name = f"r{i:06d}"
        own = _own(real, i, float(score), accept_at)
        tier = own[-1].step.tier
        row = result(
            request=request(id=name, session=f"s{i // 3}", tags={}),
            policy=policy,
            experiment=None,
            arm=None,
            attempts=own,
            completion=completion(tier=tier),
            beliefs=Beliefs(mean={"small": 0.5, "large": 0.5}, flags=frozenset({"no_estimator"})),
            started_at=start + i,
        )
        entries.append(encode(record(row)))
        if drawn(name, share):
            calls = _shadows(real, i, own, share, judged=judged)
            if calls:
                entries.append(encode(Late(request_id=name, attempts=calls, at=start + i)))
        if rng.random() < said:
            entries.append(encode(_said(name, real.worth[tier][i], start + i)))
    with engine.begin() as connection:
        insert(connection, [decode(line) for line in entries])


def _call(real, i, index, tier, **more):
    price = Cost(input=Decimal(repr(float(real.cost[tier][i]))))
    dear = {"small": Decimal(10), "large": Decimal(100)}[tier]
    return attempt(
        index,
        tier=tier,
        cost=price,
        quote=Quote(tier=tier, cold_tokens=100, expected_output_tokens=110, dollars=dear / 10**6),
        completion=completion(tier=tier, usage=Usage(input=100, cache_read=0, output=110)),
        **more,
    )


def _own(real, i, score, accept_at):
    step, said = Step(tier="small", judge="sound"), verdict(score, judge="sound")
    accepted = score >= accept_at
    outcome = Outcome.ACCEPTED if accepted else Outcome.REJECTED
    calls = [
        _call(real, i, 0, "small", step=step, verdict=said, outcome=outcome),
        Attempt(index=1, kind=Kind.JUDGE, step=step, verdict=said, cost=Cost()),
    ]
    return calls if accepted else [*calls, _call(real, i, 2, "large")]


def _shadows(real, i, own, share, *, judged):
    calls = []
    asked = [each.step.tier for each in own if each.kind is Kind.ANSWER]
    for tier in ("small", "large"):
        if tier not in asked:
            index = len(own) + len(calls)
            shadow = {"kind": Kind.SHADOW, "outcome": None, "propensity": share}
            calls.append(_call(real, i, index, tier, **shadow))
        if judged:
            calls.append(
                Attempt(
                    index=len(own) + len(calls),
                    kind=Kind.SHADOW,
                    step=Step(tier=tier, judge="quality"),
                    verdict=verdict(float(real.worth[tier][i]), judge="quality"),
                    cost=Cost(),
                    propensity=share,
                )
            )
    return calls


def _said(name, score, at):
    return Feedback(
        request_id=name,
        tenant="default",
        source="",
        given_at=at,
        score=float(score),
        label=None,
        correction=None,
        comment=None,
    )
