import threading
import time

import pytest

from cascade.errors import CascadeError, RequestError
from serving.overrides import store
from serving.overrides.apply import ground_of
from serving.overrides.changes import Changes, Note
from tests.services import snapshot

AUTO = "experiment:auto"
NOTE = Note(who="ann", why="a look")


@pytest.fixture
def changes(engine):
    return Changes(engine, ground_of(snapshot()))


def weights(**of):
    return {"weights": {arm.replace("_", "-"): weight for arm, weight in of.items()}}


def together(*works):
    """What each said when all of them were done at once; None: it was done."""
    said, start = [], threading.Barrier(len(works))

    def run(work):
        start.wait()
        try:
            work()
        except CascadeError as error:
            said.append(error.message)
        else:
            said.append(None)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


@pytest.mark.parametrize("_again", range(5))
def test_two_who_each_turn_off_another_arm_at_once_do_not_leave_none(changes, engine, _again):
    said = together(
        lambda: changes.experiment("auto", weights(cascade=0), NOTE),
        lambda: changes.experiment("auto", weights(always_small=0), NOTE),
    )
    assert sorted(each or "" for each in said) == [
        "",
        "weights: at least one arm needs a weight above 0",
    ]
    assert len(store.history(engine)) == 1


@pytest.mark.parametrize("_again", range(5))
def test_two_who_drain_and_pin_one_tier_at_once_do_not_both_succeed(changes, engine, _again):
    said = together(
        lambda: changes.pin("large", NOTE),
        lambda: changes.drain("large", NOTE),
    )
    assert said.count(None) == 1
    assert len(store.history(engine)) == 1


def test_what_could_not_be_once_a_time_limit_is_over_is_refused_now(changes, engine):
    changes.experiment("auto", weights(cascade=0), NOTE)
    hour = Note(who="ben", why="a try", until=time.time() + 3600)
    changes.experiment("auto", weights(cascade=1), hour)
    with pytest.raises(RequestError, match="for a while ends, weights: at least one arm"):
        changes.experiment("auto", weights(always_small=0), NOTE)
    assert len(store.history(engine)) == 2


def test_a_change_drops_only_what_the_file_has_no_room_for(changes, engine):
    value = {"enabled": False, **weights(gone=1, cascade=3)}
    store.put(engine, AUTO, value, who="ben", why="long ago")
    changes.experiment("auto", {"ramp": 0.5}, NOTE)
    assert store.state(engine)[AUTO].value == {
        "enabled": False,
        "ramp": 0.5,
        **weights(cascade=3),
    }


def test_a_lasting_change_while_the_file_holds_for_an_hour_keeps_what_comes_after(changes, engine):
    now = time.time()
    changes.experiment("auto", {"ramp": 0.5}, NOTE)
    changes.restore("auto", Note(who="ben", why="a look at all", until=now + 3600))
    changes.experiment("auto", {"enabled": False}, NOTE)
    assert store.state(engine)[AUTO].value == {"enabled": False}
    assert store.state(engine, now + 3601)[AUTO].value == {"ramp": 0.5, "enabled": False}


def test_a_reason_keeps_no_character_that_a_database_cannot(changes, engine):
    changes.pin("large", Note(who="ann", why="a\0b"))
    assert store.state(engine)["pin"].why == "a b"
