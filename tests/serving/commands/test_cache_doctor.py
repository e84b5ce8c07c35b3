import json
import time

import pytest

from serving.store import schema
from serving.store.database import engine_for
from tests.serving.commands.test_commands import file, run
from tests.serving.doctor.logs import START, asked, stored

__all__ = ["file"]


@pytest.fixture
def log(file, tmp_path):
    """A log of the last minutes with one date that changes."""
    url = f"sqlite:///{tmp_path}/cascade.db"
    schema.upgrade(url)
    engine = engine_for(url)
    ago = time.time() - START - 600
    talk = ("u1", "a:1", "u2")
    first = asked("one", ago, 0, "u1", system="<date 1>")
    stored(engine, [first, asked("two", ago + 60, 500, *talk, system="<date 2>")])
    engine.dispose()
    return file


def test_the_doctor_names_the_cause(log):
    status, output, _ = run("cache", "doctor", "--config", str(log))
    assert status == 0
    assert "a date or time in the system prompt changes" in output
    value = json.loads(run("cache", "doctor", "--json", "--config", str(log))[1])
    assert value["findings"][0]["usd"] == "0.00414"


@pytest.mark.parametrize(
    "option", [("--since", "1m"), ("--tenant", "nobody"), ("--session", "none")]
)
def test_the_doctor_looks_at_what_it_is_told_to(log, option):
    status, output, _ = run("cache", "doctor", *option, "--config", str(log))
    assert status == 0
    assert "widen --since" in output


def test_two_requests_are_held_against_each_other(log):
    status, output, _ = run("cache", "doctor", "--diff", "one", "two", "--config", str(log))
    assert status == 0
    assert "the same but for dates and times" in output
    arguments = ("cache", "doctor", "--diff", "one", "two", "--json", "--config", str(log))
    assert json.loads(run(*arguments)[1])["cause"] == "system_dates"


def test_an_unknown_request_is_named(log):
    status, _, fault = run("cache", "doctor", "--diff", "one", "zzz", "--config", str(log))
    assert status == 1
    assert "'zzz'" in fault


def test_a_log_is_explained_although_its_tiers_cannot_be_used(log):
    text = log.read_text().replace("accept_at: 0.7", "accept_at: 7")
    log.write_text(text)
    status, output, _ = run("cache", "doctor", "--config", str(log))
    assert status == 0
    assert "are not known" in output
    assert "$0.00414" in output


def test_times_to_live_are_compared_for_a_tier(log):
    status, output, _ = run("cache", "ttl", "--tier", "large", "--config", str(log))
    assert status == 0
    assert "large: 2 calls" in output
    value = json.loads(run("cache", "ttl", "--json", "--config", str(log))[1])
    assert [each["tier"] for each in value] == ["large"]
    # The date in the system prompt changed, so nothing behind it could be read.
    assert value[0]["ttls"][0]["read_tokens"] == 0


def test_a_tier_without_calls_is_named_with_those_that_have_some(log):
    status, _, fault = run("cache", "ttl", "--tier", "larg", "--config", str(log))
    assert status == 1
    assert "'larg'" in fault
    assert "large" in fault
