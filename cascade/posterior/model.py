"""The fitted update: from an estimate and verdicts to what is believed, and how it may yet move.

With R the tiers that were tried, `Beliefs.mean[t]` is P(t's answer is acceptable | the classifier,
the verdicts of R). `Beliefs.covariance[(i, j)]`, for i outside R, says how much the mean of j will
move once i's answer has been judged: Cov(mean_i after, mean_j after) over the verdicts that the
judge may give of i. So covariance[(i, i)] is the variance of what will be believed of i, and after
a score s of i the mean of j is expected at mean_j + covariance[(i, j)] / covariance[(i, i)] * (s -
mean_i). It is not symmetric: (i, j) is about a verdict of i, (j, i) about one of j. Where (i, i) is
not there, no verdict of i was ever sought in the fit, and nobody knows what one would tell.

The covariance is kappa_ij * sqrt(v_i v_j) with v = mean (1 - mean), the variance of the outcome
itself. kappa_ii is the share of i's uncertainty that a verdict removes: 0 for a judge that says
nothing, 1 for an oracle. The kappas are those of the rows of the fit, out of fold: the covariance
of (prediction given R and i) - (prediction given R), as in cascade routing (J. Dekoninck et al.,
A unified approach to routing and cascading for LLMs, 2024), per sqrt(v_i v_j).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cascade.errors import ConfigError
from cascade.posterior.heads import Head, Rule
from cascade.posterior.plain import Judged, update
from cascade.types import Beliefs, Verdict

Tried = frozenset[str]
Pair = tuple[str, str]

_NOBODY: Tried = frozenset()

UNKNOWING = frozenset({"fallback", "no_estimator"})
"""Flags of beliefs that no estimator gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A judge or an estimator.

    Attributes:
        name: in the configuration.
        digest: of its type, options and fitted parts; empty where nobody computed it.
    """

    name: str
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Where a model comes from, so that it is never used for another configuration unnoticed.

    Attributes:
        models: by tier, cheapest first, the model whose answers were learned from; empty texts
            where the data did not say.
        judges: by tier, whose verdicts of its answers were sought; there may have been none, as of
            a judge that was fitted for another tier.
        estimator: whose estimates it knows.
        rates: P(acceptable) by tier over the rows of the fit.
        data: hash of those rows.
        rows: how many were used for what.
        versions: of what fitted it, by package.
        fitted_at: ISO 8601.
        metrics: what was measured, on rows that were held out.
    """

    models: Mapping[str, str]
    judges: Mapping[str, Identity]
    estimator: Identity
    rates: Mapping[str, float]
    data: str = ""
    rows: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    fitted_at: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A fitted posterior; `cascade.posterior.load` reads one. Pure, and takes microseconds.

    Attributes:
        manifest: where it comes from.
        heads: by the set of tiers that were judged, the head of each tier; the empty set is before
            any call.
        kappas: by the set of tiers that were judged, of (tier judged next, tier whose mean moves).
        digest: tells it from any other.
    """

    manifest: Manifest
    heads: Mapping[Tried, Mapping[str, Head]]
    kappas: Mapping[Tried, Mapping[Pair, float]]
    digest: str = ""

    def before(self, beliefs: Beliefs) -> Beliefs:
        """What is believed before any call.

        Args:
            beliefs: the estimator's; where none spoke, the rates of the fit know more.
        """
        given, rates = beliefs.mean, self.manifest.rates
        given = {**given, **rates} if beliefs.flags & UNKNOWING else {**rates, **given}
        heads = self.heads[_NOBODY]
        mean = {**given, **{t: _chance(head, given[t], given, {}) for t, head in heads.items()}}
        return replace(beliefs, mean=mean, covariance=self._covariance(mean, _NOBODY, ()))

    def after(self, beliefs: Beliefs, judged: Judged) -> Beliefs:
        """What is believed once these tiers were tried.

        A verdict of a tier that was never judged in the fit, and a final one, which states a fact,
        are taken at their word. A verdict that is None or cannot tell changes no mean.

        Args:
            beliefs: those that `before` gave.
            judged: every tier tried so far, with its verdict; of two on one tier the last counts.
        """
        told = {tier: v for tier, v in judged if v is not None and v.score is not None}
        learned = {t: v for t, v in told.items() if t in self._judged and not v.final}
        changed = beliefs
        if learned:
            changed = replace(beliefs, mean={**beliefs.mean, **self._mean(beliefs.mean, learned)})
        for tier, verdict in told.items():
            if tier not in learned:
                changed = update(changed, tier, verdict)
        tried = {tier for tier, _ in judged}
        covariance = self._covariance(changed.mean, frozenset(learned), tried)
        return replace(changed, covariance=covariance)

    def check(
        self, *, tiers: Collection[str], judges: Mapping[str, Identity], estimator: Identity
    ) -> None:
        """Refuse a configuration that this was not fitted for.

        Args:
            tiers: those of the policy.
            judges: by tier, the policy's judge of its answers, for tiers that have one.
            estimator: the policy's; its name is empty without one.

        Raises:
            ConfigError: another judge, estimator or tier; says which.
        """
        known = self.manifest.models
        if unknown := [tier for tier in tiers if tier not in known]:
            raise ConfigError(
                f"it was fitted for the tiers {', '.join(known)}, and not for {unknown[0]}"
            )
        _refuse_other("estimates", self.manifest.estimator, estimator)
        for tier, judge in judges.items():
            if (fitted := self.manifest.judges.get(tier)) is not None:
                _refuse_other(f"verdicts on {tier}", fitted, judge)

    def warnings(self, served: Mapping[str, str | None]) -> list[str]:
        """Tiers that serve another model than the one whose answers were learned from."""
        return [
            f"it was fitted on answers of {model}, and tier {tier} serves {served[tier]}"
            for tier, model in self.manifest.models.items()
            if model and tier in served and served[tier] != model
        ]

    @property
    def _judged(self) -> Tried:
        """Tiers whose verdicts it has learned from."""
        return frozenset().union(*self.heads)

    def _mean(
        self, prior: Mapping[str, float], verdicts: Mapping[str, Verdict]
    ) -> Mapping[str, float]:
        """By tier of the model, after verdicts that it has learned from."""
        said = dict(prior)
        for tier, verdict in verdicts.items():
            said |= {**verdict.others, tier: verdict.score or 0.0}
        return {
            tier: _chance(
                head, (said if head.rule is Rule.VERDICT else prior)[tier], prior, verdicts
            )
            for tier, head in self.heads[frozenset(verdicts)].items()
        }

    def _covariance(
        self, mean: Mapping[str, float], known: Tried, tried: Collection[str]
    ) -> Mapping[Pair, float]:
        spread = {tier: math.sqrt(p * (1.0 - p)) for tier, p in mean.items()}
        return {
            (i, j): kappa * spread[i] * spread[j]
            for (i, j), kappa in self.kappas.get(known, {}).items()
            if i not in tried
        }


def _chance(
    head: Head, as_it_is: float, prior: Mapping[str, float], verdicts: Mapping[str, Verdict]
) -> float:
    return head.chance(prior, verdicts) if head.rule is Rule.LOGISTIC else as_it_is


def _refuse_other(what: str, fitted: Identity, found: Identity) -> None:
    if fitted.name != found.name:
        raise ConfigError(
            f"it was fitted on {what} of {fitted.name or 'nobody'}, and not of "
            f"{found.name or 'nobody'}"
        )
    if fitted.digest and found.digest and fitted.digest != found.digest:
        raise ConfigError(
            f"it was fitted on {what} of another {fitted.name}: its options or its artifact have "
            "changed since; `cascade train posterior` fits it again"
        )


def sets_of(tiers: Sequence[str]) -> list[Tried]:
    """Every set of these tiers, smaller ones first."""
    found: list[Tried] = [frozenset()]
    for tier in tiers:
        found += [each | {tier} for each in found]
    return sorted(found, key=len)
