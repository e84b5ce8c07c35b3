"""The tables of the audit log, column by column the fields of the records that go into them.

`created_at` is seconds since the epoch, UTC, as a double: the one form that means the same in both
databases, has no time zone to get wrong, keeps the record's value to the microsecond, and is cut
into buckets by plain arithmetic. For people, `to_timestamp(created_at)` in PostgreSQL and
`datetime(created_at, 'unixepoch')` in SQLite show it as a date. Money is whole pico-dollars, which
add up exactly. Counts are 64 bits wide, because what an upstream reports is not ours to bound.

Feedback has no foreign key to its request. The request's row may come after it, from another
process's journal, or may have been refused; neither is a reason to refuse what somebody said. The
tenant is part of its key, so that nobody's word replaces that of another tenant, and who reads it
joins on id and tenant.

An override is never changed: the latest of a subject is in force until its time is over, and one
without a value gives the word back to the file. Its version is what tells every worker that there
is something new.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    false,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# Byte order on both databases, so that a prefix of an id is a range of the primary key.
Id = Text().with_variant(Text(collation="C"), "postgresql")
Document = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

requests = Table(
    "requests",
    metadata,
    Column("id", Id, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("status", Text, nullable=False),
    Column("requested_model", Text, nullable=False),
    Column("experiment", Text),
    Column("arm", Text),
    Column("experiment_version", BigInteger),
    Column("policy", Text, nullable=False),
    Column("config_version", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("end_user", Text),
    Column("session", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("idempotency_hash", Text),
    Column("tags", Document, nullable=False),
    Column("prompt_hash", Text, nullable=False),
    Column("prompt_messages", BigInteger, nullable=False),
    Column("segments", Document),
    Column("tier", Text),
    Column("model", Text),
    Column("reason", Text, nullable=False),
    Column("answers", BigInteger, nullable=False),
    Column("beliefs", Document),
    Column("belief_flags", Document, nullable=False),
    Column("features", Document),
    Column("embedding", Document),
    Column("cost_pico", BigInteger),
    Column("baseline_pico", BigInteger),
    Column("duration_ms", Double, nullable=False),
    Column("overhead_ms", Double, nullable=False),
    Column("released_characters", BigInteger, nullable=False),
    Column("error_type", Text),
    Column("error_message", Text),
    Column("error_status", BigInteger),
)
Index(None, requests.c.created_at)
Index(None, requests.c.session, requests.c.created_at)
Index(None, requests.c.tenant, requests.c.created_at)
_KEYED = requests.c.idempotency_hash.is_not(None)
Index(
    None,
    requests.c.idempotency_hash,
    requests.c.tenant,
    postgresql_where=_KEYED,
    sqlite_where=_KEYED,
)

attempts = Table(
    "attempts",
    metadata,
    Column("request_id", Id, ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True),
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("replica", Text),
    Column("model", Text),
    Column("outcome", Text),
    Column("reason", Text, nullable=False),
    Column("judge", Text),
    Column("score", Double),
    Column("threshold", Double),
    Column("verdict_reason", Text),
    Column("features", Document),
    Column("finish_reason", Text),
    Column("partial", Boolean, nullable=False),
    Column("input_tokens", BigInteger),
    Column("cache_read_tokens", BigInteger),
    Column("cache_write_tokens", BigInteger),
    Column("cache_write_by_ttl", Document),
    Column("output_tokens", BigInteger),
    Column("reasoning_tokens", BigInteger),
    Column("cost_pico", BigInteger),
    Column("input_cost_pico", BigInteger),
    Column("cache_read_cost_pico", BigInteger),
    Column("cache_write_cost_pico", BigInteger),
    Column("output_cost_pico", BigInteger),
    Column("usage_estimated", Boolean, nullable=False, server_default=false()),
    Column("tries", BigInteger),
    Column("cold_premium_pico", BigInteger),
    Column("quoted_pico", BigInteger),
    Column("warm_tokens", BigInteger),
    Column("cold_tokens", BigInteger),
    Column("expected_output_tokens", BigInteger),
    Column("credit_pico", BigInteger),
    Column("quote_estimated", Boolean),
    Column("propensity", Double),
    Column("started_ms", Double, nullable=False),
    Column("duration_ms", Double, nullable=False),
    Column("first_token_ms", Double),
    Column("error_type", Text),
    Column("error_message", Text),
)

feedback = Table(
    "feedback",
    metadata,
    Column("request_id", Id, primary_key=True),
    Column("tenant", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("given_at", Double, nullable=False),
    Column("score", Double),
    Column("label", Text),
    Column("correction", Text),
    Column("comment", Text),
    Column("compared_to", Id),
    Column("preferred", Text),
)

# A key that counts up by itself is an INTEGER in SQLite, and 64 bits wide there as well.
Counted = BigInteger().with_variant(Integer, "sqlite")

overrides = Table(
    "overrides",
    metadata,
    Column("version", Counted, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("value", Document),
    Column("until", Double),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)
Index(None, overrides.c.subject, overrides.c.version)

alerts = Table(
    "alerts",
    metadata,
    Column("id", Counted, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("details", Document),
    Column("delivered_at", Double),
)
Index(None, alerts.c.created_at)
