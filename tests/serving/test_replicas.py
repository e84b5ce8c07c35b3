"""A tier of several servers, from its keys to the audit row."""

from collections import Counter
from dataclasses import replace

import pytest

from cascade.audit import record
from cascade.errors import ConfigError
from serving import tier_config as cfg
from serving.config import ConfigFile
from serving.tier_wiring import build_tier
from serving.wiring import Wiring
from tests.engines import Bench, ladder, request
from tests.upstream import DONE, Upstream, serving, words

ANSWER = [*words("one", " two"), DONE]
URLS = "['http://127.0.0.1:9/v1', 'http://127.0.0.1:10/v1']"


def wired(folder, keys):
    path = folder / "cascade.yaml"
    path.write_text(f"tiers:\n  t: {{{keys}}}\n")
    file = ConfigFile(path)
    try:
        return Wiring(file.config, folder).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


def tier_of(*urls, **keys):
    plain = {"backend": "openai_http", "model": "m", "replicas": urls, **keys}
    return build_tier("t", cfg.Tier.model_validate(plain), None)


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        (f"backend: openai_http, model: m, replicas: {URLS}, url: 'http://x/v1'", ": url and repl"),
        ("backend: openai_http, model: m, replicas: []", r"\.replicas: .*list each server's"),
        ("backend: openai_http, model: m, replicas: [x:8000]", r"\.replicas: .*'x:8000'.*http://"),
        (
            "backend: openai_http, model: m, replicas: ['http://x', 'http://x']",
            r"\.replicas: .*twi",
        ),
        (
            "backend: openai_http, model: m, replicas: ['http://x/v1', 'http://me:k@x/v1/']",
            r"\.replicas: .*twice",
        ),
        (f"backend: scripted, replicas: {URLS}", ": replicas are for backend openai_http"),
        (
            f"backend: openai_http, replicas: {URLS}, launch: {{engine: llama_cpp, model: x}}",
            ": replicas are for backend openai_http without launch",
        ),
        (
            "backend: openai_http, model: m, url: 'http://x/v1', replica_rule: session",
            ": replica_rule without replicas",
        ),
        (
            f"backend: openai_http, model: m, replicas: {URLS}, replica_rule: sticky",
            r"\.replica_rule: .*'session'",
        ),
        (f"backend: openai_http, replicas: {URLS}", ": the key model is missing"),
        (f"backend: openai_http, model: m, tokens: 3, replicas: {URLS}", r"\.tokens: unknown key"),
    ],
)
def test_what_cannot_work_is_refused_with_line_and_key(tmp_path, keys, fault):
    with pytest.raises(ConfigError, match=rf"cascade\.yaml:2: tiers\.t{fault}"):
        wired(tmp_path, keys)


def test_the_servers_and_the_rule_are_part_of_the_version(tmp_path):
    tail = f"backend: openai_http, model: m, replicas: {URLS}"
    rules = ("session", "round_robin", "session")
    versions = [wired(tmp_path, f"{tail}, replica_rule: {rule}").version for rule in rules]
    assert versions[0] == versions[2] != versions[1]


def test_tenants_with_salts_of_their_own_are_known_to_share_no_cache():
    assert tier_of("http://x/v1", salt_tenants=True).salted
    assert not tier_of("http://x/v1").salted


def test_a_tier_says_that_its_servers_have_caches_of_their_own():
    assert tier_of("http://x/v1", "http://y/v1").replicated
    plain = {"backend": "openai_http", "model": "m", "url": "http://x/v1"}
    assert not build_tier("t", cfg.Tier.model_validate(plain), None).replicated


async def test_the_audit_row_says_which_server_answered():
    async with serving(Upstream(pieces=ANSWER)) as one, serving(Upstream(pieces=ANSWER)) as two:
        tier = tier_of(one.url, two.url, replica_rule="round_robin")
        bench = Bench(tier, arm=ladder({"tier": "t"}))
        rows = [record(await bench.run()).attempts[0] for _ in range(4)]
        await tier.backend.aclose()
    hosts = [each.url.removeprefix("http://").removesuffix("/v1") for each in (one, two)]
    assert [row.replica for row in rows] == hosts * 2


async def test_servers_at_one_address_go_by_their_paths():
    async with serving(Upstream(pieces=ANSWER)) as one:
        urls = [one.url, f"{one.url.replace('//', '//me:secret@')}/other"]
        tier = tier_of(*urls, replica_rule="round_robin")
        names = [(await tier.backend.complete(request())).replica for _ in range(2)]
        await tier.backend.aclose()
    host = one.url.removeprefix("http://")
    assert names == [host, f"{host}/other"]


async def test_each_server_has_limits_and_cool_down_of_its_own_and_tries_are_the_tiers():
    keys = {
        "replica_rule": "round_robin",
        "limits": {"concurrent": 1, "waiting": 0},
        "retry": {"times": 1, "base_seconds": 0.001},
        "cooldown": {"min_calls": 1, "calls": 1, "seconds": 600, "max_seconds": 600},
    }
    async with serving(Upstream(pieces=ANSWER)) as one, serving(Upstream(pieces=ANSWER)) as two:
        tier = tier_of(one.url, two.url, **keys)
        held = tier.backend.stream(request())
        await anext(held)  # one is as busy as it may be
        names = {(await tier.backend.complete(request())).replica for _ in range(3)}
        assert names == {two.url.removeprefix("http://").removesuffix("/v1")}
        await held.aclose()
        two.pieces = [None]
        assert (await tier.backend.complete(request())).tries in {1, 2}
        for _ in range(3):
            await tier.backend.complete(request())
        assert len(two.bodies) == 4  # it broke once and is left alone
        assert not tier.cooling()
        await tier.backend.aclose()


async def test_the_server_that_has_read_the_conversation_is_asked_again():
    cache = {"blocks": 16, "capacity_tokens": 100_000}
    long = "Be brief. " * 200
    async with serving(Upstream(pieces=ANSWER)) as one, serving(Upstream(pieces=ANSWER)) as two:
        tier = tier_of(one.url, two.url, cache=cache)
        bench = Bench(tier, arm=ladder({"tier": "t"}))
        names = Counter()
        for turn in range(6):
            asked = replace(request(long), id=f"r{turn}", session=f"s{turn}")
            names[(await bench.run(asked)).attempts[0].completion.replica] += 1
        await tier.backend.aclose()
    # By their sessions alone they would be at both; what one of them has read is warm there.
    assert sorted(names.values()) == [6]


@pytest.mark.parametrize("rule", ["balanced_cache", "cache_aware"])
def test_a_rule_that_reads_caches_is_refused_where_nothing_is_known_of_them(rule):
    with pytest.raises(ConfigError, match="say how it works with cache") as caught:
        tier_of("http://x/v1", "http://y/v1", replica_rule=rule)
    assert caught.value.param == "tiers.t.replica_rule"
    assert tier_of("http://x/v1", "http://y/v1", replica_rule=rule, cache={"blocks": 16})
