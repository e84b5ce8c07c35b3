"""What litellm's exceptions mean to Cascade.

litellm sorts provider errors into classes of its own, some of them far too coarse: a refused
connection arrives as an InternalServerError, a broken stream and a parameter it cannot translate
both as an APIConnectionError. So a class that says little is looked at again: by what caused it,
then by its status. litellm is not imported here; classes are known by name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cascade.backends.http_errors import kind_of
from cascade.backends.retry_after import seconds_to_wait
from cascade.errors import (
    BackendAuthError,
    BackendConnectionError,
    BackendError,
    BackendOverloadedError,
    BackendProtocolError,
    BackendRefusedError,
    BackendServerError,
    BackendSetupError,
    BackendTimeoutError,
    BackendUnreachableError,
)

ERRORS: Final[dict[str, type[BackendError]]] = {
    "APIConnectionError": BackendConnectionError,
    "APIError": BackendServerError,
    "APIResponseValidationError": BackendProtocolError,
    "AuthenticationError": BackendAuthError,
    "BadGatewayError": BackendServerError,
    "BadRequestError": BackendRefusedError,
    "BlockedPiiEntityError": BackendRefusedError,
    "BudgetExceededError": BackendAuthError,
    "CallerCredentialAuthenticationError": BackendAuthError,
    "CallerCredentialRateLimitError": BackendOverloadedError,
    "ContentPolicyViolationError": BackendRefusedError,
    "ContextWindowExceededError": BackendRefusedError,
    "EndpointNotSupportedByModelError": BackendRefusedError,
    "GuardrailRaisedException": BackendRefusedError,
    "ImageFetchError": BackendRefusedError,
    "InternalServerError": BackendServerError,
    "InvalidRequestError": BackendRefusedError,
    "JSONSchemaValidationError": BackendProtocolError,
    "LiteLLMUnknownProvider": BackendRefusedError,
    "MalformedRequestFieldError": BackendRefusedError,
    "MidStreamFallbackError": BackendConnectionError,
    "MockException": BackendServerError,
    "ModelNotMappedError": BackendSetupError,
    "ModifyResponseException": BackendRefusedError,
    "NotFoundError": BackendSetupError,
    "OpenAIError": BackendServerError,
    "PaymentRequiredError": BackendAuthError,
    "PermissionDeniedError": BackendAuthError,
    "RateLimitError": BackendOverloadedError,
    "RejectedRequestError": BackendRefusedError,
    "RouterRateLimitError": BackendOverloadedError,
    "RouterRateLimitErrorBasic": BackendOverloadedError,
    "SensitiveDataRouteException": BackendRefusedError,
    "ServiceUnavailableError": BackendServerError,
    "Timeout": BackendTimeoutError,
    "ToolLoopMaxRoundsExceeded": BackendRefusedError,
    "UnprocessableEntityError": BackendRefusedError,
    "UnsupportedEndpointError": BackendRefusedError,
    "UnsupportedParamsError": BackendRefusedError,
    "VectorStoreSearchError": BackendRefusedError,
}
"""By the name of the class; subclasses that are not listed are what their base is."""

_SAYS_LITTLE: Final = frozenset({"APIConnectionError", "APIError", "InternalServerError"})

_CAUSES: Final[dict[str, type[BackendError] | None]] = {
    "httpx.HTTPStatusError": None,  # the server answered: what lies deeper is about the body
    "httpx.ConnectError": BackendUnreachableError,
    "httpx.ConnectTimeout": BackendUnreachableError,
    "httpx.ReadError": BackendConnectionError,
    "httpx.WriteError": BackendConnectionError,
    "httpx.RemoteProtocolError": BackendConnectionError,
    "httpx.ReadTimeout": BackendTimeoutError,
    "httpx.WriteTimeout": BackendTimeoutError,
    "json.decoder.JSONDecodeError": BackendProtocolError,
    "openai.APIError": BackendServerError,  # an error event inside a stream
    "openai.OpenAIError": BackendAuthError,  # the client says so when it has no key
}

_ITS_OWN: Final = frozenset({"AttributeError", "KeyError", "ModuleNotFoundError", "TypeError"})
"""How litellm fails over a value that it cannot translate, or an answer that it cannot read."""

_NO_MESSAGE: Final = "Invalid user message"
"""How it begins to say that it knows no content of some type; the class is Exception itself."""

_ERROR_TEXT = 500
_GATEWAY_TIMEOUT = 504


@contextmanager
def translated(model: str) -> Iterator[None]:
    """Errors of litellm as BackendErrors; anything unknown stays what it is."""
    try:
        yield
    except Exception as error:
        found = backend_error(error, model)
        if found is None:
            raise
        raise found from error


def backend_error(error: BaseException, model: str) -> BackendError | None:
    """The BackendError that an exception of litellm stands for; None when it is not litellm's."""
    begun = type(error).__name__ == "MidStreamFallbackError"
    while (inner := getattr(error, "original_exception", None)) is not None:
        error = inner
    name = _listed(error)
    if name is None:
        return None
    kind = ERRORS[name]
    if name in _SAYS_LITTLE:
        kind = _by_cause(error, begun=begun) or _by_status(error) or kind
    text = (str(error).strip() or name).splitlines()[0][:_ERROR_TEXT]
    return kind(f"{model}: {text}", retry_after=_retry_after(error))


def _listed(error: BaseException) -> str | None:
    """The listed class an exception belongs to, if it is litellm's at all."""
    for base in type(error).__mro__:
        if base.__module__.startswith("litellm.") and base.__name__ in ERRORS:
            return base.__name__
    return None


def _by_cause(error: BaseException, *, begun: bool) -> type[BackendError] | None:
    cause = error.__cause__ or error.__context__
    while cause is not None:
        kind = type(cause)
        name = f"{kind.__module__}.{kind.__name__}"
        if name in _CAUSES:
            return _CAUSES[name]
        if kind.__module__ == "builtins" and (
            kind.__name__ in _ITS_OWN or str(cause).startswith(_NO_MESSAGE)
        ):
            return BackendProtocolError if begun else BackendRefusedError
        cause = cause.__cause__ or cause.__context__
    return None


def _by_status(error: BaseException) -> type[BackendError] | None:
    """What the status says; litellm has a general class for those of 500 and above as well."""
    status = getattr(error, "status_code", None)
    if status == _GATEWAY_TIMEOUT:
        return BackendTimeoutError
    return kind_of(status) if isinstance(status, int) and 400 <= status < 500 else None  # noqa: PLR2004


def _retry_after(error: BaseException) -> float | None:
    """Seconds until the provider wants to be asked again, wherever litellm has put the headers."""
    response = getattr(error, "response", None)
    for headers in (
        getattr(error, "litellm_response_headers", None),
        getattr(response, "headers", None),
    ):
        if (seconds := seconds_to_wait(headers or {})) is not None:
            return seconds
    return None
