"""Where an address leads: to this machine, into a private network, or further."""

import ipaddress
import re
from urllib.parse import urlsplit

OWN_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")  # no public name ends so
# numbers of this machine and of private networks; what Python calls private differs by its version
_PRIVATE = """0.0.0.0/32 127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16
100.64.0.0/10 ::/127 fc00::/7 fe80::/10"""
PRIVATE = [ipaddress.ip_network(network) for network in _PRIVATE.split()]


def is_here(address: str) -> bool:
    """Tell whether an address is one of this machine.

    Nothing on the way may see what goes there.
    """
    host = _host(address)
    number = _number(host)
    if number is None:
        return host == "localhost" or host.endswith(".localhost")
    return number.is_loopback or number.is_unspecified


def is_near(address: str) -> bool:
    """Tell whether an address is of this machine or of a private network.

    Such is a number in one of the networks `PRIVATE`, a name without a dot like `gpu01`, and one
    with an ending of `OWN_ENDINGS`.
    """
    host = _host(address)
    number = _number(host)
    if number is None:
        return "." not in host or host.endswith(OWN_ENDINGS)
    return any(number in network for network in PRIVATE)


def is_open_to_readers(address: str) -> bool:
    """Tell whether what goes to an address can be read on the way.

    Plain http beyond a private network.
    """
    return not re.match("https:", address, re.I) and not is_near(address)


def has_password(address: str) -> bool:
    """Tell whether an address has a name or a password in it."""
    return "@" in address.partition("://")[2].partition("/")[0]


def _host(address: str) -> str:
    """Return the host of an address in small letters, or ""."""
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:  # such as http://[1
        return ""


def _number(host: str):
    """Return the IP address that a host is written as, None for a name."""
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(number, "ipv4_mapped", None) or number
