"""Feedback; what the dearest tier would have cost; idempotency keys; tries and estimated usage.

Columns are added in place: to rebuild a table, as SQLite's batch mode does, would delete the
attempts along with the requests they refer to.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
KEYED = sa.text("idempotency_hash IS NOT NULL")


def upgrade() -> None:
    op.add_column("requests", sa.Column("baseline_pico", sa.BigInteger()))
    op.add_column("requests", sa.Column("idempotency_hash", sa.Text()))
    op.create_index(
        "ix_requests_idempotency_hash_tenant",
        "requests",
        ["idempotency_hash", "tenant"],
        postgresql_where=KEYED,
        sqlite_where=KEYED,
    )
    op.add_column(
        "attempts",
        sa.Column("usage_estimated", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column("attempts", sa.Column("tries", sa.BigInteger()))
    create_feedback()


def downgrade() -> None:
    op.drop_table("feedback")
    op.drop_column("attempts", "tries")
    op.drop_column("attempts", "usage_estimated")
    op.drop_index("ix_requests_idempotency_hash_tenant", "requests")
    op.drop_column("requests", "idempotency_hash")
    op.drop_column("requests", "baseline_pico")


def create_feedback() -> None:
    op.create_table(
        "feedback",
        sa.Column("request_id", ID, nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("given_at", sa.Double(), nullable=False),
        sa.Column("score", sa.Double()),
        sa.Column("label", sa.Text()),
        sa.Column("correction", sa.Text()),
        sa.Column("comment", sa.Text()),
        sa.PrimaryKeyConstraint("request_id", "tenant", "source", name="pk_feedback"),
    )
