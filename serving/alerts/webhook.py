"""Sends alerts to a webhook, and says no word of its address, which may hold a secret."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import aiohttp
import orjson

from serving.alerts.log import Alert

TIMEOUT_SECONDS = 10.0
PAUSES_SECONDS: Sequence[float] = (0.0, 1.0, 5.0)
"""Before each try."""

_TAKEN = range(200, 300)
_REFUSED = frozenset({400, 413, 422})
"""What is wrong with this body stays wrong, and says nothing of the next one."""


class WebhookError(Exception):
    """It did not take an alert."""


class RefusedError(WebhookError):
    """It will not take this alert, however often it is tried; others it may."""


class Webhook:
    """One address that takes alerts as JSON by POST.

    Args:
        url: the address.
        timeout_seconds: for one try.
        pauses_seconds: before each try; as many tries as there are pauses.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        pauses_seconds: Sequence[float] = PAUSES_SECONDS,
    ) -> None:
        self._url = url
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._pauses = pauses_seconds

    async def send(self, alert: Alert) -> None:
        """Bring one alert there.

        Raises:
            RefusedError: it does not want this one; says why.
            WebhookError: it could not be; says why.
        """
        why = ""
        async with aiohttp.ClientSession(timeout=self._timeout) as session:
            for pause in self._pauses:
                await asyncio.sleep(pause)
                why = await self._try(session, alert)
                if not why:
                    return
        raise WebhookError(why)

    async def _try(self, session: aiohttp.ClientSession, alert: Alert) -> str:
        """Why it failed; empty when it did not."""
        body = orjson.dumps(payload(alert))
        headers = {"content-type": "application/json"}
        try:
            async with session.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as response:
                if response.status in _TAKEN:
                    return ""
                why = f"it answered with status {response.status}"
                if response.status in _REFUSED:
                    raise RefusedError(why)
                return why
        except TimeoutError:
            return f"it did not answer within {self._timeout.total:g} s"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return f"it cannot be reached: {type(error).__name__}"


def payload(alert: Alert) -> dict[str, Any]:
    """The body: what is kept of the alert, and `text`, which chat programs show."""
    told = asdict(alert)
    del told["delivered_at"]
    return {"text": f"Cascade: {alert.message}", **told}
