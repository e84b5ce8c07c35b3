"""Where alerts go, and how much of that may be shown: the rest of such an address is a secret."""

import os
from urllib.parse import urlsplit

from cascade.errors import ConfigError
from serving.config import ConfigFile


def webhook_address(file: ConfigFile) -> str | None:
    """Where alerts go; None when they go nowhere.

    Raises:
        ConfigError: an environment variable is not set, or holds no address.
    """
    alerts = file.config.alerts
    if alerts is None or (alerts.webhook is None and alerts.webhook_env is None):
        return None
    if alerts.webhook_env is None and alerts.webhook is not None:
        if not _address(alerts.webhook):
            raise file.explain(ConfigError("no address (https://...)", param="alerts.webhook"))
        return alerts.webhook
    where = "alerts.webhook_env"
    if alerts.webhook is not None:
        raise file.explain(ConfigError("state this or webhook, not both", param=where))
    address = os.environ.get(str(alerts.webhook_env), "")
    if not _address(address):
        said = "holds no address (https://...)" if address else "is not set"
        raise file.explain(
            ConfigError(f"the environment variable {alerts.webhook_env} {said}", param=where)
        )
    return address


def _address(text: str) -> bool:
    """Whether it can be sent to; no error tells more, since it would tell the secret."""
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def shown_address(address: str) -> str:
    """The address without what may be a secret."""
    if not _address(address):
        return "..."
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}/..."
