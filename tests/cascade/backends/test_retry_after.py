import pytest

from cascade.backends.retry_after import seconds_to_wait

NOW = 1_792_000_000.0  # Wed, 14 Oct 2026 17:46:40 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 14 Oct 2026 17:46:50 GMT"}, 10.0),
        ({"retry-after": "Wed, 14 Oct 2026 17:46:30 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
        ({"retry-after-ms": "", "retry-after": ""}, None),
    ],
)
def test_a_wait_is_read_in_every_form_in_which_servers_state_it(headers, seconds):
    assert seconds_to_wait(headers, lambda: NOW) == seconds
