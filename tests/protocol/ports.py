"""ports.py: TCP ports for those that are started later. Below those that the kernel gives to connections, and
never one twice: a port that was only looked at is anybody's until somebody listens there."""
import random
import socket

GIVEN, LEAST = set(), 10000
RANGE = "/proc/sys/net/ipv4/ip_local_port_range"


def most():
    try:
        with open(RANGE, encoding="ascii") as file:
            low = int(file.read().split()[0])
    except (OSError, ValueError):
        low = 0
    return low if low > 2 * LEAST else 32768


def free_port():
    while True:
        port = random.SystemRandom().randrange(LEAST, most())
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in GIVEN:
            GIVEN.add(port)
            return port
