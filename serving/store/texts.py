"""Reads the texts that were kept of a request."""

from typing import Any

import orjson

from cascade.audit import AuditRecord
from cascade.errors import AuditError
from serving.store.keys import AuditKeys, required_keys
from serving.store.prompts import PARAM, place


def texts(record: AuditRecord) -> dict[str, Any]:
    """Prompt and answer as they were kept; encrypted ones are decrypted.

    Raises:
        AuditError: none was kept, or it cannot be decrypted.
        ConfigError: there is no key to decrypt it with.
    """
    if record.prompt_text is None and record.answer_text is None:
        raise AuditError(
            f"of request {record.id} no text is kept, only {record.prompt_form or 'hash'}: see "
            f"{PARAM}"
        )
    keys = required_keys("reading prompts") if record.prompt_form == "full" else None
    return {
        "prompt": _read(record, "prompt", record.prompt_text, keys),
        "answer": _read(record, "answer", record.answer_text, keys),
    }


def _read(record: AuditRecord, what: str, kept: str | None, keys: AuditKeys | None) -> Any:
    if kept is None:
        return None
    if keys is None:
        return orjson.loads(kept)
    try:
        from serving.store.encryption import decrypt  # noqa: PLC0415 - if it is used
    except ModuleNotFoundError as error:
        raise AuditError(
            f"reading prompts takes a package that is not installed ({error.name}): "
            "pip install 'cascade-router[privacy]'"
        ) from None
    return orjson.loads(decrypt(keys, kept, place(record.id, what)))
