"""What is told of the state at the moment of asking."""

from dataclasses import dataclass

from cascade.caches import CacheCard
from serving.store.sink import AuditState
from serving.store.spool import Backlog
from tests.engines import tier
from tests.ledgers import ids
from tests.metrics import Read, metrics


@dataclass
class Server:
    tier: str
    state: str


def test_tiers_that_cool_down_and_those_whose_server_is_not_up_are_told_apart():
    small, large = tier("small", cooling=lambda: True), tier("large")
    told = Read(metrics(small, large).told([Server("large", "restarting")], None))
    assert (told("tier_cooling", tier="small"), told("tier_cooling", tier="large")) == (1, 0)
    assert (told("tier_ready", tier="small"), told("tier_ready", tier="large")) == (0, 0)
    told = Read(metrics(tier("small")).told([Server("small", "ready")], None))
    assert (told("tier_cooling", tier="small"), told("tier_ready", tier="small")) == (0, 1)


def test_what_the_caches_hold_is_told_in_bytes_where_a_tokens_size_is_known():
    small = tier("small", cache=CacheCard(kind="slots", slots=2))
    large = tier("large", cache=CacheCard(kind="slots", slots=1))
    made = metrics(small, large, tier("bare"), kv_bytes_per_token={"small": 12_288})
    ledger = made.forecast.ledger
    for name in ("small", "large"):
        ledger.began(name, ids("hello"))
        ledger.ended(name, ids("hello you"))
    told = Read(made.told([], None))
    assert told("cache_retained_tokens", tier="small") == 9
    assert told("cache_retained_bytes", tier="small") == 9 * 12_288
    assert told("cache_retained_tokens", tier="large") == 9
    assert told("cache_retained_bytes", tier="large") is None
    assert told("cache_retained_tokens", tier="bare") is None


def test_the_logs_queue_spool_and_losses_are_told():
    backlog = Backlog(files=1, bytes=800, oldest_ns=None, rows=7)
    state = AuditState(
        status="degraded", reason="", backlog=backlog, queued=3, dropped=2, refused=1
    )
    told = Read(metrics().told([], state))
    assert told("audit_queued_rows") == 3
    assert told("audit_spilled_rows") == 7
    assert told("audit_dropped_total") == 2
    assert told("audit_refused_total") == 1


def test_requests_under_way_are_counted():
    made = metrics()
    made.began()
    made.began()
    made.ended()
    assert Read(made.told([], None))("requests_in_flight") == 1


def test_nothing_is_said_of_what_is_not_known():
    told = Read(metrics().told([], None))
    assert told("tenant_cache_affinity") is None
    assert told("audit_queued_rows") is None
    assert told("prompt_fingerprint_cardinality") == 0
