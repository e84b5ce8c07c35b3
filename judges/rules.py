"""Rules that an operator writes: which tiers a request must not go to, which answers not to take.

Rules are for what must never happen (a tenant's data at a provider, an answer that promises a
refund), not for guessing how hard a request is. A rule that cannot be told holds: what an operator
forbids is not allowed because of a mistake in the wording.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cascade.errors import ConfigError
from cascade.types import ChatRequest, Choice, Completion, Json, Verdict
from judges.expressions import Condition, ConditionError, Facts
from judges.facts import answer_facts, request_facts

_NO_REQUEST: Final = ChatRequest(id="", messages=())
_NO_ANSWER: Final = Completion(choices=(Choice(),))


@dataclass(frozen=True, slots=True)
class _Rule:
    condition: Condition
    reason: str

    def holds(self, facts: Facts) -> str | None:
        """Why, if it does or cannot be told."""
        try:
            return self.reason if self.condition(facts) else None
        except ConditionError as error:
            return f"{self.reason} (the rule cannot be told: {error})"


class RulesJudge:
    """0 and final for an answer that a rule rejects, otherwise 1: nothing is said against it.

    Args:
        name: how verdicts call it.
        reject: each `when`, a condition on `request` and `answer`, and a `reason`.
    """

    free = True

    def __init__(self, *, name: str = "rules", reject: Sequence[Mapping[str, str]]) -> None:
        if not reject:
            raise ConfigError("there is no rule", param="reject")
        example = {**request_facts(_NO_REQUEST), **answer_facts(_NO_ANSWER)}
        self.name = name
        self.needs: Json = {}
        self._rules = [
            _rule(rule, {"when", "reason"}, example, f"reject.{i}") for i, rule in enumerate(reject)
        ]

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """0 and final with the first rule that holds."""
        facts = {**request_facts(request), **answer_facts(completion)}
        for rule in self._rules:
            if reason := rule.holds(facts):
                return Verdict(
                    judge=self.name,
                    score=0.0,
                    final=True,
                    reason=reason,
                    features={"rejected": 1.0},
                )
        return Verdict(
            judge=self.name, score=1.0, reason="no rule rejects it", features={"rejected": 0.0}
        )


class TierRules:
    """Which tiers a request must not go to, told before any call.

    Args:
        rules: each `when`, a condition on `request`; either `remove`, a list of tiers, or `only`,
            the list of those that stay; and a `reason`.
        tiers: the names that there are.
    """

    def __init__(self, rules: Sequence[Mapping[str, Any]], tiers: Sequence[str]) -> None:
        example = request_facts(_NO_REQUEST)
        self._rules = []
        for i, rule in enumerate(rules):
            built = _rule(rule, {"when", "reason", "remove", "only"}, example, str(i))
            self._rules.append((built, _removed(rule, tiers, str(i))))

    def removed(self, request: ChatRequest) -> dict[str, str]:
        """By tier that is removed, why, as the rest of a sentence."""
        removed: dict[str, str] = {}
        facts = request_facts(request) if self._rules else {}
        for rule, tiers in self._rules:
            if reason := rule.holds(facts):
                for tier in tiers:
                    removed.setdefault(tier, f"is ruled out: {reason}")
        return removed


def _rule(rule: Mapping[str, Any], keys: set[str], example: Facts, where: str) -> _Rule:
    for key in rule.keys() - keys:
        raise ConfigError(
            f"unknown key: it takes {', '.join(sorted(keys))}", param=f"{where}.{key}"
        )
    for key in ("when", "reason"):
        if not isinstance(rule.get(key), str) or not rule[key].strip():
            raise ConfigError(f"the key {key} is missing", param=where)
    try:
        return _Rule(Condition(rule["when"], example), rule["reason"])
    except ConfigError as error:
        raise ConfigError(error.message, param=f"{where}.when") from None


def _removed(rule: Mapping[str, Any], tiers: Sequence[str], where: str) -> Sequence[str]:
    if ("remove" in rule) == ("only" in rule):
        raise ConfigError("it needs either remove or only", param=where)
    key = "remove" if "remove" in rule else "only"
    for tier in rule[key]:
        if tier not in tiers:
            known = ", ".join(tiers)
            raise ConfigError(
                f"there is no tier {tier!r}; there are: {known}", param=f"{where}.{key}"
            )
    named = set(rule[key])
    return [tier for tier in tiers if (tier in named) == (key == "remove")]
