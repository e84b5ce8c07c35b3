import pytest

from cascade.errors import ConfigError
from serving.audit_wiring import audit_parts, audit_sink, pruners
from serving.config import ConfigFile
from serving.store import schema
from serving.store.database import engine_for
from serving.store.keys import new_key, required_keys
from serving.store.queries import show
from serving.store.texts import texts
from serving.store.verify import verify
from tests.builders import result
from tests.serving.test_config import GOOD


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.delenv("CASCADE_AUDIT_KEY", raising=False)
    monkeypatch.delenv("CASCADE_AUDIT_URL", raising=False)

    def written(audit):
        path = tmp_path / "cascade.yaml"
        path.write_text(f"{GOOD}\naudit: {audit}\n")
        return ConfigFile(path)

    return written


def test_by_default_there_is_no_chain_and_nothing_is_removed(file):
    configured = file("{}")
    parts = audit_parts(configured)
    assert (parts.prompts.form, parts.keys, parts.chained) == ("hash", None, False)
    assert pruners(configured, parts) == []
    assert len(pruners(file("{retention_days: 30}"), parts)) == 1


@pytest.mark.parametrize(
    ("audit", "complaint"),
    [
        ("{prompts: full}", r"audit\.prompts: keeping prompts in full needs a key: set CASCADE_A"),
        ("{chain: true}", r"audit\.chain: chaining the rows needs a key: set CASCADE_AUDIT_KEY"),
    ],
)
def test_what_needs_a_key_is_refused_without_one_and_the_line_is_named(file, audit, complaint):
    with pytest.raises(ConfigError, match=rf"cascade\.yaml:\d+: {complaint}"):
        audit_parts(file(audit))


def test_a_key_that_is_none_is_refused_whatever_is_asked_for(file, monkeypatch):
    monkeypatch.setenv("CASCADE_AUDIT_KEY", "secret")
    with pytest.raises(ConfigError, match="key 1 is not 32 bytes in base64"):
        audit_parts(file("{}"))


@pytest.mark.parametrize(
    ("audit", "complaint"),
    [
        (
            "{prompts: clear}",
            r"audit\.prompts: Input should be 'none', 'hash', 'redacted' or 'full",
        ),
        ("{retention_days: 0}", r"audit\.retention_days: Input should be greater than 0"),
        ("{chain: 3}", r"audit\.chain: "),
    ],
)
def test_a_setting_that_is_none_is_refused(file, audit, complaint):
    with pytest.raises(ConfigError, match=complaint):
        file(audit)


def test_a_sink_keeps_and_chains_what_the_configuration_says(file, monkeypatch, tmp_path):
    monkeypatch.setenv("CASCADE_AUDIT_KEY", new_key())
    configured = file(f"{{prompts: full, chain: true, spill: {tmp_path}/spill}}")
    schema.upgrade(configured.audit_url)
    sink = audit_sink(configured, audit_parts(configured))
    sink.start()
    sink.write(result("r"))
    assert sink.flush(10)
    sink.close(5)
    engine = engine_for(configured.audit_url)
    assert texts(show(engine, "r"))["prompt"]["messages"][0]["content"] == "What is 17 + 25?"
    found = verify(engine, required_keys("checking"))
    assert (found.rows, found.faults) == (1, [])
    engine.dispose()
