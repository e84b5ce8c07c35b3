"""cascade audit: read the audit log, take it elsewhere, take rows out of it, check its chains."""

from typing import Final

import click

from serving.commands.lazy import LazyGroup

COMMANDS: Final = {
    "tail": ("serving.commands.audit_read:tail", "Print the latest requests."),
    "show": ("serving.commands.audit_read:show", "Explain one request."),
    "stats": ("serving.commands.audit_read:statistics", "Sum up cost, judges and latency."),
    "export": ("serving.commands.audit_export:export", "Write the log to Parquet files."),
    "prune": ("serving.commands.audit_removal:prune", "Remove what is old."),
    "delete": ("serving.commands.audit_removal:delete", "Remove a tenant or a user."),
    "verify": ("serving.commands.audit_chain:verify", "Check that no row was changed."),
    "key": ("serving.commands.audit_chain:key", "Make a key for prompts and chains."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def audit() -> None:
    """Read the audit log and look after it."""
