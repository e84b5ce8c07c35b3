import socket

import pytest


@pytest.mark.parametrize("host", ["192.0.2.1", "example.invalid"])
def test_a_test_cannot_reach_beyond_this_machine(host):
    with socket.socket() as caller, pytest.raises(RuntimeError, match="tried to connect"):
        caller.connect((host, 80))
