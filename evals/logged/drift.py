"""Whether traffic has left what the models were fitted on, and what is to be done about it.

Three questions, each with a threshold that is named here. Are requests like the rows that the
estimator learned from? Are scores and beliefs spread as they were before? Are they still as often
right as they say? What is far apart and unlikely by chance is a sign; either alone is none.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from sqlalchemy import Engine

from classifiers.domain import Domain
from evals.escalation import calibration_error, calibration_noise
from evals.logged.distance import Apart, energy, kolmogorov_smirnov, psi, sampled
from evals.logged.reading import logged
from evals.logged.traffic import Traffic, Who, add
from evals.metrics import Interval, mean, wilson

PSI_CHANGED: Final = 0.1
PSI_MUCH: Final = 0.25
UNLIKELY: Final = 0.01
"""p-values below this are not taken for chance."""
OUT_TIMES: Final = 2.0
"""Out of the domain is more than so many times the share that the artifact was fitted to."""
FAR: Final = 0.1
"""Energy distance from which on traffic is about other things than the training rows. Prompts like
them are at 0.01, other tasks, of which a fifth is out of the domain, at 0.04, and requests
of one kind that is not among them at 0.4, even where each by itself is near some row."""
LEAST_ROWS: Final = 50
"""Sessions or labels below which nothing is said."""
BINS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A learned estimator.

    Attributes:
        name: in the configuration.
        policies: that ask it.
        embedded_by: whose embeddings it looks at; empty for none.
        domain: what its training rows were like; None where it does not check.
        inside: share of requests like the training rows that count as inside.
    """

    name: str
    policies: Collection[str]
    embedded_by: str
    domain: Domain | None
    inside: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """Whether requests are like the training rows.

    Attributes:
        sessions: looked at.
        out: share of them out of the domain, and its interval.
        expected: share of the training rows themselves that would be.
        recomputed: told by the artifact as it is; otherwise by what it said when it served.
        energy: distance of embeddings to the training rows; None where too few are kept.
    """

    sessions: int
    out: float
    interval: Interval
    expected: float
    recomputed: bool
    energy: Apart | None

    @property
    def left(self) -> bool:
        """Traffic has left the domain."""
        return self.interval.low > OUT_TIMES * self.expected

    @property
    def elsewhere(self) -> bool:
        """As a whole it is about other things, whatever each request is near."""
        return self.energy is not None and self.energy.distance >= FAR and self.energy.p < UNLIKELY


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A score's distribution, before and now.

    Attributes:
        before: sessions.
        now: sessions.
    """

    who: Who
    before: int
    now: int
    mean_before: float
    mean_now: float
    psi: float
    gap: Apart

    @property
    def moved(self) -> bool:
        """It is not what it was."""
        return self.psi >= PSI_MUCH and self.gap.p < UNLIKELY


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Whether a score is as often right as it says, by what was said of the answers.

    Attributes:
        labels: how many.
        error: expected calibration error.
        noise: what it would be below, 19 times of 20, were the score right.
        bins: (labels, mean score, share that was right), the lowest scores first.
        probability: the score is meant to be the chance of being right; any other may be off.
    """

    who: Who
    labels: int
    mean_score: float
    right: float
    error: float
    noise: float
    bins: Sequence[tuple[int, float, float]]
    probability: bool

    @property
    def off(self) -> bool:
        """It is not as often right as it says."""
        return self.probability and self.error > self.noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What was found.

    Attributes:
        requests: looked at, and of how many sessions.
        earlier: the same of the time before.
        inside: None without a learned estimator, or with too few requests of it.
        few: what there was too little of to be looked at.
    """

    requests: tuple[int, int]
    earlier: tuple[int, int]
    estimator: str | None
    inside: Inside | None
    spreads: Sequence[Spread]
    reliabilities: Sequence[Reliability]
    few: Sequence[str]

    @property
    def retrain(self) -> list[str]:
        """Why the estimator should be trained anew."""
        why = []
        if self.inside is not None and self.inside.left:
            why.append(
                f"{self.inside.out:.0%} of the sessions are unlike its training rows, where "
                f"{self.inside.expected:.0%} would be"
            )
        if self.inside is not None and self.inside.elsewhere and self.inside.energy is not None:
            why.append(
                f"requests as a whole are {self.inside.energy.distance:.2f} of 1 away from its "
                "training rows (energy distance)"
            )
        return why + self._signs(of_judges=False)

    @property
    def recertify(self) -> list[str]:
        """Why judges should be fitted or certified anew."""
        return self._signs(of_judges=True)

    def _signs(self, *, of_judges: bool) -> list[str]:
        off = [
            f"the {each.who} says {each.mean_score:.2f} and is right in {each.right:.2f}, off by "
            f"{each.error:.3f} where chance gives {each.noise:.3f}"
            for each in self.reliabilities
            if each.off and (each.who.judge is not None) == of_judges
        ]
        moved = [
            f"the {each.who} went from {each.mean_before:.2f} to {each.mean_now:.2f} in the mean "
            f"(PSI {each.psi:.2f})"
            for each in self.spreads
            if each.moved and (each.who.judge is not None) == of_judges
        ]
        return off + moved


def drift(
    engine: Engine,
    since: float,
    *,
    earlier: float | None,
    learned: Learned | None,
    calibrated: Collection[str] = (),
) -> Drift:
    """Look at the requests since a time.

    Args:
        engine: of the audit database.
        since: seconds since the epoch, from which on requests are recent.
        earlier: from which on they are what recent ones are held against; None: from the first.
        learned: the estimator whose training rows are held against them; None: there is none.
        calibrated: names of the judges whose scores are meant to be probabilities.
    """
    before, now = Traffic(), Traffic()
    policies = learned.policies if learned else ()
    for row in logged(engine, earlier):
        add(now if row.record.created_at >= since else before, row, policies)
    few: list[str] = []
    inside = None if learned is None else _inside(now, learned, few)
    return Drift(
        requests=(now.requests, len(now.sessions)),
        earlier=(before.requests, len(before.sessions)),
        estimator=learned.name if learned else None,
        inside=inside,
        spreads=_spreads(before.scores, now.scores, few),
        reliabilities=_reliabilities(now, calibrated, few, beliefs=learned is not None),
        few=few,
    )


def _inside(now: Traffic, learned: Learned, few: list[str]) -> Inside | None:
    vectors = now.vectors(learned.embedded_by)
    kept, apart = len(vectors) >= LEAST_ROWS, None
    domain = learned.domain
    sessions, out = now.flagged
    if kept and domain is not None:
        outside = domain(vectors, now.features[learned.embedded_by])
        sessions, out = len(vectors), int(outside.sum())
        if domain.meaning is not None:
            seen = np.asarray(domain.meaning.seen, dtype=np.float32)
            apart = energy(seen[sampled(len(seen))], vectors[sampled(len(vectors))])
    if sessions < LEAST_ROWS:
        few.append(f"{sessions} sessions that {learned.name} looked at")
        return None
    return Inside(
        sessions=sessions,
        out=out / sessions,
        interval=wilson(out, sessions),
        expected=1.0 - learned.inside,
        recomputed=kept and domain is not None,
        energy=apart,
    )


def _spreads(
    before: Mapping[Who, Sequence[float]], now: Mapping[Who, Sequence[float]], few: list[str]
) -> list[Spread]:
    found = []
    for who in sorted(now, key=str):
        earlier, recent = (np.asarray(each.get(who, ())) for each in (before, now))
        if min(len(earlier), len(recent)) < LEAST_ROWS:
            few.append(f"{len(earlier)} and {len(recent)} sessions with the {who}")
            continue
        found.append(
            Spread(
                who=who,
                before=len(earlier),
                now=len(recent),
                mean_before=float(earlier.mean()),
                mean_now=float(recent.mean()),
                psi=psi(earlier, recent),
                gap=kolmogorov_smirnov(earlier, recent),
            )
        )
    return found


def _reliabilities(
    now: Traffic, calibrated: Collection[str], few: list[str], *, beliefs: bool
) -> list[Reliability]:
    found = []
    for who in sorted(now.labelled, key=str):
        pairs = now.labelled[who]
        if len(pairs) < LEAST_ROWS:
            few.append(f"{len(pairs)} labels on the {who}")
            continue
        scores, right = [score for score, _ in pairs], [ok for _, ok in pairs]
        found.append(
            Reliability(
                who=who,
                labels=len(pairs),
                mean_score=mean(scores),
                right=mean([float(ok) for ok in right]),
                error=calibration_error(scores, right),
                noise=calibration_noise(scores, draws=300)[1],
                bins=_bins(sorted(pairs)),
                probability=beliefs if who.judge is None else who.judge in calibrated,
            )
        )
    return found


def _bins(pairs: Sequence[tuple[float, bool]]) -> list[tuple[int, float, float]]:
    cuts = [len(pairs) * i // BINS for i in range(BINS + 1)]
    return [
        (
            end - start,
            mean([score for score, _ in pairs[start:end]]),
            mean([float(ok) for _, ok in pairs[start:end]]),
        )
        for start, end in pairwise(cuts)
    ]
