"""Changed copies of values: what `dataclasses.replace` makes, sooner."""

from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from cascade.changing import changed
from cascade.types import Attempt, Kind, Outcome, Step, Verdict
from tests.builders import request


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        (request(), {"unit": "somebody"}),
        (request(), {"served_by": "small", "key_id": None}),
        (Attempt(index=0, kind=Kind.ANSWER, step=Step(tier="a")), {"outcome": Outcome.ACCEPTED}),
        (Step(tier="a"), {}),
    ],
)
def test_a_changed_copy_is_the_one_that_the_library_makes(value, changes):
    before = repr(value)
    copy = changed(value, **changes)
    assert copy == replace(value, **changes)
    assert type(copy) is type(value)
    assert copy is not value
    assert repr(value) == before


def test_a_copy_is_frozen_as_well():
    copy = changed(Step(tier="a"), tier="b")
    with pytest.raises(FrozenInstanceError):
        copy.tier = "c"


def test_a_field_that_is_not_there_is_refused():
    with pytest.raises(TypeError, match="Step has no field teir"):
        changed(Step(tier="a"), teir="b")


def test_what_checks_itself_when_it_is_made_is_refused():
    with pytest.raises(TypeError, match="Verdict checks itself"):
        changed(Verdict(judge="a", score=0.5), score=7.0)


def test_what_has_no_slots_is_refused():
    @dataclass(frozen=True)
    class Open:
        size: int

    with pytest.raises(TypeError, match="Open has no slots"):
        changed(Open(1), size=2)
