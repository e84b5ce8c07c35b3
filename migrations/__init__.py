"""Alembic migrations of the audit log."""
