import threading
import time

import pytest

from cascade.errors import RequestError
from serving.overrides import store

AUTO = "experiment:auto"


def put(engine, subject=AUTO, value=None, **more):
    return store.put(engine, subject, value, **{"who": "ann", "why": "a look", **more})


def change(engine, changes, **more):
    return store.change(engine, AUTO, changes, **{"who": "ben", "why": "a try", **more})


def test_without_any_nothing_is_overridden(engine):
    assert store.latest(engine) == 0
    assert store.state(engine) == {}
    assert store.history(engine) == []


def test_the_latest_of_a_subject_is_in_force_with_who_when_and_why(engine):
    put(engine, value={"ramp": 0.1})
    before = time.time()
    version = put(engine, value={"ramp": 0.2}, who="ben", why="it looks well")
    found = store.state(engine)[AUTO]
    assert (found.version, found.value, found.who, found.why) == (
        version,
        {"ramp": 0.2},
        "ben",
        "it looks well",
    )
    assert before <= found.created_at <= time.time()
    assert store.latest(engine) == version
    assert [each.value for each in store.history(engine)] == [{"ramp": 0.2}, {"ramp": 0.1}]


def test_a_value_of_none_gives_a_subject_back_to_the_file(engine):
    put(engine, value={"enabled": False})
    put(engine, "pin", {"tier": "large"})
    put(engine, value=None)
    assert store.state(engine).keys() == {"pin"}


def test_an_empty_value_is_a_value(engine):
    put(engine, "drain:large", {})
    assert store.state(engine)["drain:large"].value == {}


def test_a_time_limit_ends_by_itself_and_what_was_there_before_holds_again(engine):
    now = time.time()
    put(engine, "pin", {"tier": "large"})
    put(engine, "pin", {"tier": "small"}, until=now + 60)
    assert store.state(engine)["pin"].value == {"tier": "small"}
    assert store.state(engine, now + 60)["pin"].value == {"tier": "large"}


def test_what_will_be_in_force_later_is_told_and_what_never_can_be_is_not(engine):
    now = time.time()
    put(engine, "pin", {"tier": "small"}, until=now + 600)
    lasting = put(engine, "pin", {"tier": "large"})
    short = put(engine, "pin", {"tier": "small"}, until=now + 60)
    assert [each.version for each in store.standing(engine, now)] == [lasting, short]


def test_a_change_keeps_the_other_keys(engine):
    change(engine, {"ramp": 0.2, "weights": {"a": 80, "b": 20}})
    change(engine, {"weights": {"b": 0}}, who="guardrail")
    found = store.state(engine)[AUTO]
    assert found.value == {"ramp": 0.2, "weights": {"a": 80, "b": 0}}
    assert found.who == "guardrail"


def test_a_guardrail_outlasts_the_time_limit_it_came_into(engine):
    now = time.time()
    change(engine, {"ramp": 0.2}, until=now + 60)
    change(engine, {"weights": {"b": 0}}, who="guardrail")
    assert store.state(engine)[AUTO].value == {"ramp": 0.2, "weights": {"b": 0}}
    assert store.state(engine, now + 61)[AUTO].value == {"weights": {"b": 0}}


def test_whoever_looked_at_an_older_version_is_told_who_changed_it(engine):
    first = put(engine, value={"ramp": 0.1}, expected=0)
    second = put(engine, value={"ramp": 0.2}, expected=first, why="more of it")
    with pytest.raises(store.OverrideConflictError, match=rf"{second} \(ann: more of it\)"):
        change(engine, {"ramp": 0.3}, expected=first)
    assert store.state(engine)[AUTO].value == {"ramp": 0.2}


def test_another_subjects_versions_do_not_matter_to_the_precondition(engine):
    put(engine, "pin", {"tier": "large"})
    version = put(engine, value={"ramp": 0.1}, expected=0)
    assert store.versions(engine) == {"pin": version - 1, AUTO: version}


@pytest.mark.parametrize("why", ["", "  "])
def test_a_change_needs_a_reason(engine, why):
    with pytest.raises(RequestError, match="why"):
        put(engine, value={}, why=why)
    assert store.latest(engine) == 0


def test_a_time_that_is_over_is_refused(engine):
    with pytest.raises(RequestError, match="over already"):
        put(engine, value={}, until=time.time() - 1)


@pytest.mark.parametrize("until", [time.time() + 31 * 86400, float("inf"), float("nan")])
def test_a_time_that_is_too_far_away_is_refused(engine, until):
    with pytest.raises(RequestError, match="until: at most 30 days"):
        put(engine, value={}, until=until)
    assert store.latest(engine) == 0


def test_of_many_writers_with_one_precondition_one_succeeds(engine):
    wrote, refused = [], []

    def write(ramp):
        try:
            wrote.append(put(engine, value={"ramp": ramp}, expected=0))
        except store.OverrideConflictError:
            refused.append(ramp)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(wrote), len(refused)) == (1, 4)


def test_history_can_be_of_one_subject_and_short(engine):
    for ramp in (0.1, 0.2, 0.3):
        put(engine, value={"ramp": ramp})
    put(engine, "pin", {"tier": "large"})
    assert [o.value for o in store.history(engine, AUTO, 2)] == [{"ramp": 0.3}, {"ramp": 0.2}]
