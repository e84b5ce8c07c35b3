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
    BackendSetupError,
    BackendTimeoutError,
    BackendUnreachableError,
)

_ERROR_TEXT: Final = 500
_SERVER_ERRORS: Final = 500

_KINDS: Final[dict[int, type[BackendError]]] = {
    400: BackendRefusedError,
    401: BackendAuthError,
    402: BackendAuthError,  # the account has no credit left
    403: BackendAuthError,
    408: BackendTimeoutError,
    413: BackendRefusedError,
    415: BackendRefusedError,
    422: BackendRefusedError,
    424: BackendServerError,  # how some servers say that the model itself failed
    429: BackendOverloadedError,
}
"""Any other below 500 is about where and what is asked, which no client and no retry can mend."""


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
    message = f"{response.url} answered {response.status}: {message_of(body)}"
    kind = kind_of(response.status)
    told = kind in {BackendOverloadedError, BackendServerError}
    return kind(message, retry_after=seconds_to_wait(response.headers) if told else None)


def kind_of(status: int) -> type[BackendError]:
    """What a status of 400 and above says of the call."""
    if status in _KINDS:
        return _KINDS[status]
    return BackendSetupError if status < _SERVER_ERRORS else BackendServerError


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
