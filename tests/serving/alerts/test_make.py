import pytest

from cascade.errors import ConfigError
from serving.alerts.address import shown_address, webhook_address
from serving.alerts.make import watches
from serving.config import ConfigFile

FILE = """
tiers: {small: {backend: scripted}}
policies: {one: {type: fixed, tier: small}}
experiments:
  auto: {arms: {control: {policy: one}, new: {policy: one}}%s}
"""


@pytest.fixture
def file(tmp_path):
    def write(guardrails="", alerts=""):
        path = tmp_path / "cascade.yaml"
        path.write_text(FILE % guardrails + alerts)
        return ConfigFile(path)

    return write


@pytest.mark.parametrize("asked", ["experiments", "alerts"])
async def test_an_experiment_or_who_asks_for_alerts_is_watched(file, asked):
    kept = file(alerts="alerts: {}\n" if asked == "alerts" else "")
    if asked == "alerts":
        kept.config.experiments.clear()
    (watch,) = watches(kept)
    await watch.aclose()


def test_without_either_nothing_is_watched(file):
    kept = file()
    kept.config.experiments.clear()
    assert watches(kept) == []


def test_the_address_is_the_files_or_the_environments(file, monkeypatch):
    assert webhook_address(file()) is None
    assert webhook_address(file(alerts="alerts: {webhook: 'http://x/y'}\n")) == "http://x/y"
    monkeypatch.setenv("ALERTS_TO", "https://z")
    assert webhook_address(file(alerts="alerts: {webhook_env: ALERTS_TO}\n")) == "https://z"


def test_two_addresses_are_one_too_many(file):
    both = file(alerts="alerts:\n  webhook: 'http://x/y'\n  webhook_env: ALERTS_TO\n")
    with pytest.raises(ConfigError, match=r"cascade.yaml:8: alerts.webhook_env: state this or"):
        webhook_address(both)


def test_an_address_that_is_none_is_refused(file):
    with pytest.raises(ConfigError, match=r"alerts.webhook"):
        file(alerts="alerts: {webhook: 'chat.example'}\n")


@pytest.mark.parametrize("address", ["http://[::1/secret", "http://host:99999/secret", "http://:1"])
def test_an_address_that_cannot_be_sent_to_is_refused_without_it(file, monkeypatch, address):
    monkeypatch.setenv("ALERTS_TO", address)
    for alerts in ("{webhook_env: ALERTS_TO}", f"{{webhook: '{address}'}}"):
        with pytest.raises(ConfigError, match="no address") as refused:
            webhook_address(file(alerts=f"alerts: {alerts}\n"))
        assert "secret" not in str(refused.value)
    assert shown_address(address) == "..."


def test_alerts_change_no_decision(file):
    assert file().config.version() == file(alerts="alerts: {every_seconds: 5}\n").config.version()


def test_no_more_of_an_address_is_shown_than_whose_it_is():
    assert (
        shown_address("https://me:pass@chat.example:8443/T0/secret?k=v")
        == "https://chat.example/..."
    )
