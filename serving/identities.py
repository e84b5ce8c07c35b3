"""What tells a judge or an estimator from one with other options or another fit, and prices too.

What is fitted on its word, such as `cascade.posterior.Model`, keeps the digest and refuses to be
used with another.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from cascade.posterior import Identity
from cascade.protocols import DifficultyEstimator, Judge
from cascade.tiers import ModelTier
from judges.panel import PanelJudge
from serving import config as cfg

_WITHOUT_EFFECT = frozenset({"artifact", "strict", "seconds"})
"""Options that do not change what is said: an artifact counts by its content, not by its path."""


def judge_identity(
    config: cfg.Config, base: Path, judges: Mapping[str, Judge], name: str
) -> Identity:
    """Of a judge: its options, its fitted parts, and those of the judges that it asks.

    Args:
        config: the configuration.
        base: folder that relative paths in the configuration start from.
        judges: all of the configuration, built.
        name: of the judge.
    """
    return Identity(name=name, digest=_digest(_judge(config, base, judges, name)))


def estimator_identity(
    config: cfg.Config, name: str | None, estimator: DifficultyEstimator | None
) -> Identity:
    """Of an estimator: its options, and its fitted model if it has one; of none without a name."""
    if name is None:
        return Identity(name="")
    entry = config.estimators[name]
    fitted = getattr(estimator, "digest", "")
    return Identity(name=name, digest=_digest([entry.type, _deciding(entry.options), fitted]))


def prices_version(tiers: Mapping[str, ModelTier]) -> str:
    """Of the price cards in force: the same for the same rates, wherever they were read from."""
    cards = [(name, tier.prices) for name, tier in sorted(tiers.items())]
    told = [(n, card and repr((card.rates, card.long_prompt_rates))) for n, card in cards]
    return _digest(told)


def _judge(config: cfg.Config, base: Path, judges: Mapping[str, Judge], name: str) -> list[Any]:
    entry, judge = config.judges[name], judges[name]
    asks = [*(entry.members or ()), *([entry.of] if entry.of else ())]
    model = judge.model if isinstance(judge, PanelJudge) else None
    calibration = (base / entry.calibration).read_bytes() if entry.calibration else b""
    return [
        name,
        entry.type,
        _deciding(entry.options),
        entry.embedder or "",
        hashlib.blake2b(calibration, digest_size=8).hexdigest() if calibration else "",
        model.digest if model else "",
        [_judge(config, base, judges, each) for each in asks],
    ]


def _deciding(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT}


def _digest(content: Sequence[Any]) -> str:
    text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS, default=str)
    return hashlib.blake2b(text, digest_size=8).hexdigest()
