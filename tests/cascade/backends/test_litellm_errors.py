import pytest

from cascade.backends.litellm_api import import_litellm
from cascade.backends.litellm_errors import ERRORS, backend_error, translated
from cascade.errors import (
    BackendAuthError,
    BackendConnectionError,
    BackendOverloadedError,
    BackendProtocolError,
    BackendRefusedError,
    BackendServerError,
    BackendSetupError,
    BackendTimeoutError,
)


@pytest.fixture(scope="module")
def litellm():
    return import_litellm()


def test_every_exception_class_that_litellm_exports_is_mapped_and_no_other(litellm):
    exported = {
        thing.__name__
        for module in (litellm, litellm.exceptions)
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, BaseException)
        and thing.__module__.startswith("litellm.")
    }
    assert exported == ERRORS.keys()


def bare(kind, **fields):
    """An exception of litellm's without the trouble of making one."""
    error = Exception.__new__(kind)
    error.message = kind.__name__
    error.num_retries = error.max_retries = None
    for field, value in fields.items():
        setattr(error, field, value)
    return error


@pytest.fixture
def made(litellm):
    return lambda name, **fields: bare(getattr(litellm.exceptions, name), **fields)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("AuthenticationError", BackendAuthError),
        ("PermissionDeniedError", BackendAuthError),
        ("PaymentRequiredError", BackendAuthError),
        ("NotFoundError", BackendSetupError),
        ("RateLimitError", BackendOverloadedError),
        ("Timeout", BackendTimeoutError),
        ("ContextWindowExceededError", BackendRefusedError),
        ("ContentPolicyViolationError", BackendRefusedError),
        ("UnsupportedParamsError", BackendRefusedError),
        ("APIConnectionError", BackendConnectionError),
        ("InternalServerError", BackendServerError),
        ("ServiceUnavailableError", BackendServerError),
        ("BadGatewayError", BackendServerError),
        ("APIResponseValidationError", BackendProtocolError),
    ],
)
def test_a_class_is_what_can_be_done_about_it(made, name, kind):
    found = backend_error(made(name), "provider/m")
    assert type(found) is kind
    assert found.message.startswith("provider/m: ")


def test_a_status_says_more_than_the_general_class(made):
    assert type(backend_error(made("APIError", status_code=413), "m")) is BackendRefusedError
    assert type(backend_error(made("APIError", status_code=402), "m")) is BackendAuthError
    assert type(backend_error(made("APIError", status_code=410), "m")) is BackendSetupError
    assert type(backend_error(made("APIError", status_code=504), "m")) is BackendTimeoutError
    assert type(backend_error(made("APIError", status_code=529), "m")) is BackendServerError


def test_a_new_subclass_is_what_its_base_is(litellm):
    class NewError(litellm.exceptions.RateLimitError):
        """One that a later version may add."""

    assert type(backend_error(bare(NewError), "m")) is BackendOverloadedError


def test_an_error_in_the_middle_of_a_stream_is_the_error_inside_it(made):
    inner = made("RateLimitError", litellm_response_headers={"retry-after": "3"})
    found = backend_error(made("MidStreamFallbackError", original_exception=inner), "m")
    assert type(found) is BackendOverloadedError
    assert found.retry_after == 3.0


@pytest.mark.parametrize("header", ["", "soon", "nan", "-1"])
def test_a_retry_after_that_is_no_number_of_seconds_is_none(made, header):
    error = made("RateLimitError", litellm_response_headers={"retry-after": header})
    assert backend_error(error, "m").retry_after is None


def test_only_the_first_line_of_a_long_message_is_told(made):
    error = made("APIConnectionError", message="it broke\nTraceback (most recent call last):")
    assert backend_error(error, "m").message == "m: it broke"


def test_an_error_that_is_not_litellms_stays_what_it_is():
    with pytest.raises(TypeError, match="ours"), translated("m"):
        raise TypeError("ours")
