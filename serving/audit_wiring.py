"""Builds what keeps the audit log, as the configuration and the environment say.

A part of the composition root. What lacks a key or a package is said before anything is started.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cascade.audit import Prompts
from cascade.errors import ConfigError
from serving.config import ConfigFile
from serving.models.home import home
from serving.store.chain import Chain
from serving.store.database import engine_for, parse
from serving.store.journal import Limits
from serving.store.keys import AuditKeys, audit_keys, required_keys
from serving.store.prompts import PARAM, prompts
from serving.store.pruning import Pruner
from serving.store.sink import SqlAuditSink
from serving.store.spool import Spool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditParts:
    """What a sink is made of that may be missing."""

    prompts: Prompts
    keys: AuditKeys | None
    chained: bool


def audit_parts(file: ConfigFile) -> AuditParts:
    """What the configuration asks for.

    Raises:
        ConfigError: a key or a package is missing; says which line asks for it.
    """
    settings = file.config.audit
    try:
        keys = audit_keys()
        if settings.prompts == "full":
            keys = required_keys("keeping prompts in full", PARAM)
        if settings.chain:
            keys = required_keys("chaining the rows", "audit.chain")
        return AuditParts(
            prompts=prompts(settings.prompts, keys), keys=keys, chained=settings.chain
        )
    except ConfigError as error:
        raise file.explain(error) from None


def audit_sink(file: ConfigFile, parts: AuditParts) -> SqlAuditSink:
    """The sink of a configuration."""
    settings = file.config.audit
    return SqlAuditSink(
        engine_for(file.audit_url),
        spool_of(file).folder,
        limits=Limits(flush_interval=settings.flush_seconds, spool_bytes=settings.spill_max_bytes),
        embeddings=settings.embeddings,
        prompts=parts.prompts,
        chain=Chain(parts.keys) if parts.keys is not None and parts.chained else None,
    )


def spool_of(file: ConfigFile) -> Spool:
    """Where the rows of a configuration's service wait; it need not be there."""
    own = file.config.audit.spill
    return Spool(file.path.parent / own if own else _spill_folder(file.audit_url))


def pruners(file: ConfigFile, parts: AuditParts) -> list[Pruner]:
    """What removes old rows; nothing where rows are kept for ever."""
    days = file.config.audit.retention_days
    return [] if days is None else [Pruner(engine_for(file.audit_url), days, parts.keys)]


def _spill_folder(url: str) -> Path:
    """One folder a database, so that rows never end up in another one's log."""
    # Without password and options: changing those must not leave waiting rows behind.
    database = parse(url).set(password=None, query={}).render_as_string()
    return home() / "spill" / hashlib.sha256(database.encode()).hexdigest()[:12]
