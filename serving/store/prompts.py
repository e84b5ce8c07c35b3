"""In which form the texts of a request are kept in the audit log.

They take that form before anything is written, so nothing readable of them is in a file or in the
database unless that is what was asked for; and in a thread of their own, so no request waits.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from cascade.audit import Prompts, Unkept
from cascade.errors import ConfigError
from cascade.result import CascadeResult
from cascade.types import Choice
from serving.store.keys import AuditKeys

logger = logging.getLogger(__name__)

FORMS = ("none", "hash", "redacted", "full")
PARAM = "audit.prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Prompts that are kept in a form of their own.

    Attributes:
        into: that form of a JSON value, given also the place where it will be kept.
        hash_key: goes into every hash of a prompt.
    """

    form: str
    into: Callable[[Any, str], str]
    hash_key: bytes = field(default=b"", repr=False)

    def texts(self, result: CascadeResult) -> tuple[str | None, str | None]:
        """Messages and tools, and the choices of the answer, as JSON in that form.

        What cannot take that form is not kept: the rest of the row is worth more than its text.
        """
        request, completion = result.request, result.completion
        try:
            asked = {"messages": request.messages, "tools": request.tools}
            prompt = self.into(asked, place(request.id, "prompt"))
            if completion is None:
                return prompt, None
            said = [_choice(choice) for choice in completion.choices]
            return prompt, self.into(said, place(request.id, "answer"))
        except Exception:
            logger.exception("the texts of request %s cannot be kept as %s", request.id, self.form)
            return None, None


def prompts(form: str, keys: AuditKeys | None = None) -> Prompts:
    """What keeps prompts in a form.

    Args:
        form: one of FORMS.
        keys: what encrypts, for the form `full`; and what keeps hashes from being tried, if there
            are any.

    Raises:
        ConfigError: it needs a package that is not installed.
    """
    if form in {"hash", "none"}:
        return Unkept(form=form, hash_key=_hash_key(keys))
    try:
        return _redacted(keys) if form == "redacted" else _encrypted(keys)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"keeping prompts as {form} takes a package that is not installed ({error.name}): "
            "pip install 'cascade-router[privacy]'",
            param=PARAM,
        ) from None


def place(request_id: str, what: str) -> str:
    """Where a text is kept, which an encrypted one is bound to."""
    return f"{request_id}/{what}"


def _hash_key(keys: AuditKeys | None) -> bytes:
    return keys.current.hashing if keys else b""


def _redacted(keys: AuditKeys | None) -> Prompts:
    if find_spec("presidio_analyzer") is None:
        raise ModuleNotFoundError(name="presidio_analyzer")
    from serving.store.redacting import Redacting  # noqa: PLC0415 - if it is used

    redacting = Redacting()
    return Kept(
        form="redacted",
        into=lambda value, _: _json(redacting.value(value)),
        hash_key=_hash_key(keys),
    )


def _encrypted(keys: AuditKeys | None) -> Prompts:
    from serving.store.encryption import encrypt  # noqa: PLC0415 - if it is used

    if keys is None:
        raise ConfigError("keeping prompts as full needs a key", param=PARAM)
    return Kept(
        form="full",
        into=lambda value, where: encrypt(keys, _json(value), where),
        hash_key=_hash_key(keys),
    )


def _choice(choice: Choice) -> dict[str, Any]:
    return {"content": choice.text, "tool_calls": choice.tool_calls}


def _json(value: Any) -> str:
    # A client may send half a surrogate pair, which is no text to anybody else.
    told = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return told.encode("utf-8", "replace").decode()
