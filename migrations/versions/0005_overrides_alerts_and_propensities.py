"""What overrides the file at run time; alerts; users; how likely a shadow call was; comparisons."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
COUNTED = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("requests", sa.Column("experiment_version", sa.BigInteger()))
    op.add_column("requests", sa.Column("end_user", sa.Text()))
    op.add_column("attempts", sa.Column("quote_estimated", sa.Boolean()))
    op.add_column("attempts", sa.Column("propensity", sa.Double()))
    op.add_column("feedback", sa.Column("compared_to", ID))
    op.add_column("feedback", sa.Column("preferred", sa.Text()))
    create_overrides()
    create_alerts()


def downgrade() -> None:
    op.drop_table("alerts")
    op.drop_table("overrides")
    op.drop_column("feedback", "preferred")
    op.drop_column("feedback", "compared_to")
    op.drop_column("attempts", "propensity")
    op.drop_column("attempts", "quote_estimated")
    op.drop_column("requests", "end_user")
    op.drop_column("requests", "experiment_version")


def create_overrides() -> None:
    op.create_table(
        "overrides",
        sa.Column("version", COUNTED, nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("value", DOCUMENT),
        sa.Column("until", sa.Double()),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("version", name="pk_overrides"),
    )
    op.create_index("ix_overrides_subject_version", "overrides", ["subject", "version"])


def create_alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", COUNTED, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("details", DOCUMENT),
        sa.Column("delivered_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
    )
    op.create_index("ix_alerts_created_at", "alerts", ["created_at"])
