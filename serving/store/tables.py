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

Sums are kept by the hour and by the day, so that a year is added up as quickly as a morning; what a
key does not apply to is an empty text. `uncounted` holds the requests that are not in them yet: of
a log that is older than they are. A chain's links are rows beside the requests, of those that were
written while chaining was on; a gap says which were removed, by whose right.

An experiment's results are kept by what they are of, as they were computed last: whoever asks next,
from whichever process, need not add up the requests again. The document is a text, since the order
of its keys is that of what is shown.
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
    Column("prices_version", Text),
    Column("tenant", Text, nullable=False),
    Column("key_id", Text),
    Column("end_user", Text),
    Column("session", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("idempotency_hash", Text),
    Column("tags", Document, nullable=False),
    Column("prompt_hash", Text, nullable=False),
    Column("prompt_messages", BigInteger, nullable=False),
    Column("prompt_form", Text),
    Column("prompt_text", Text),
    Column("answer_text", Text),
    Column("segments", Document),
    Column("tier", Text),
    Column("model", Text),
    Column("reason", Text, nullable=False),
    Column("answers", BigInteger, nullable=False),
    Column("beliefs", Document),
    Column("belief_flags", Document, nullable=False),
    Column("difficulty", Double),
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
for _name in ("status", "policy", "experiment", "arm", "tier"):
    Index(None, requests.c[_name], requests.c.created_at)
_NAMED = requests.c.end_user.is_not(None)
Index(None, requests.c.end_user, postgresql_where=_NAMED, sqlite_where=_NAMED)
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
_SHADOW = attempts.c.kind == "shadow"
Index(
    "ix_attempts_shadow",
    attempts.c.request_id,
    postgresql_where=_SHADOW,
    sqlite_where=_SHADOW,
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
Index(None, feedback.c.given_at)

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

uncounted = Table(
    "uncounted",
    metadata,
    Column("request_id", Id, ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True),
)


def _rolled_up(name: str, keys: tuple[str, ...], counters: tuple[str, ...]) -> Table:
    """Sums over an hour or a day that begins at `at`, in seconds since the epoch."""
    return Table(
        name,
        metadata,
        Column("span", BigInteger, primary_key=True, autoincrement=False),
        Column("at", BigInteger, primary_key=True, autoincrement=False),
        *(Column(each, Text, primary_key=True) for each in keys if each != "bin"),
        *(
            Column(each, BigInteger, primary_key=True, autoincrement=False)
            for each in keys
            if each == "bin"
        ),
        *(Column(each, BigInteger, nullable=False) for each in counters),
    )


request_sums = _rolled_up(
    "request_sums",
    ("tenant", "experiment", "arm", "policy", "tier", "status"),
    (
        *("requests", "escalated", "cost_pico", "unknown_cost"),
        *("compared", "compared_cost_pico", "baseline_pico"),
        *("scored", "scores", "score_micro"),
    ),
)
call_sums = _rolled_up(
    "call_sums",
    ("tenant", "experiment", "arm", "tier", "kind"),
    (
        *("calls", "failed", "input_tokens", "cache_read_tokens", "cache_write_tokens"),
        *("output_tokens", "reasoning_tokens", "cache_reported", "cost_pico", "unknown_cost"),
        *("cold_premium_pico", "compared", "quoted_pico", "compared_cost_pico"),
    ),
)
judge_sums = _rolled_up(
    "judge_sums",
    ("judge", "tier", "bin"),
    ("answers", "accepted", "score_micro", "labelled", "label_micro", "disagreed"),
)
time_sums = _rolled_up("time_sums", ("experiment", "arm", "tier", "measure", "bin"), ("number",))

deletions = Table(
    "deletions",
    metadata,
    Column("id", Counted, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("feedback", BigInteger, nullable=False),
)
Index(None, deletions.c.created_at)

chain_links = Table(
    "chain_links",
    metadata,
    Column("writer", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("request_id", Id, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
Index(None, chain_links.c.request_id, unique=True)

chain_heads = Table(
    "chain_heads",
    metadata,
    Column("writer", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
    Column("seal", Text, nullable=False),
)

chain_gaps = Table(
    "chain_gaps",
    metadata,
    Column("writer", Text, primary_key=True),
    Column("first", BigInteger, primary_key=True, autoincrement=False),
    Column("last", BigInteger, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("deletion", BigInteger, nullable=False),
    Column("seal", Text, nullable=False),
)

experiment_results = Table(
    "experiment_results",
    metadata,
    Column("experiment", Text, primary_key=True),
    Column("trial", Text, primary_key=True),
    Column("computed_at", Double, nullable=False),
    Column("took_seconds", Double, nullable=False),
    Column("document", Text, nullable=False),
)
