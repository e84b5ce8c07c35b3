"""What goes wrong between here and an OpenAI-style server, as the errors that say what helps."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp
import orjson

from cascade.backends.retry_after import seconds_to_wait
from cascade.errors import (
    BackendAuthError,
    BackendConnectionError,
    BackendError,
    BackendOverloadedError,
    BackendRefusedError,
    BackendServerError,
    BackendTimeoutError,
    BackendUnreachableError,
)

_ERROR_TEXT: Final = 500


@contextmanager
def translated(endpoint: str) -> Iterator[None]:
    """Connection trouble as BackendErrors; anything unknown stays what it is."""
    try:
        yield
    except aiohttp.ServerTimeoutError as error:
        raise BackendTimeoutError(f"{endpoint}: {error}") from error
    except TimeoutError as error:
        raise BackendTimeoutError(f"{endpoint} took too long") from error
    except aiohttp.ClientConnectorError as error:
        raise BackendUnreachableError(f"{endpoint}: {error}") from error
    except aiohttp.ClientError as error:
        raise BackendConnectionError(f"{endpoint}: {error}") from error


def refusal(response: aiohttp.ClientResponse, body: bytes) -> BackendError:
    """The error that a status other than 200 stands for."""
    status = response.status
    message = f"{response.url} answered {status}: {message_of(body)}"
    wait = seconds_to_wait(response.headers)
    if status == 429:  # noqa: PLR2004
        return BackendOverloadedError(message, retry_after=wait)
    if status in {401, 403}:
        return BackendAuthError(message)
    if status == 408:  # noqa: PLR2004
        return BackendTimeoutError(message)
    if status in {400, 413, 415, 422}:
        return BackendRefusedError(message)
    return BackendServerError(message, retry_after=wait)


def message_of(body: bytes) -> str:
    """The message of an OpenAI-style error, or the text itself."""
    try:
        error = orjson.loads(body)["error"]
        return str(error["message"] if isinstance(error, dict) else error)[:_ERROR_TEXT]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return short(body)


def short(body: bytes) -> str:
    """The beginning of what a server said."""
    return body[:_ERROR_TEXT].decode(errors="replace").strip()
