"""No test opens a socket beyond this machine. Downloads of models run in processes of their own."""

import ipaddress
import sys


def _refuse_the_network(event: str, arguments: tuple[object, ...]) -> None:
    if event != "socket.connect":
        return
    address = arguments[1]
    if isinstance(address, tuple) and not _is_here(str(address[0])):
        raise RuntimeError(f"a test tried to connect to {address}")


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


sys.addaudithook(_refuse_the_network)
