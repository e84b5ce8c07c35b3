"""A cool-down that ends because whoever watches the server says that it is well."""

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.backends.wrappers.breaker import Circuit
from cascade.errors import BackendCoolingDownError, BackendServerError, BackendUnreachableError
from tests.engines import request
from tests.guards import COOLDOWN, Clock, cooling

FAULT = BackendServerError("no")


def circuit(clock=None, *, failed=0):
    made = Circuit(COOLDOWN, clock or Clock())
    for _ in range(failed):
        made.failed(made.enter(), FAULT)
    return made


async def test_a_server_that_is_known_to_be_well_again_is_asked_at_once():
    clock = Clock()
    down = Script(error="BackendUnreachableError")
    backend = cooling(ScriptedBackend(answers=[down] * 4 + ["ok"]), clock)
    for _ in range(4):
        with pytest.raises(BackendUnreachableError):
            await backend.complete(request())
    with pytest.raises(BackendCoolingDownError):
        await backend.complete(request())
    backend.recovered()
    assert (await backend.complete(request())).text == "ok"


def test_after_a_recovery_the_faults_of_the_old_server_are_forgotten():
    made = circuit(failed=COOLDOWN.min_calls - 1)
    before = made.enter()
    made.recovered()
    made.failed(before, FAULT)
    made.failed(made.enter(), FAULT)
    made.enter()


def test_after_a_recovery_the_next_cool_down_is_a_short_one_again():
    clock = Clock()
    made = circuit(clock, failed=COOLDOWN.min_calls)
    clock.pass_(COOLDOWN.seconds)
    made.failed(made.enter(), FAULT)  # the probe, so that the next cool-down is twice as long
    made.recovered()
    for _ in range(COOLDOWN.min_calls):
        made.failed(made.enter(), FAULT)
    with pytest.raises(BackendCoolingDownError):
        made.enter()
    clock.pass_(COOLDOWN.seconds)
    made.enter()


def test_a_recovery_of_what_never_failed_changes_nothing():
    made = circuit()
    made.recovered()
    made.enter()
