import socket

import pytest


def test_a_test_cannot_reach_beyond_this_machine():
    with socket.socket() as caller, pytest.raises(RuntimeError, match="tried to reach"):
        caller.connect(("192.0.2.1", 80))
    with pytest.raises(RuntimeError, match="tried to reach"):
        socket.getaddrinfo("example.invalid", 80)
