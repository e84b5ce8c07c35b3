"""Prompts' segments as hashes, and what was expected of a call's prompt and answer."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

QUOTED = ("warm_tokens", "cold_tokens", "expected_output_tokens", "credit_pico")


def upgrade() -> None:
    document = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.add_column("requests", sa.Column("segments", document))
    for name in QUOTED:
        op.add_column("attempts", sa.Column(name, sa.BigInteger()))


def downgrade() -> None:
    for name in reversed(QUOTED):
        op.drop_column("attempts", name)
    op.drop_column("requests", "segments")
