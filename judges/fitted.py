"""Applies the model that a fitted panel carries: features of an answer in, probabilities out.

For the tier that answered it gives the probability that the answer is acceptable, and for every
higher tier the probability that its answer would be: the difference is what going up is worth. The
higher tier is told for two cases, the judged answer being right and being wrong, and the two are
weighed by how likely they are. So where nothing tells which wrong answers the higher tier would
mend, going up is worth most where the judged answer is doubted most, exactly.
Plain arithmetic on a readable artifact; fitting lives in `evals.panel_fit`.
"""

import hashlib
import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cascade.calibration import MonotoneMap
from cascade.errors import ConfigError

KIND = "panel_model"
LEAF = -1
"""The feature of a node that decides nothing."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Feature(_Part):
    """One input of the model.

    Attributes:
        name: `member.feature`, as the panel's verdicts name it.
        mean: over the rows of the fit; stands in where an optional feature is missing.
        scale: standard deviation there; what weights are per.
        optional: some rows of the fit lacked it. A lack of any other means: cannot tell.
    """

    name: str
    mean: float
    scale: Annotated[float, Field(gt=0)]
    optional: bool = False


class Tree(_Part):
    """A regression tree as arrays over its nodes, the root first.

    Attributes:
        feature: index of the value that a node looks at; -1 for a leaf.
        threshold: values up to and including it go left.
        left: node to go to.
        right: node to go to.
        value: log-odds that a leaf adds.
    """

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[float]

    @model_validator(mode="after")
    def _is_a_tree(self) -> "Tree":
        count = len(self.feature)
        if not count or {len(self.threshold), len(self.left), len(self.right), len(self.value)} != {
            count
        }:
            raise ValueError("the arrays of a tree are equally long and not empty")
        for node, feature in enumerate(self.feature):
            # Children come after their parent, so that a walk always ends.
            if feature != LEAF and not all(
                node < child < count for child in (self.left[node], self.right[node])
            ):
                raise ValueError(f"node {node} of a tree has no children behind it")
        return self

    def __call__(self, values: Sequence[float]) -> float:
        """What the leaf that the values lead to adds."""
        node = 0
        while (feature := self.feature[node]) != LEAF:
            node = (self.left if values[feature] <= self.threshold[node] else self.right)[node]
        return self.value[node]


class Platt(_Part):
    """A straight line through log-odds: for few labels. J. Platt, Probabilistic outputs (1999)."""

    kind: Literal["platt"] = "platt"
    slope: Annotated[float, Field(gt=0)]
    offset: float


class Isotonic(_Part):
    """A monotone map of probabilities, as `cascade.calibration` applies it."""

    kind: Literal["isotonic"] = "isotonic"
    x: list[float]
    y: list[float]


class Head(_Part):
    """P(a tier's answer is acceptable) from the values of the features.

    The log-odds are the mean of a logistic model's and of boosted trees', where it has both, and
    the same for all where it has neither: what is fitted when nothing tells the rows apart.

    Attributes:
        weights: per standard deviation of each value; empty without a logistic model.
        intercept: of the logistic model, or of all.
        trees: each adds to the base; empty without boosted trees.
        base: log-odds that the trees start from.
        calibration: what brings the result to a probability; none where it already is one.
        if_right: of a higher tier: the same where the judged tier's answer is right; this head
            itself then speaks of where it is wrong.
    """

    weights: list[float] = []
    intercept: float = 0.0
    trees: list[Tree] = []
    base: float = 0.0
    calibration: Annotated[Platt | Isotonic | None, Field(discriminator="kind")] = None
    if_right: "Head | None" = None

    @model_validator(mode="after")
    def _is_one_case(self) -> "Head":
        if self.if_right is not None and self.if_right.if_right is not None:
            raise ValueError("if_right has an if_right of its own")
        return self

    def misfit(self, width: int) -> str | None:
        """Why it cannot look at that many values; None when it can."""
        if self.weights and len(self.weights) != width:
            return f"has {len(self.weights)} weights for {width} values"
        if any(max(tree.feature) >= width for tree in self.trees):
            return "has a tree that looks at a value that is not there"
        return self.if_right.misfit(width) if self.if_right else None


class Manifest(_Part):
    """Where a model comes from, so that it is never used for another's answers unnoticed.

    Attributes:
        judged: name of the tier whose answers it judges.
        models: by tier, what identifies the model that gave the rows' answers.
        members: by member of the panel, its type and options in force.
        data: hash of the rows it was fitted on.
        rows: how many were used to fit, to calibrate and to measure.
        metrics: what was measured on the rows that nothing was chosen on.
    """

    judged: str
    models: Mapping[str, str]
    members: Mapping[str, Mapping[str, Any]]
    data: str
    rows: Mapping[str, int]
    fitted_at: str
    metrics: Mapping[str, Any] = {}


class Artifact(_Part):
    """The file's content."""

    kind: Literal["panel_model"]
    manifest: Manifest
    features: Annotated[list[Feature], Field(min_length=1)]
    heads: dict[str, Head]

    @model_validator(mode="after")
    def _fits_together(self) -> "Artifact":
        if self.manifest.judged not in self.heads:
            raise ValueError(f"heads has none for the judged tier {self.manifest.judged!r}")
        if self.heads[self.manifest.judged].if_right is not None:
            raise ValueError("the judged tier's head has an if_right, which is for higher tiers")
        width = len(self.features) + sum(feature.optional for feature in self.features)
        for tier, head in self.heads.items():
            if misfit := head.misfit(width):
                raise ValueError(f"heads.{tier} {misfit}")
        return self


@dataclass(frozen=True, slots=True)
class PanelModel:
    """A fitted panel's model, ready to be applied.

    Attributes:
        digest: hash of the artifact, which tells it from any other.
        manifest: where it comes from.
        features: its inputs, in order.
        heads: by tier.
    """

    digest: str
    manifest: Manifest
    features: Sequence[Feature]
    heads: Mapping[str, Head]
    _chance: Mapping[str, "_Chance"]

    def missing(self, found: Mapping[str, float]) -> list[str]:
        """Features without which it cannot tell."""
        return [f.name for f in self.features if not f.optional and f.name not in found]

    def __call__(self, found: Mapping[str, float]) -> dict[str, float]:
        """P(acceptable) by tier; nothing may be `missing`."""
        raw, standard = self._values(found)
        judged = self._chance[self.manifest.judged](raw, standard)
        return {tier: self._of(tier, judged, raw, standard) for tier in self.heads}

    def uncalibrated(self, found: Mapping[str, float]) -> float:
        """What the judged tier's head says before calibration; nothing may be `missing`."""
        return sigmoid(_log_odds(self.heads[self.manifest.judged], *self._values(found)))

    def _of(
        self, tier: str, judged: float, raw: Sequence[float], standard: Sequence[float]
    ) -> float:
        if tier == self.manifest.judged:
            return judged
        chance = self._chance[tier]
        told = chance(raw, standard)
        if chance.if_right is None:
            return told
        return judged * chance.if_right(raw, standard) + (1.0 - judged) * told

    def _values(self, found: Mapping[str, float]) -> tuple[list[float], list[float]]:
        """The values as they are and standardised; after them, which optional ones are missing."""
        raw = [found.get(feature.name, feature.mean) for feature in self.features]
        standard = [
            (value - feature.mean) / feature.scale
            for value, feature in zip(raw, self.features, strict=True)
        ]
        lacking = [float(f.name not in found) for f in self.features if f.optional]
        return raw + lacking, standard + lacking


class _Chance:
    """A head with its calibration, which is checked once.

    Raises:
        ConfigError: the calibration is no monotone map.
    """

    def __init__(self, head: Head) -> None:
        self._head = head
        self._calibrate = calibrated(head.calibration)
        self.if_right = _Chance(head.if_right) if head.if_right else None

    def __call__(self, raw: Sequence[float], standard: Sequence[float]) -> float:
        """The probability, of the head's own case."""
        return self._calibrate(_log_odds(self._head, raw, standard))


def _log_odds(head: Head, raw: Sequence[float], standard: Sequence[float]) -> float:
    parts = []
    if head.weights:
        parts.append(head.intercept + sum(map(operator.mul, head.weights, standard)))
    if head.trees:
        parts.append(head.base + sum(tree(raw) for tree in head.trees))
    return float(sum(parts) / len(parts)) if parts else head.intercept


def calibrated(calibration: Platt | Isotonic | None) -> Callable[[float], float]:
    """The probability by log-odds that a calibration stands for.

    Raises:
        ConfigError: it is no monotone map.
    """
    if calibration is None:
        return sigmoid
    if isinstance(calibration, Platt):
        return lambda log_odds: sigmoid(calibration.slope * log_odds + calibration.offset)
    fitted = MonotoneMap(calibration.x, calibration.y)
    return lambda log_odds: fitted(sigmoid(log_odds))


def sigmoid(log_odds: float) -> float:
    """The probability that belongs to log-odds, whatever their size."""
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1.0 + odds)


def model_of(artifact: Artifact) -> PanelModel:
    """The model that an artifact describes.

    Raises:
        ConfigError: a calibration is no monotone map.
    """
    chances = {tier: _Chance(head) for tier, head in artifact.heads.items()}
    digest = hashlib.blake2b(artifact.model_dump_json().encode(), digest_size=8).hexdigest()
    return PanelModel(digest, artifact.manifest, artifact.features, artifact.heads, chances)


def load_model(path: Path) -> PanelModel:
    """Read an artifact that `cascade judges fit` wrote.

    Raises:
        ConfigError: it is missing or damaged; says what is wrong with it.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such artifact; `cascade judges fit` makes one") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from None
    try:
        return model_of(Artifact.model_validate(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the file"
        raise ConfigError(f"{path}: {place}: {first['msg']}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}") from None
