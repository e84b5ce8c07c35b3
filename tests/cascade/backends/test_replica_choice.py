"""The rules by which a server is chosen, and the counting of what each has to do."""

from collections import Counter
from typing import get_args

import pytest

from cascade.backends.replica_choice import Candidate, Prompt, RuleName, rule_of
from cascade.backends.replica_load import Loads
from cascade.backends.replica_shares import KEPT, REQUESTS, Popularity, Shares
from cascade.sight import Seen

NAMES = ["a", "b", "c", "d"]


def prompt(session="s", prefix="p", tokens=1000, prefix_tokens=0):
    return Prompt(session=session, prefix=prefix, tokens=tokens, prefix_tokens=prefix_tokens)


def candidates(names=NAMES, **of):
    """Idle and cold, but for what is said of some by name."""
    return [Candidate(name=name, **of.get(name, {})) for name in names]


def chosen(rule, asked, **of):
    return rule.choose(asked, candidates(**of)).name


@pytest.mark.parametrize("name", get_args(RuleName))
def test_every_rule_takes_the_only_one_there_is(name):
    only = [Candidate(name="a", in_flight=100, pending_tokens=10**6)]
    assert rule_of(name).choose(prompt(), only).name == "a"
    assert rule_of(name).choose(prompt(tokens=0), only).name == "a"


@pytest.mark.parametrize("name", get_args(RuleName))
def test_every_rule_uses_every_server(name):
    rule = rule_of(name)
    loads = Loads(NAMES, rule)
    seen = Counter(
        loads.assign(prompt(f"s{i}", f"p{i}"), Seen()).name for i in range(400)
    )  # none of them ends
    assert min(seen[each] for each in NAMES) > 60


def test_round_robin_takes_turns():
    rule = rule_of("round_robin")
    assert [chosen(rule, prompt()) for _ in range(6)] == ["a", "b", "c", "d", "a", "b"]


def test_random_goes_by_chance():
    draws = iter([0.0, 0.3, 0.99])
    rule = rule_of("random", lambda: next(draws))
    assert [chosen(rule, prompt()) for _ in range(3)] == ["a", "b", "d"]


def test_a_conversation_stays_and_only_moves_when_its_server_goes():
    rule = rule_of("session")
    before = {f"s{i}": rule.choose(prompt(f"s{i}"), candidates()).name for i in range(200)}
    again = {s: rule_of("session").choose(prompt(s), candidates()).name for s in before}
    assert again == before
    after = {s: rule.choose(prompt(s), candidates(["a", "b", "d"])).name for s in before}
    moved = [s for s in before if before[s] != after[s]]
    assert {before[s] for s in moved} == {"c"}
    assert len({after[s] for s in moved}) == 3


def test_what_begins_alike_goes_to_the_same_server():
    rule = rule_of("prefix_hash")
    assert len({rule.choose(prompt(f"s{i}", "one"), candidates()).name for i in range(50)}) == 1
    assert len({rule.choose(prompt("s", f"p{i}"), candidates()).name for i in range(50)}) == 4


def test_the_warmest_server_is_preferred():
    rule = rule_of("cache_aware")
    of = {"b": {"warm_tokens": 800, "in_flight": 5}, "c": {"warm_tokens": 700}}
    assert chosen(rule, prompt(), **of) == "b"


@pytest.mark.parametrize(
    ("preferred", "others", "left"),
    [(6, 0, True), (5, 0, False), (10, 5, False), (12, 6, False), (13, 6, True), (11, 5, True)],
)
def test_it_is_left_above_twice_the_load_and_more_than_five_above(preferred, others, left):
    of = {name: {"in_flight": others} for name in NAMES}
    of["b"] = {"warm_tokens": 800, "in_flight": preferred}
    assert (chosen(rule_of("cache_aware"), prompt(), **of) != "b") is left


