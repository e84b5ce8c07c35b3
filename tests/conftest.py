"""No test opens a socket beyond this machine. Downloads of models run in processes of their own.

And no example of a property is timed: a machine that is busy says nothing about the code.
"""

import ipaddress
import sys

from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def _refuse_the_network(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if host is not None and not _is_here(host.decode() if isinstance(host, bytes) else str(host)):
        raise RuntimeError(f"a test tried to reach {host}")


def _is_here(host: str) -> bool:
    if host in {"localhost", ""}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


sys.addaudithook(_refuse_the_network)
