"""Results of experiments, as they were computed last."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "experiment_results",
        sa.Column("experiment", sa.Text(), nullable=False),
        sa.Column("trial", sa.Text(), nullable=False),
        sa.Column("computed_at", sa.Double(), nullable=False),
        sa.Column("took_seconds", sa.Double(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("experiment", "trial", name="pk_experiment_results"),
    )


def downgrade() -> None:
    op.drop_table("experiment_results")
