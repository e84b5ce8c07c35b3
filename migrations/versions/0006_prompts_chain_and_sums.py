"""Kept prompts, the client's key, the prices in force; sums, deletions, the chain; more indexes."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
COUNTED = sa.BigInteger().with_variant(sa.Integer, "sqlite")

TEXTS = ("prices_version", "key_id", "prompt_form", "prompt_text", "answer_text")
FOUND_BY = ("status", "policy", "experiment", "arm", "tier")
SUMS = {
    "request_sums": (
        ("tenant", "experiment", "arm", "policy", "tier", "status"),
        (
            *("requests", "escalated", "cost_pico", "unknown_cost"),
            *("compared", "compared_cost_pico", "baseline_pico"),
            *("scored", "scores", "score_micro"),
        ),
    ),
    "call_sums": (
        ("tenant", "experiment", "arm", "tier", "kind"),
        (
            *("calls", "failed", "input_tokens", "cache_read_tokens", "cache_write_tokens"),
            *("output_tokens", "reasoning_tokens", "cache_reported", "cost_pico"),
            *("unknown_cost", "cold_premium_pico", "compared", "quoted_pico"),
            "compared_cost_pico",
        ),
    ),
    "judge_sums": (
        ("judge", "tier", "bin"),
        ("answers", "accepted", "score_micro", "labelled", "label_micro", "disagreed"),
    ),
    "time_sums": (("experiment", "arm", "tier", "measure", "bin"), ("number",)),
}


def upgrade() -> None:
    for name in TEXTS:
        op.add_column("requests", sa.Column(name, sa.Text()))
    op.add_column("requests", sa.Column("difficulty", sa.Double()))
    create_indexes()
    create_uncounted()
    for name, (keys, counters) in SUMS.items():
        create_sums(name, keys, counters)
    create_deletions()
    create_chain()


def downgrade() -> None:
    for name in ("chain_gaps", "chain_heads", "chain_links", "deletions"):
        op.drop_table(name)
    for name in reversed(SUMS):
        op.drop_table(name)
    op.drop_table("uncounted")
    op.drop_index("ix_feedback_given_at", "feedback")
    op.drop_index("ix_attempts_shadow", "attempts")
    op.drop_index("ix_requests_end_user", "requests")
    for name in reversed(FOUND_BY):
        op.drop_index(f"ix_requests_{name}_created_at", "requests")
    op.drop_column("requests", "difficulty")
    for name in reversed(TEXTS):
        op.drop_column("requests", name)


def create_indexes() -> None:
    for name in FOUND_BY:
        op.create_index(f"ix_requests_{name}_created_at", "requests", [name, "created_at"])
    named = sa.text("end_user IS NOT NULL")
    op.create_index(
        "ix_requests_end_user",
        "requests",
        ["end_user"],
        postgresql_where=named,
        sqlite_where=named,
    )
    shadow = sa.text("kind = 'shadow'")
    op.create_index(
        "ix_attempts_shadow",
        "attempts",
        ["request_id"],
        postgresql_where=shadow,
        sqlite_where=shadow,
    )
    op.create_index("ix_feedback_given_at", "feedback", ["given_at"])


def create_uncounted() -> None:
    """The rows that are there already are added up later, by what adds up the new ones."""
    op.create_table(
        "uncounted",
        sa.Column("request_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"],
            ["requests.id"],
            name="fk_uncounted_request_id_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("request_id", name="pk_uncounted"),
    )
    op.execute("INSERT INTO uncounted (request_id) SELECT id FROM requests")


def create_sums(name: str, keys: tuple[str, ...], counters: tuple[str, ...]) -> None:
    columns = [
        sa.Column(key, sa.BigInteger() if key == "bin" else sa.Text(), nullable=False)
        for key in keys
    ]
    op.create_table(
        name,
        sa.Column("span", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("at", sa.BigInteger(), nullable=False, autoincrement=False),
        *columns,
        *(sa.Column(counter, sa.BigInteger(), nullable=False) for counter in counters),
        sa.PrimaryKeyConstraint("span", "at", *keys, name=f"pk_{name}"),
    )


def create_deletions() -> None:
    op.create_table(
        "deletions",
        sa.Column("id", COUNTED, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("feedback", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deletions"),
    )
    op.create_index("ix_deletions_created_at", "deletions", ["created_at"])


def create_chain() -> None:
    op.create_table(
        "chain_links",
        sa.Column("writer", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("request_id", ID, nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("writer", "number", name="pk_chain_links"),
    )
    op.create_index("ix_chain_links_request_id", "chain_links", ["request_id"], unique=True)
    op.create_table(
        "chain_heads",
        sa.Column("writer", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("seal", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("writer", name="pk_chain_heads"),
    )
    op.create_table(
        "chain_gaps",
        sa.Column("writer", sa.Text(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("deletion", sa.BigInteger(), nullable=False),
        sa.Column("seal", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("writer", "first", name="pk_chain_gaps"),
    )
