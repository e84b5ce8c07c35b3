"""Puts the watch together from a configuration. A part of the composition root."""

from serving.alerts.address import webhook_address
from serving.alerts.watch import Watch
from serving.alerts.webhook import Webhook
from serving.config import Alerts, ConfigFile
from serving.results import trial_of
from serving.store.database import engine_for


def watches(file: ConfigFile) -> list[Watch]:
    """What watches the audit log; nothing when there is no experiment and nobody asked for alerts.

    Raises:
        ConfigError: an environment variable is not set, or holds no address.
    """
    config = file.config
    trials = [trial_of(name, entry, config) for name, entry in config.experiments.items()]
    if config.alerts is None and not trials:
        return []
    alerts = config.alerts or Alerts()
    address = webhook_address(file)
    return [
        Watch(
            engine_for(file.audit_url),
            trials,
            webhook=Webhook(address) if address else None,
            every_seconds=alerts.every_seconds,
            repeat_seconds=alerts.repeat_hours * 3600.0,
        )
    ]
