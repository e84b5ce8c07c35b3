"""A fitted model of difficulty as files: a manifest in JSON, and its arrays in safetensors.

Neither can run code when it is read, as a pickle can. The manifest is written last and holds a hash
of the arrays, so that files of two different fits are never taken for one.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from safetensors import SafetensorError
from safetensors.numpy import load as unpacked
from safetensors.numpy import save as packed

from cascade.errors import ConfigError
from classifiers.chances import Calibration, Chances, Target
from classifiers.domain import Domain, Near
from classifiers.features import KNOWN, TAG
from classifiers.heads import head_of, parts_of
from classifiers.inputs import Inputs
from classifiers.model import DifficultyModel
from classifiers.text import DEFAULT, Extraction

KIND: Literal["difficulty_model"] = "difficulty_model"
ARRAYS = ".safetensors"

Array = NDArray[Any]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EmbeddingIdentity(_Part):
    """Whose vectors the model was fitted on; those of any other mean nothing to it."""

    model: str
    dimensions: Annotated[int, Field(gt=0)]


class DomainSettings(_Part):
    """How far from training rows of other groups, by both, `quantile` of the rows are at most."""

    nearest: Annotated[int, Field(gt=0)]
    meaning: Annotated[float, Field(gt=0)] | None
    shape: Annotated[float, Field(gt=0)]
    quantile: float


class Origin(_Part):
    """Where a model comes from.

    Attributes:
        data: hash of the rows that it was fitted on.
        rows: how many were used for what.
        versions: of what fitted it, by package.
        fitted_at: ISO 8601.
        recipe: how it was fitted.
        metrics: what was measured on rows that it was not fitted on.
    """

    data: str
    rows: Mapping[str, int]
    versions: Mapping[str, str]
    fitted_at: str
    recipe: Mapping[str, Any] = {}
    metrics: Mapping[str, Any] = {}


class Manifest(_Part):
    """The file's content.

    Attributes:
        models: by tier, from the cheapest to the best, what identifies the model whose answers were
            learned from; empty where the data did not say.
        embedding: None where no embedding is looked at.
        extraction: what of a request is classified; fields of `classifiers.text.Extraction`, and
            the defaults where it is empty.
        features: names of the cheap features, in order.
        target: see `Chances`.
        prior: P(acceptable) by tier over the training rows.
        arrays: hash of the file beside it.
    """

    kind: Literal["difficulty_model"]
    models: Mapping[str, str]
    embedding: EmbeddingIdentity | None
    extraction: Mapping[str, Any] = {}
    features: list[str]
    target: Target
    head: Mapping[str, Any]
    calibrations: list[Calibration]
    prior: Mapping[str, Annotated[float, Field(ge=0, le=1)]]
    domain: DomainSettings | None
    spread: Annotated[float, Field(gt=0)] = 1.0
    origin: Origin
    arrays: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> "Manifest":
        if len(self.models) < 2:  # noqa: PLR2004 - one tier leaves nothing to choose
            raise ValueError("models: it takes at least two tiers")
        if list(self.prior) != list(self.models):
            raise ValueError("prior names other tiers than models")
        if len(self.calibrations) != len(self.models):
            raise ValueError("calibrations: one a tier")
        if unknown := [n for n in self.features if n not in KNOWN and not n.startswith(TAG)]:
            raise ValueError(f"features: this version does not know {unknown[0]!r}")
        return self


def manifest_of(
    model: DifficultyModel,
    *,
    models: Mapping[str, str],
    embedding: EmbeddingIdentity | None,
    quantile: float,
    origin: Origin,
    extraction: Extraction = DEFAULT,
) -> Manifest:
    """What is to be written of a model beside its arrays; of the extraction, every field."""
    return Manifest(
        kind=KIND,
        models=models,
        embedding=embedding,
        extraction=extraction.settings(),
        features=list(model.inputs.names),
        target=model.chances.target,
        head=parts_of(model.head)[0],
        calibrations=list(model.chances.calibrations),
        prior=dict(zip(model.tiers, map(float, model.prior), strict=True)),
        domain=_settings(model.domain, quantile),
        spread=model.inputs.spread,
        origin=origin,
    )


def _settings(domain: Domain | None, quantile: float) -> DomainSettings | None:
    if domain is None:
        return None
    return DomainSettings(
        nearest=domain.shape.nearest,
        meaning=domain.meaning.limit if domain.meaning else None,
        shape=domain.shape.limit,
        quantile=quantile,
    )


def save(path: Path, manifest: Manifest, model: DifficultyModel) -> None:
    """Write the manifest, and the arrays beside it; an older artifact stays until both are whole.

    Raises:
        ConfigError: they cannot be written.
    """
    content = packed({name: np.ascontiguousarray(a) for name, a in _arrays(model).items()})
    whole = manifest.model_copy(update={"arrays": _digest(content)})
    text = orjson.dumps(whole.model_dump(mode="json"), option=orjson.OPT_INDENT_2) + b"\n"
    try:
        for file, data in ((path.with_suffix(ARRAYS), content), (path, text)):
            beside = file.with_name(f".{file.name}.new")
            beside.write_bytes(data)
            beside.replace(file)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from None


def load(path: Path) -> tuple[Manifest, DifficultyModel]:
    """Read what `save` wrote.

    Raises:
        ConfigError: a file is missing or damaged, or the two are of different fits.
    """
    manifest = _manifest(path)
    file = path.with_suffix(ARRAYS)
    content = _read(file)
    if _digest(content) != manifest.arrays:
        raise ConfigError(
            f"{file}: is not what {path.name} was written with: one of them is of another fit or "
            "was cut short; `cascade train` writes both"
        )
    try:
        return manifest, _model(manifest, unpacked(content))
    except SafetensorError as error:
        raise ConfigError(f"{file}: not safetensors: {error}") from None
    except KeyError as error:
        raise ConfigError(f"{file}: the array {error} is missing") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}") from None


def read_manifest(path: Path) -> Manifest:
    """The manifest alone, without the arrays.

    Raises:
        ConfigError: it is missing or damaged.
    """
    return _manifest(path)


def _manifest(path: Path) -> Manifest:
    try:
        return Manifest.model_validate(orjson.loads(_read(path)))
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the file"
        raise ConfigError(f"{path}: {place}: {first['msg']}") from None


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such artifact; `cascade train` makes one") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _arrays(model: DifficultyModel) -> dict[str, Array]:
    inputs = model.inputs
    found: dict[str, Array | None] = {
        "inputs.means": inputs.means,
        "inputs.scales": inputs.scales,
        "inputs.centre": inputs.centre,
        "inputs.axes": None if inputs.axes is None else inputs.axes.astype(np.float32),
    }
    if domain := model.domain:
        found["domain.means"], found["domain.scales"] = domain.means, domain.scales
        found["domain.shape"] = domain.shape.seen.astype(np.float16)
        meaning = domain.meaning
        found["domain.meaning"] = meaning.seen.astype(np.float16) if meaning else None
    return {name: a for name, a in found.items() if a is not None} | parts_of(model.head)[1]


def _model(manifest: Manifest, arrays: Mapping[str, Array]) -> DifficultyModel:
    inputs = Inputs(
        names=manifest.features,
        means=arrays["inputs.means"] if manifest.features else None,
        scales=arrays["inputs.scales"] if manifest.features else None,
        centre=arrays["inputs.centre"] if manifest.embedding else None,
        axes=arrays["inputs.axes"].astype(np.float64) if manifest.embedding else None,
        spread=manifest.spread,
    )
    return DifficultyModel(
        tiers=list(manifest.models),
        inputs=inputs,
        head=head_of(manifest.head, arrays),
        chances=Chances(manifest.target, manifest.calibrations),
        prior=np.array(list(manifest.prior.values())),
        domain=_domain(manifest.domain, arrays),
    )


def _domain(settings: DomainSettings | None, arrays: Mapping[str, Array]) -> Domain | None:
    if settings is None:
        return None
    meaning = None
    if settings.meaning is not None:
        seen = arrays["domain.meaning"].astype(np.float32)
        meaning = Near(seen, settings.nearest, settings.meaning)
    return Domain(
        meaning=meaning,
        shape=Near(arrays["domain.shape"].astype(np.float32), settings.nearest, settings.shape),
        means=arrays["domain.means"],
        scales=arrays["domain.scales"],
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
