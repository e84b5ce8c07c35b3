"""The audit log: requests and their attempts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    create_requests()
    create_attempts()


def downgrade() -> None:
    op.drop_table("attempts")
    op.drop_table("requests")


def create_requests() -> None:
    op.create_table(
        "requests",
        sa.Column("id", ID, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("requested_model", sa.Text(), nullable=False),
        sa.Column("experiment", sa.Text()),
        sa.Column("arm", sa.Text()),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("config_version", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("tags", DOCUMENT, nullable=False),
        sa.Column("prompt_hash", sa.Text(), nullable=False),
        sa.Column("prompt_messages", sa.BigInteger(), nullable=False),
        sa.Column("tier", sa.Text()),
        sa.Column("model", sa.Text()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("answers", sa.BigInteger(), nullable=False),
        sa.Column("beliefs", DOCUMENT),
        sa.Column("belief_flags", DOCUMENT, nullable=False),
        sa.Column("features", DOCUMENT),
        sa.Column("cost_pico", sa.BigInteger()),
        sa.Column("duration_ms", sa.Double(), nullable=False),
        sa.Column("overhead_ms", sa.Double(), nullable=False),
        sa.Column("released_characters", sa.BigInteger(), nullable=False),
        sa.Column("error_type", sa.Text()),
        sa.Column("error_message", sa.Text()),
        sa.Column("error_status", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_requests"),
    )
    op.create_index("ix_requests_created_at", "requests", ["created_at"])
    op.create_index("ix_requests_session_created_at", "requests", ["session", "created_at"])
    op.create_index("ix_requests_tenant_created_at", "requests", ["tenant", "created_at"])


def create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("request_id", ID, nullable=False),
        sa.Column("index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("replica", sa.Text()),
        sa.Column("model", sa.Text()),
        sa.Column("outcome", sa.Text()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("judge", sa.Text()),
        sa.Column("score", sa.Double()),
        sa.Column("threshold", sa.Double()),
        sa.Column("verdict_reason", sa.Text()),
        sa.Column("features", DOCUMENT),
        sa.Column("finish_reason", sa.Text()),
        sa.Column("partial", sa.Boolean(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger()),
        sa.Column("cache_read_tokens", sa.BigInteger()),
        sa.Column("cache_write_tokens", sa.BigInteger()),
        sa.Column("cache_write_by_ttl", DOCUMENT),
        sa.Column("output_tokens", sa.BigInteger()),
        sa.Column("reasoning_tokens", sa.BigInteger()),
        sa.Column("cost_pico", sa.BigInteger()),
        sa.Column("input_cost_pico", sa.BigInteger()),
        sa.Column("cache_read_cost_pico", sa.BigInteger()),
        sa.Column("cache_write_cost_pico", sa.BigInteger()),
        sa.Column("output_cost_pico", sa.BigInteger()),
        sa.Column("cold_premium_pico", sa.BigInteger()),
        sa.Column("quoted_pico", sa.BigInteger()),
        sa.Column("started_ms", sa.Double(), nullable=False),
        sa.Column("duration_ms", sa.Double(), nullable=False),
        sa.Column("first_token_ms", sa.Double()),
        sa.Column("error_type", sa.Text()),
        sa.Column("error_message", sa.Text()),
        sa.PrimaryKeyConstraint("request_id", "index", name="pk_attempts"),
        sa.ForeignKeyConstraint(
            ["request_id"],
            ["requests.id"],
            name="fk_attempts_request_id_requests",
            ondelete="CASCADE",
        ),
    )
