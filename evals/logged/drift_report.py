"""What `cascade eval drift` says: a sentence on what is to be done, and the numbers behind it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evals.logged.drift import LEAST_ROWS, Drift, Inside, Reliability, Spread
from evals.panel_report import Printed


def report(found: Drift) -> list[Printed | str]:
    """For the screen."""
    parts: list[Printed | str] = [_told(found)]
    if found.inside is not None:
        parts.append(_inside(found.estimator or "", found.inside))
    if found.spreads:
        parts.append(_spreads(found.spreads))
    if found.reliabilities:
        parts.append(_reliabilities(found.reliabilities))
    if found.few:
        parts.append(f"Too few to say anything (under {LEAST_ROWS}): {'; '.join(found.few)}.")
    return [*parts, *verdicts(found)]


def verdicts(found: Drift) -> list[str]:
    """What is to be done."""
    said = []
    if found.retrain:
        said.append(f"Train the estimator anew (`cascade train`): {'; '.join(found.retrain)}.")
    if found.recertify:
        said.append(
            "Look at the judges, fit them anew and certify their thresholds (`cascade judges fit`, "
            f"`cascade judges certify`): {'; '.join(found.recertify)}."
        )
    looked = found.inside is not None or found.spreads or found.reliabilities
    if not said and looked:
        said.append("No sign that anything has to be trained or certified anew.")
    return said or ["There is too little in the log to say anything."]


def plain(found: Drift) -> dict[str, Any]:
    """For machines."""
    inside = None
    if found.inside is not None:
        one = found.inside
        inside = {
            "sessions": one.sessions,
            "out": one.out,
            "interval": list(one.interval),
            "expected": one.expected,
            "recomputed": one.recomputed,
            "energy": None if one.energy is None else one.energy._asdict(),
            "left": one.left,
            "elsewhere": one.elsewhere,
        }
    return {
        "requests": found.requests[0],
        "sessions": found.requests[1],
        "earlier_requests": found.earlier[0],
        "earlier_sessions": found.earlier[1],
        "estimator": found.estimator,
        "domain": inside,
        "spreads": [_with_who(each) | {"moved": each.moved} for each in found.spreads],
        "reliabilities": [_with_who(each) | {"off": each.off} for each in found.reliabilities],
        "too_few": list(found.few),
        "retrain": found.retrain,
        "recertify": found.recertify,
    }


def _with_who(one: Spread | Reliability) -> dict[str, Any]:
    values = asdict(one) | {"who": one.who._asdict()}
    if isinstance(one, Spread):
        values["gap"] = one.gap._asdict()
    return values


def _told(found: Drift) -> str:
    (now, of), (before, earlier) = found.requests, found.earlier
    learned = f" and against what {found.estimator} has learned from" if found.estimator else ""
    return (
        f"{now:,} requests of {of:,} sessions, held against {before:,} of {earlier:,} before them"
        f"{learned}."
    )


def _inside(estimator: str, one: Inside) -> Printed:
    low, high = one.interval
    rows = [
        ("sessions", f"{one.sessions:,}"),
        ("unlike the training rows", f"{one.out:.1%} [{low:.1%}, {high:.1%}]"),
        ("of the training rows themselves", f"{one.expected:.1%}"),
    ]
    if one.energy is not None:
        rows.append(
            ("energy distance to them", f"{one.energy.distance:.3f} of 1, p {one.energy.p:.3f}")
        )
    how = "looked at anew" if one.recomputed else "as flagged when served"
    return Printed(f"what {estimator} has learned from, {how}", ("", "recent requests"), rows)


def _spreads(spreads: Sequence[Spread]) -> Printed:
    head = ("score", "sessions", "mean before", "mean now", "PSI", "largest gap", "p")
    rows = [
        (
            str(each.who),
            f"{each.before:,} / {each.now:,}",
            f"{each.mean_before:.3f}",
            f"{each.mean_now:.3f}",
            f"{each.psi:.3f}{' !' if each.moved else ''}",
            f"{each.gap.distance:.3f}",
            f"{each.gap.p:.3f}",
        )
        for each in spreads
    ]
    return Printed("how scores and beliefs are spread, before and now", head, rows)


def _reliabilities(found: Sequence[Reliability]) -> Printed:
    head = ("score", "labels", "mean", "right", "error", "by chance", "score > right, by fifths")
    rows = [
        (
            str(each.who),
            f"{each.labels:,}",
            f"{each.mean_score:.3f}",
            f"{each.right:.3f}",
            f"{each.error:.3f}{' !' if each.off else ''}",
            f"{each.noise:.3f}" if each.probability else "no probability",
            ", ".join(f"{score:.2f} > {right:.2f}" for _, score, right in each.bins),
        )
        for each in found
    ]
    return Printed("whether answers are right as often as was said", head, rows)
