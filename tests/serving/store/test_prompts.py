import json
from dataclasses import replace

import pytest

pytest.importorskip("cryptography")

from cascade.audit import record
from cascade.errors import AuditError, ConfigError
from serving.store.chain import Chain
from serving.store.encryption import decrypt, encrypt
from serving.store.keys import audit_keys, new_key
from serving.store.prompts import Kept, prompts
from serving.store.queries import show
from serving.store.texts import texts
from tests.builders import attempt, completion, request, result

OLD, NEW = new_key(), new_key()
SECRET = "My number is 010-1234-5678, 비밀이야 \ud83d"


def keys_of(text):
    return audit_keys({"CASCADE_AUDIT_KEY": text})


KEYS = keys_of(OLD)


def asked(name="r", answer="It is 42 for kim@example.com"):
    said = completion(answer)
    messages = [{"role": "user", "content": SECRET}]
    tools = [{"type": "function", "function": {"name": "look_up"}}]
    return result(
        request=request(id=name, messages=messages, tools=tools),
        attempts=(attempt(completion=said),),
        completion=said,
    )


def test_by_default_a_hash_is_all_that_is_kept():
    row = record(asked())
    assert (row.prompt_form, row.prompt_text, row.answer_text) == ("hash", None, None)
    assert len(row.prompt_hash) == 32
    assert record(asked(), prompts=prompts("hash")) == row


def test_with_none_not_even_a_hash_is_kept():
    row = record(asked(), prompts=prompts("none"))
    assert (row.prompt_form, row.prompt_hash, row.segments) == ("none", "", None)
    assert (row.prompt_text, row.answer_text) == (None, None)


@pytest.mark.parametrize("form", ["hash", "none", "full"])
def test_with_a_key_nobody_without_it_can_try_whether_a_hash_is_of_a_text(form, monkeypatch):
    hashed = []
    for _ in range(2):
        monkeypatch.setenv("CASCADE_AUDIT_KEY", new_key())
        kept = prompts(form, audit_keys())
        assert repr(kept.hash_key) not in repr(kept)
        hashed += [kept.hash_key.hex(), record(asked(), prompts=kept).prompt_hash]
    plain = record(asked(), prompts=prompts("hash")).prompt_hash
    assert len({*hashed, plain}) == (5 if form != "none" else 4)
    assert prompts("hash").hash_key == b""


def test_a_redacted_prompt_reads_as_it_was_but_for_what_identifies_somebody(engine, open_sink):
    pytest.importorskip("presidio_analyzer")
    sink = open_sink(prompts=prompts("redacted"))
    sink.write(asked())
    assert sink.flush(30)
    kept = texts(show(engine, "r"))
    assert kept["prompt"]["messages"] == [
        {"role": "user", "content": "My number is <PHONE>, 비밀이야 ?"}
    ]
    assert kept["prompt"]["tools"][0]["function"]["name"] == "look_up"
    assert kept["answer"] == [{"content": "It is 42 for <EMAIL>", "tool_calls": []}]


def test_a_full_prompt_is_in_the_clear_neither_in_the_spool_nor_in_the_database(
    engine, open_sink, spool, database, monkeypatch
):
    monkeypatch.setenv("CASCADE_AUDIT_KEY", OLD)
    sink = open_sink(prompts=prompts("full", KEYS), chain=Chain(KEYS))
    with database.outage():
        sink.write(asked())
        lines = b"".join(eventually_spooled(spool))
        assert b'"id":"r"' in lines
        assert not readable(lines)
    assert sink.flush(30)
    row = show(engine, "r")
    assert not readable(f"{row}".encode())
    kept = texts(row)
    said = SECRET.replace("\ud83d", "?")
    assert kept["prompt"]["messages"] == [{"role": "user", "content": said}]
    assert kept["answer"][0]["content"] == "It is 42 for kim@example.com"


def eventually_spooled(spool):
    from tests.serving.store.waiting import eventually, files

    eventually(lambda: bool(files(spool)))
    return [path.read_bytes() for path in files(spool)]


def readable(content):
    return any(part in content for part in (b"010-1234", "비밀".encode(), b"kim@"))


def test_a_text_that_was_moved_to_another_row_or_changed_is_not_taken_for_that_rows(monkeypatch):
    monkeypatch.setenv("CASCADE_AUDIT_KEY", OLD)
    row = record(asked(), prompts=prompts("full", KEYS))
    assert texts(row)["answer"]
    for other in (
        replace(row, id="s"),
        replace(row, prompt_text=row.answer_text),
        replace(row, prompt_text=row.prompt_text[:-6] + "AAAAA="),
    ):
        with pytest.raises(AuditError, match="it was changed"):
            texts(other)


def test_a_text_of_an_old_key_is_read_when_it_is_known_still(monkeypatch):
    kept = encrypt(KEYS, "하나", "r/prompt")
    assert decrypt(keys_of(f"{NEW},{OLD}"), kept, "r/prompt") == "하나"
    with pytest.raises(AuditError, match="not among those given"):
        decrypt(keys_of(NEW), kept, "r/prompt")
    assert encrypt(KEYS, "하나", "r/prompt") != kept


def test_without_a_key_nothing_is_kept_in_full_and_nothing_read(monkeypatch):
    monkeypatch.delenv("CASCADE_AUDIT_KEY", raising=False)
    with pytest.raises(ConfigError, match="needs a key"):
        prompts("full", None)
    with pytest.raises(ConfigError, match="reading prompts needs a key"):
        texts(record(asked(), prompts=prompts("full", KEYS)))


def test_where_no_text_is_kept_that_is_said():
    with pytest.raises(AuditError, match=r"no text is kept, only hash: see audit\.prompts"):
        texts(record(asked()))


def test_a_text_that_cannot_be_kept_does_not_keep_the_row_from_being_written(caplog):
    def fails(_value, _place):
        raise RuntimeError("no")

    row = record(asked(), prompts=Kept(form="redacted", into=fails))
    assert (row.prompt_form, row.prompt_text) == ("redacted", None)
    assert "cannot be kept as redacted" in caplog.text
    assert "010-1234" not in caplog.text


def test_a_request_without_an_answer_has_a_prompt_only():
    row = record(
        result(attempts=(), completion=None),
        prompts=Kept(form="redacted", into=lambda value, _: json.dumps(value)),
    )
    assert "17 + 25" in row.prompt_text
    assert row.answer_text is None
