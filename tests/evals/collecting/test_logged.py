import json
from dataclasses import replace

import pytest

from cascade.audit import record
from cascade.errors import AuditError
from evals.collecting.logged import logged_prompts, with_keys
from evals.collecting.prompt_sets import Reading
from evals.datasets import DatasetError
from serving.store import schema
from serving.store.database import engine_for
from serving.store.keys import VARIABLE, audit_keys, new_key
from serving.store.prompts import place
from serving.store.rows import decode, encode, insert
from tests.builders import request, result

READING = Reading(columns={}, scorer="judge", max_tokens=32)
MESSAGES = [{"role": "user", "content": "Why?"}]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'audit.db'}"


def log(url, *kept):
    """Requests r0, r1, ... with what was kept of each: the form and the text."""
    schema.upgrade(url)
    rows = [
        replace(
            record(result(request=request(id=f"r{at}", session=f"s{at // 2}"))),
            prompt_form=form,
            prompt_text=text,
        )
        for at, (form, text) in enumerate(kept)
    ]
    engine = engine_for(url)
    with engine.begin() as connection:
        insert(connection, [decode(encode(row)) for row in rows])
    engine.dispose()


def test_prompts_that_the_log_keeps_become_a_set_grouped_by_session(url):
    whole = json.dumps({"messages": MESSAGES, "tools": None})
    log(url, ("redacted", whole), ("redacted", json.dumps(MESSAGES)), ("hash", None))
    found = logged_prompts(url, READING)
    assert [(each.id, each.group) for each in found] == [("r0", "s0"), ("r1", "s0")]
    assert all(list(each.messages) == MESSAGES for each in found)
    assert (found[0].scorer, found[0].reference, found[0].max_tokens) == ("judge", None, 32)


def test_a_prompt_with_tools_is_left_out(url):
    tooled = json.dumps({"messages": MESSAGES, "tools": [{"type": "function"}]})
    log(url, ("redacted", tooled), ("redacted", json.dumps(MESSAGES)))
    assert [each.id for each in logged_prompts(url, READING)] == ["r1"]


def test_a_prompt_that_cannot_be_asked_again_costs_no_other_and_is_counted(url):
    called = json.dumps([*MESSAGES, {"role": "assistant", "tool_calls": [{"id": "c"}]}])
    log(url, ("redacted", called), ("redacted", json.dumps(MESSAGES)), ("hash", None))
    told = []
    found = logged_prompts(url, READING, left_out=lambda *counts: told.append(counts))
    assert [each.id for each in found] == ["r1"]
    assert told == [(1, 2)]


def test_encrypted_prompts_are_read_with_the_key_and_left_out_without(url):
    log(url, ("full", json.dumps(MESSAGES)[::-1]), ("redacted", json.dumps(MESSAGES)))
    assert [each.id for each in logged_prompts(url, READING)] == ["r1"]
    found = logged_prompts(url, READING, lambda _, text: text[::-1])
    assert [each.id for each in found] == ["r0", "r1"]


def test_the_keys_in_the_environment_open_what_was_encrypted_with_them(url, monkeypatch):
    pytest.importorskip("cryptography")
    from serving.store.encryption import encrypt

    monkeypatch.delenv(VARIABLE, raising=False)
    assert with_keys() is None
    monkeypatch.setenv(VARIABLE, new_key())
    sealed = encrypt(audit_keys(), json.dumps({"messages": MESSAGES}), place("r0", "prompt"))
    log(url, ("full", sealed))
    assert list(logged_prompts(url, READING, with_keys())[0].messages) == MESSAGES
    monkeypatch.setenv(VARIABLE, new_key())
    with pytest.raises(AuditError, match="which is not among those given"):
        logged_prompts(url, READING, with_keys())


def test_a_log_without_prompts_is_said_with_what_to_do(url):
    log(url, ("hash", None))
    with pytest.raises(DatasetError, match=r"set audit\.prompts to redacted or full"):
        logged_prompts(url, READING)


def test_a_database_that_is_not_there_is_named(url):
    with pytest.raises(AuditError, match="cannot be used"):
        logged_prompts(url, READING)