def test_a_system_prompt_that_all_have_leaves_the_choice_to_the_load():
    of = {name: {"warm_tokens": 900, "in_flight": 3} for name in NAMES}
    of["c"] = {"warm_tokens": 900, "in_flight": 2}
    assert chosen(rule_of("cache_aware"), prompt(), **of) == "c"
    even = {name: {"warm_tokens": 900} for name in NAMES}
    spread = {chosen(rule_of("cache_aware"), prompt(f"s{i}"), **even) for i in range(50)}
    assert spread == set(NAMES)


def test_what_is_warm_nowhere_goes_where_the_oldest_is_dropped():
    of = {
        "a": {"victim_age_seconds": 50.0},
        "b": {"victim_age_seconds": 200.0},
        "c": {"victim_age_seconds": 900.0, "pending_tokens": 10},
        "d": {"victim_age_seconds": 100.0},
    }
    assert chosen(rule_of("balanced_cache"), prompt(), **of) == "b"


def test_there_is_no_need_to_drop_anything_where_there_is_room():
    of = {"a": {"victim_age_seconds": 900.0}, "b": {}, "c": {"victim_age_seconds": 9.0}, "d": {}}
    assert chosen(rule_of("balanced_cache"), prompt(), **of) in {"b", "d"}


def test_a_warm_prompt_goes_to_the_holder_with_the_least_share_and_backlog():
    rule = rule_of("balanced_cache")
    of = {"a": {"warm_tokens": 900}, "b": {"warm_tokens": 900}}
    names = [chosen(rule, prompt(f"s{i}"), **of) for i in range(10)]
    assert Counter(names) == {"a": 5, "b": 5}
    of["a"] = {"warm_tokens": 900, "pending_tokens": 5000}
    assert {chosen(rule, prompt(f"t{i}"), **of) for i in range(10)} == {"b"}


def test_a_crowded_holder_is_spared_where_another_holds_it():
    of = {
        "a": {"warm_tokens": 900, "in_flight": 40},
        "b": {"warm_tokens": 900, "in_flight": 10, "pending_tokens": 5000},
        "c": {"in_flight": 10},
        "d": {"in_flight": 10},
    }
    assert chosen(rule_of("balanced_cache"), prompt(), **of) == "b"


def popular(prefix, requests):
    """A rule that sent so many requests to the one holder of a prefix, a fifth of the traffic."""
    rule = rule_of("balanced_cache")
    for i in range(requests):
        rule.choose(
            prompt(f"s{i}", prefix if i % 5 == 0 else f"rare {i}", prefix_tokens=900),
            candidates(a={"warm_tokens": 900}),
        )
    return rule


def test_a_holder_above_its_share_is_relieved_by_a_copy_of_what_is_popular_only():
    rule = popular("popular", 2000)
    held = {"a": {"warm_tokens": 900}}
    rare = prompt("t", "rare", prefix_tokens=900)
    assert chosen(rule, rare, **held) == "a"
    often = prompt("t", "popular", prefix_tokens=900)
    assert chosen(rule, often, **held) != "a"


def test_a_conversation_is_not_moved_because_its_system_prompt_is_popular():
    rule = popular("popular", 2000)
    turn = prompt("t", "popular", tokens=3000, prefix_tokens=900)
    assert chosen(rule, turn, a={"warm_tokens": 2800}) == "a"


def test_nothing_is_copied_to_a_server_that_has_prompts_to_compute():
    rule = popular("popular", 2000)
    of = {name: {"pending_tokens": 10} for name in "bcd"} | {"a": {"warm_tokens": 900}}
    assert chosen(rule, prompt("t", "popular", prefix_tokens=900), **of) == "a"


def test_who_comes_back_after_an_outage_begins_at_an_even_share():
    rule = rule_of("balanced_cache")
    held = {name: {"warm_tokens": 900} for name in NAMES}
    for i in range(3000):
        rule.choose(prompt(f"s{i}"), candidates(["a", "b", "c"], **held))
    back = Counter(rule.choose(prompt(f"t{i}"), candidates(**held)).name for i in range(100))
    assert back["d"] == 25


