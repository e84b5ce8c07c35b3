"""How long a prompt is worth keeping warm, from the gaps between its uses in the audit log."""
