"""The scripted model's errors and usage."""

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import BackendOverloadedError, BackendServerError, ConfigError
from cascade.types import Usage
from tests.engines import request


async def test_a_scripted_429_says_when_to_come_back():
    busy = {"error": "BackendOverloadedError", "retry_after": 7}
    with pytest.raises(BackendOverloadedError) as caught:
        await ScriptedBackend(answers=[busy]).complete(request())
    assert (caught.value.status, caught.value.retry_after) == (429, 7)


async def test_a_scripted_error_that_names_no_wait_has_none():
    with pytest.raises(BackendServerError) as caught:
        await ScriptedBackend(answers=[Script(error="BackendServerError")]).complete(request())
    assert caught.value.retry_after is None


@pytest.mark.parametrize("wait", ["soon", True, -1, float("nan"), float("inf")])
def test_a_wait_that_is_no_number_of_seconds_is_refused(wait):
    with pytest.raises(ConfigError, match="retry_after is a number of seconds"):
        ScriptedBackend(answers=[{"error": "BackendServerError", "retry_after": wait}])


def test_a_wait_without_an_error_is_refused():
    with pytest.raises(ConfigError, match="needs an error"):
        ScriptedBackend(answers=[{"text": "ok", "retry_after": 1}])


async def test_a_configuration_says_what_usage_is_reported():
    told = {"text": "ok", "usage": {"input": 5, "cache_read": 7, "output": 1}}
    completion = await ScriptedBackend(answers=[told]).complete(request())
    assert completion.usage == Usage(input=5, cache_read=7, output=1)
    with pytest.raises(ConfigError, match="a usage has no cached"):
        ScriptedBackend(answers=[{"usage": {"cached": 7}}])