def test_a_server_that_cannot_be_asked_for_a_moment_changes_nobodys_share():
    shares = Shares()
    shares.among(NAMES)
    for i in range(4 * REQUESTS):
        there = NAMES[:3]
        shares.among(there).count(there[i % 3])
    everyone = shares.among(NAMES)
    assert [everyone.over_fair(each) for each in NAMES] == pytest.approx([1.0] * 4, abs=0.01)


def test_a_server_that_is_seen_later_begins_at_an_even_share():
    shares = Shares()
    shares.among(["a", "b"])
    assert shares.among(NAMES).over_fair("d") == 1


def test_a_hot_prefix_is_spread_evenly_although_servers_are_busy_now_and_then():
    """Half of all requests begin alike; one in fifty has to be asked of another server."""
    rule = rule_of("balanced_cache")
    held: dict[str, set[str]] = {name: set() for name in NAMES}
    got = Counter()
    for i in range(8 * REQUESTS):
        prefix = "hot" if i % 2 else f"rare {i % 97}"
        names = NAMES

        def ask(names, prefix=prefix, session=f"s{i}"):
            warm = {n: {"warm_tokens": 900 if prefix in held[n] else 0} for n in names}
            asked = prompt(session, prefix, prefix_tokens=900)
            return rule.choose(asked, candidates(names, **warm)).name

        name = ask(names)
        if i % 50 == 49:
            name = ask([each for each in names if each != name])
        held[name].add(prefix)
        if i >= 3 * REQUESTS:
            got[name] += 1
    assert max(got.values()) <= 1.1 * got.total() / len(NAMES)


def test_a_request_counts_from_its_assignment():
    loads = Loads(NAMES, rule_of("cache_aware"))
    same = [loads.assign(prompt(f"s{i}"), Seen()).name for i in range(40)]
    assert set(Counter(same).values()) == {10}


def test_a_request_stops_counting_when_it_began_and_when_it_ended():
    loads = Loads(["a", "b"], rule_of("balanced_cache"))
    first = loads.assign(prompt(), Seen(warm_tokens={"a": 600}))
    assert (first.name, loads.in_flight("a")) == ("a", 1)
    elsewhere = loads.assign(prompt("t"), Seen())
    assert elsewhere.name == "b"
    first.began()
    first.began()
    assert loads.assign(prompt("u"), Seen()).name == "a"
    first.ended()
    elsewhere.ended()
    assert (loads.in_flight("a"), loads.in_flight("b")) == (1, 0)


def test_those_left_out_are_not_chosen():
    for name in get_args(RuleName):
        loads = Loads(NAMES, rule_of(name))
        names = {
            loads.assign(prompt(f"s{i}"), Seen(), leave_out={"a", "c"}).name for i in range(50)
        }
        assert names <= {"b", "d"}


def test_shares_add_up_and_forget():
    shares = Shares().among(["a", "b"])
    assert shares.over_fair("a") == shares.over_fair("b") == 1
    for _ in range(20 * REQUESTS):
        shares.count("a")
    assert shares.over_fair("a") == pytest.approx(2, abs=1e-3)
    assert shares.over_fair("a") + shares.over_fair("b") == pytest.approx(2)


def test_popularity_is_the_share_of_the_latest_requests():
    traffic = Popularity()
    for i in range(5 * REQUESTS):
        traffic.count("often" if i % 4 == 0 else f"rare {i}")
    assert traffic.count("often") == pytest.approx(0.25, abs=0.005)
    assert traffic.count("never before") == 0
    for i in range(10 * REQUESTS):
        traffic.count(f"other {i}")
    assert traffic.count("often") < 1e-4


def test_the_memory_of_prefixes_is_bounded_and_keeps_the_popular():
    traffic = Popularity()
    for i in range(6 * KEPT):
        traffic.count("often" if i % 50 == 0 else f"rare {i}")
    assert len(traffic) <= 2 * KEPT
    assert traffic.count("often") == pytest.approx(0.02, abs=0.005)
