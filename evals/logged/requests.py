"""One request of the log under another policy: what it would have cost, and how good it would be.

What is known of it for sure, what is known because it was drawn, and what is not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cascade.audit import AuditRecord
from cascade.types import Kind
from evals.logged.believing import Believing
from evals.logged.calls import all_calls, dollars, drawn_score, own_calls
from evals.logged.following import Follower, Path, prompt_tokens
from evals.logged.reading import Logged

CANCELLED: Final = "the client left"
NO_COST: Final = "what it cost is not known"
_NEVER: Final = 0.5
"""What stands for a number that is not there, of those the model of the quality looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number of one request: what it is if it is known, and how likely it was to become so.

    Attributes:
        chance: 1 for sure, p where it was drawn, 0 where it is open.
        stratum: what would have to be known.
    """

    value: float = math.nan
    chance: float = 0.0
    stratum: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One request under the policy that served, and under another one.

    Attributes:
        cluster: its session, or itself.
        quoted: dollars that the other's way is expected to cost; NaN where it is not.
        missing: the tier that could not be followed; None when the way is known without a draw.
        features: what the model of the quality looks at.
    """

    cluster: str
    cost_before: float
    cost: Value
    quoted: float
    quality_before: Value
    quality: Value
    tier_before: str
    tier: Value
    answered_by: str
    missing: str | None
    features: Sequence[float]


def replayed(
    each: Logged, follower: Follower, believing: Believing, served_by: str, judge: str | None
) -> Replayed | str:
    """One request, or why it is left out."""
    record = each.record
    if record.status == "cancelled":
        return CANCELLED
    paid = dollars(record.cost_pico)
    if paid is None:
        return NO_COST
    beliefs = believing.beliefs(record)
    if isinstance(beliefs, str):
        return beliefs
    path = follower.follow(record, beliefs, own_calls(record), served_by)
    if path.missing is None and path.dollars is None:
        return NO_COST
    drawn, chance, whole = all_calls(record), 0.0, path
    if path.missing is None:
        chance = 1.0
    elif drawn is not None:
        whole = follower.follow(record, beliefs, drawn, served_by)
        chance = drawn.propensity if whole.missing is None else 0.0
    stratum = path.missing or ""
    propensity = drawn.propensity if drawn else 0.0
    return Replayed(
        cluster=f"{record.tenant}/{record.session or record.id}",
        cost_before=paid,
        cost=_cost(whole, chance, stratum),
        quoted=_quoted(path),
        quality_before=_quality_before(each, judge, propensity),
        quality=_quality(each, judge, path, whole, propensity),
        tier_before=record.tier or "",
        tier=Value(value=0.0 if chance else math.nan, chance=chance, stratum=stratum),
        answered_by=whole.tier or "",
        missing=path.missing,
        features=_features(record, beliefs.mean, list(follower.tiers)),
    )


def _cost(whole: Path, chance: float, stratum: str) -> Value:
    known = math.nan if whole.dollars is None or not chance else whole.dollars
    return Value(value=known, chance=chance, stratum=stratum)


def _quoted(path: Path) -> float:
    if path.dollars is None:
        return math.nan
    if path.missing is None:
        return path.dollars
    return math.nan if path.quoted is None else path.dollars + path.quoted


def _quality_before(each: Logged, judge: str | None, propensity: float) -> Value:
    tier = each.record.tier
    if tier is None:
        return Value(value=0.0, chance=1.0)
    return _label(each, judge, tier, given=True, chance=1.0, propensity=propensity, stratum=tier)


def _quality(each: Logged, judge: str | None, path: Path, whole: Path, propensity: float) -> Value:
    """Of the answer that the policy would have given; nothing at all is worth nothing."""
    stratum = f"{path.tier}" if path.missing is None else f"{path.missing}?"
    if whole.missing is not None:
        return Value(stratum=stratum)
    chance = 1.0 if path.missing is None else propensity
    if whole.tier is None:
        return Value(value=0.0, chance=chance, stratum=stratum)
    return _label(
        each,
        judge,
        whole.tier,
        given=whole.given,
        chance=chance,
        propensity=propensity,
        stratum=stratum,
    )


def _label(
    each: Logged,
    judge: str | None,
    tier: str,
    *,
    given: bool,
    chance: float,
    propensity: float,
    stratum: str,
) -> Value:
    """What is known of an answer: what was said of it, else what the judge of the draw said.

    Where no judge samples, a comparison with another answer tells a little. Beside one it would
    count only for answers that were not drawn, and those that were stand for these already.
    """
    if given and each.label is not None:
        return Value(value=each.label, chance=chance, stratum=stratum)
    score = None if judge is None else drawn_score(each.record, tier, judge)
    if score is not None:
        return Value(value=score, chance=propensity, stratum=stratum)
    if judge is None and given and each.compared is not None:
        return Value(value=each.compared, chance=chance, stratum=stratum)
    return Value(stratum=stratum)


def _features(
    record: AuditRecord, beliefs: Mapping[str, float], tiers: Sequence[str]
) -> list[float]:
    own = [call for call in record.attempts if call.kind == Kind.ANSWER]
    scores = [call.score for call in own if call.score is not None]
    prompt = next((tokens for call in own if (tokens := prompt_tokens(call))), 0)
    output = next((call.output_tokens for call in reversed(own) if call.output_tokens), 0)
    return [
        *(beliefs.get(tier, _NEVER) for tier in tiers),
        scores[-1] if scores else _NEVER,
        float(bool(scores)),
        float(len(own)),
        math.log1p(prompt),
        math.log1p(output or 0),
    ]
