import pytest

from serving.doctor.causes import Cause


@pytest.mark.parametrize(
    ("kind", "segment", "said"),
    [
        ("added", "tools", "the tools were not there before"),
        ("added", "system", "the system prompt was not there before"),
        ("removed", "pack", "the retrieved documents were left out"),
        ("removed", "history", "the history was left out"),
        ("cut", "", "the history was cut"),
        ("dates", "system", "a date or time in the system prompt changes from request to request"),
    ],
)
def test_one_thing_was_and_several_were(kind: str, segment: str, said: str) -> None:
    assert Cause(kind, segment).said == said
