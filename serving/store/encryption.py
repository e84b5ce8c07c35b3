"""Encrypts texts for the audit log with AES-256-GCM, each bound to the place where it is kept.

So a text cannot be read without the key, and one that was moved to another row is not taken for
that row's own.
"""

import base64
import secrets
import zlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cascade.errors import AuditError
from serving.store.keys import AuditKeys

_FORM = "v1"
_NONCE_BYTES = 12


def encrypt(keys: AuditKeys, text: str, place: str) -> str:
    """The text in a form that only who has the key can read."""
    key, nonce = keys.current, secrets.token_bytes(_NONCE_BYTES)
    packed = zlib.compress(text.encode())
    sealed = AESGCM(key.encrypting).encrypt(nonce, packed, place.encode())
    return f"{_FORM}.{key.id}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"


def decrypt(keys: AuditKeys, kept: str, place: str) -> str:
    """The text again.

    Raises:
        AuditError: it was encrypted with another key, or is not what was kept in that place.
    """
    form, _, rest = kept.partition(".")
    name, _, data = rest.partition(".")
    key = keys.known.get(name)
    if form != _FORM or key is None:
        raise AuditError(
            f"the text of {place} was encrypted with the key {name or '?'}, which is not among "
            f"those given ({', '.join(keys.known)})"
        )
    raw = base64.urlsafe_b64decode(data)
    try:
        packed = AESGCM(key.encrypting).decrypt(
            raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], place.encode()
        )
    except InvalidTag:
        raise AuditError(
            f"the text of {place} is not what was kept there: it was changed"
        ) from None
    return zlib.decompress(packed).decode()
