"""The keys of the audit log: what encrypts kept prompts, hides what is hashed, and seals its chain.

They come from the environment, so that they are in no file beside the data. The first is used from
now on; the others are those of old rows, which stay readable when a new key is put in front.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from cascade.errors import ConfigError

VARIABLE = "CASCADE_AUDIT_KEY"
_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditKey:
    """One key, and what is made of it for each use.

    Attributes:
        id: eight characters that tell it from others and say nothing of it.
    """

    id: str
    encrypting: bytes = field(repr=False)
    sealing: bytes = field(repr=False)
    hashing: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> "AuditKey":
        """Derive what is used: HKDF-Expand (RFC 5869) with a single block."""

        def derived(use: bytes) -> bytes:
            return hmac.digest(secret, b"cascade audit log: " + use + b"\x01", "sha256")

        return cls(
            id=derived(b"name").hex()[:8],
            encrypting=derived(b"encrypting"),
            sealing=derived(b"sealing"),
            hashing=derived(b"hashing"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditKeys:
    """The key in use, and all that are known, by their ids."""

    current: AuditKey
    known: Mapping[str, AuditKey]

    def seal(self, *parts: object) -> str:
        """A text that only who has the key can make of these parts: its id and an HMAC-SHA-256."""
        return _sealed(self.current, parts)

    def sealed(self, seal: str, *parts: object) -> bool:
        """Whether a seal is of these parts and by a key that is known."""
        key = self.known.get(seal.partition(":")[0])
        return key is not None and hmac.compare_digest(seal, _sealed(key, parts))


def new_key() -> str:
    """A key as the variable takes it."""
    return base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)).decode()


def audit_keys(environment: Mapping[str, str] | None = None) -> AuditKeys | None:
    """The keys in the environment; None when there are none.

    Raises:
        ConfigError: what is there is no key.
    """
    given = (os.environ if environment is None else environment).get(VARIABLE, "")
    texts = [text.strip() for text in given.split(",") if text.strip()]
    if not texts:
        return None
    keys = [AuditKey.of(_secret(text, number)) for number, text in enumerate(texts, 1)]
    return AuditKeys(current=keys[0], known={key.id: key for key in keys})


def required_keys(why: str, param: str = "audit") -> AuditKeys:
    """The keys in the environment.

    Args:
        why: what cannot be done without one, as the beginning of a sentence.
        param: the key of the configuration that asks for it.

    Raises:
        ConfigError: there is none; says how to make one.
    """
    keys = audit_keys()
    if keys is None:
        raise ConfigError(
            f"{why} needs a key: set {VARIABLE} to what `cascade audit key` prints, and keep it "
            "safe",
            param=param,
        )
    return keys


def _secret(text: str, number: int) -> bytes:
    try:
        secret = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) != _BYTES:
        raise ConfigError(
            f"{VARIABLE}: key {number} is not {_BYTES} bytes in base64; `cascade audit key` makes "
            "one"
        )
    return secret


def _sealed(key: AuditKey, parts: tuple[object, ...]) -> str:
    # Each part with its length, so that nothing can be moved from one into the next.
    told = b"".join(f"{len(text)}:".encode() + text for text in (str(p).encode() for p in parts))
    return f"{key.id}:{hmac.new(key.sealing, told, hashlib.sha256).hexdigest()}"
