"""Embeddings of what was classified, where the configuration asks for them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    document = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.add_column("requests", sa.Column("embedding", document))


def downgrade() -> None:
    op.drop_column("requests", "embedding")
