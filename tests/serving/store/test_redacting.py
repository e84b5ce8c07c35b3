import pytest

pytest.importorskip("presidio_analyzer")

from serving.store.redacting import Redacting


@pytest.fixture(scope="module")
def redacting():
    return Redacting()


def test_a_value_comes_back_redacted_whatever_is_in_it(redacting):
    value = {"a": ["kim@example.com\n\u2028", "한글 \ud83d"], "b": None, "c": 3, "d": "x" * 300_000}
    found = redacting.value(value)
    assert found == {**value, "a": ["<EMAIL>\n\u2028", "한글 \ud83d"]}


def test_it_starts_again_when_it_has_ended(redacting):
    redacting._process.kill()  # noqa: SLF001
    redacting._process.wait()  # noqa: SLF001
    assert redacting.value("kim@example.com") == "<EMAIL>"


def test_what_takes_too_long_is_ended_and_said():
    hasty = Redacting(seconds=0.01)
    with pytest.raises(RuntimeError, match="took too long"):
        hasty.value("kim@example.com")


def test_what_fails_time_and_again_is_left_alone_for_a_while():
    hasty = Redacting(seconds=0.01, rest_seconds=60.0)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="took too long"):
            hasty.value("kim@example.com")
    with pytest.raises(RuntimeError, match="rests"):
        hasty.value("kim@example.com")


def test_a_megabyte_of_digits_is_redacted_and_kept(redacting):
    found = redacting.value({"content": "12 345 678 " * 90_000 + "010 1234 5678"})
    assert found["content"].endswith(" <PHONE>")
    assert len(found["content"]) == 990_000 + len("<PHONE>")
