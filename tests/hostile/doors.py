"""doors.py: too many connections or descriptors, half requests that stay, no password."""
import os
import re
import resource
import socket
import stat
import subprocess

import wire
from malformed import repeated
from streams import end_all, unread
from target import MIB, PASSWORD, USER, log_in
from wire import Peer, header, packet, protocol, store

DESCRIPTORS = 140  # of the second
HERD = 1000  # connections that find none
FEW = 24  # connections the first of these daemons may have
LINES_AT_ONCE = 20  # of a place in the log, then one a second
TOO_MANY = b"ERROR Too many open connections\r\n"
VERSION = b"VERSION 1.6.45\r\n"
UNAUTHENTICATED = b"CLIENT_ERROR unauthenticated\r\n"


def log_count(target, words):
    """Lines of the log with `words`, and how many more they, or a line about them, say were left out."""
    lines = [line for line in target.output().splitlines() if words in line]
    told = [line for line in lines if "lines like this were left out" in line]
    return (len(lines) - len(told),
            sum(int(number) for line in lines for number in re.findall(r" left_out=(\d+)$", line)))


def check_logged(target, began, count, words):
    """So many lines with `words` since the daemon's start, at `began`: written, or counted."""
    target.await_true("not each is told of", lambda: sum(log_count(target, words)) >= count)
    lines, more = log_count(target, words)
    took = protocol.time.monotonic() - began
    if lines > LINES_AT_ONCE + took + 2 or lines + more != count:
        raise protocol.Mismatch("%d of %s: %d lines in %.1f s, %d told of" % (
            count, words, lines, took, more))


# ---- too many ----


def knock(target, count):
    """So many come at once. How many were served, how many were told that there are too many."""
    served = refused = 0
    peers = [Peer(target.address) for _ in range(count)]
    for peer in peers:
        peer.push(b"version\r\n")
    for peer in peers:
        peer.fill(1)
        if peer.came.startswith(b"V"):
            peer.expect_bytes(VERSION)
            served += 1
        else:
            peer.expect_bytes(TOO_MANY)
            refused += peer.read_all() == b""
    return peers, served, refused


def exhaust(target, room, count):
    target.await_true("an earlier one is still there", lambda: (
        target.open_descriptors() <= target.descriptors))
    before = target.open_descriptors()
    peers, served, refused = knock(target, count)
    if served != room or refused != count - room:
        raise protocol.Mismatch("%d were served, %d refused; there was room for %d" % (
            served, refused, room))
    end_all(peers)
    target.await_true("nobody gets in any more", lambda: gets_in(target))
    target.await_true("who left is still there", lambda: target.open_descriptors() <= before)


def test_connections_exhausted(target):
    began, before = protocol.time.monotonic(), target.figure("rejected_connections")
    for _ in range(repeated(5)):
        exhaust(target, FEW - 2, 200)  # the good client has two
    refused = target.figure("rejected_connections")
    if refused - before < repeated(5) * (200 - (FEW - 2)):
        raise protocol.Mismatch("%d were counted" % (refused - before))
    check_logged(target, began, refused, "a connection was refused")


def gets_in(target):
    with Peer(target.address) as peer:
        peer.push(b"version\r\n")
        return peer.read_all(len(VERSION)) == VERSION


def limit_descriptors(target):
    """A daemon that root started may have raised the limit it was given: then root lowers it."""
    with open("/proc/%d/limits" % target.pid, encoding="ascii") as limits:
        now = [line.split()[3:5] for line in limits if line.startswith("Max open files")][0]
    if int(now[0]) > DESCRIPTORS:
        resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, int(now[1])))


def test_descriptors_exhausted(target):
    """Fewer than connections are allowed: who finds none is told so, with the one in reserve."""
    limit_descriptors(target)
    room = DESCRIPTORS - target.descriptors
    for _ in range(repeated(2)):
        exhaust(target, room, room + 10)
    if not target.says('reason="no descriptor is left"'):
        raise protocol.Mismatch("the log does not say why")


def test_descriptors_exhausted_herd(target):
    """Far more than are accepted in one turn: all are told, and accepting never pauses."""
    limit_descriptors(target)
    pauses, refusals = target.figure("listen_disabled_num"), target.figure("rejected_connections")
    room = DESCRIPTORS - target.descriptors
    exhaust(target, room, room + HERD)
    pauses = target.figure("listen_disabled_num") - pauses
    refusals = target.figure("rejected_connections") - refusals
    if pauses or refusals < HERD:
        raise protocol.Mismatch("%d pauses, %d refused" % (pauses, refusals))


FEW_TESTS = (test_connections_exhausted,)
LIMITED_TESTS = (test_descriptors_exhausted, test_descriptors_exhausted_herd)


# ---- half a request ----


def half_open(target, half, count):
    """Connections that say half a request are closed, those that say nothing stay."""
    timeouts = target.figure("request_timeouts")
    silent = Peer(target.address)
    peers = [Peer(target.address) for _ in range(count)]
    for peer in peers:
        peer.push(half)
    for peer in peers:
        peer.expect_closed()
    end_all(peers, "close")
    if target.figure("request_timeouts") - timeouts != count:
        raise protocol.Mismatch("request_timeouts grew by another number than %d" % count)
    silent.ask(b"version\r\n", VERSION)
    silent.close()


def test_half_open_herd_text(target):
    half_open(target, b"set feed:1.like 0 0 4\r\n12", 1000)


def test_half_open_herd_binary(target):
    half_open(target, store(wire.SET, b"feed:1.like", b"1234")[:-1], 500)


def test_drip(target):
    """A byte now and then makes no request whole: it is not progress."""
    timeouts = target.figure("request_timeouts")
    peers = [Peer(target.address) for _ in range(20)]

    def drip():
        open_now = [peer for peer in peers if peer.push(b"x") is not None]
        return not open_now

    for peer in peers:
        peer.push(b"get ")
    target.await_true("dripping keeps a connection open", drip)
    end_all(peers, "close")
    if target.figure("request_timeouts") - timeouts != len(peers):
        raise protocol.Mismatch("they were closed for another reason")


IMPATIENT_TESTS = (test_half_open_herd_text, test_half_open_herd_binary, test_drip)


# ---- without a password ----


def test_auth_huge_set_text(target):
    """A length nobody who is not in may ask room for: closed, and nothing is kept."""
    for length in (b"1025", b"4096", b"1048576", b"2147483647", b"2147483648", b"4294967295",
                   b"9223372036854775807", b"18446744073709551615"):
        for verb in (b"set x 0 0 %s\r\n", b"set x 0 0 %s noreply\r\n", b"set x 0 %s %s\r\n"):
            line = verb.replace(b"%s", length)
            with Peer(target.address) as peer:
                peer.send([line + b"x" * 1000])
                came = peer.read_all(1)
                if came and not UNAUTHENTICATED.startswith(came[:1]):
                    raise protocol.Mismatch("%s answered %s" % (line, protocol.shown(came)))
    end_all(unread(target, 200, b"set x 0 0 1073741824\r\n" + b"x" * MIB, 0))
    end_all(unread(target, 200, b"set x 0 0 1024\r\n" + b"x" * 1000, MIB))


def test_auth_huge_set_binary(target):
    for length in (1025, 4096, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFE8, 0xFFFFFFFF):
        for opcode in range(256):
            with Peer(target.address) as peer:
                peer.send([header(opcode, 5, 8, length)])
                peer.finish()
                if peer.read_all() not in (b"",):
                    raise protocol.Mismatch("opcode 0x%02x of %d bytes answered" % (opcode, length))
    end_all(unread(target, 200, header(wire.SET, 5, 8, 0x40000000) + b"x" * MIB, 0))


def test_auth_lines_without_end(target):
    for data in (b"x" * MIB, b" " * (64 << 10), b"get " + b"k " * (1 << 19), b"set " + b"k" * MIB,
                 b"\0" * MIB):
        end_all(unread(target, 100, data, 0))
        with Peer(target.address) as peer:
            peer.send([data])
            if peer.read_all() != b"":
                raise protocol.Mismatch("%s is answered" % protocol.shown(data, 40))


def test_auth_nothing_else(target):
    """No command before the password, in no dialect; three failures close."""
    for line in (b"get feed:900001", b"mg feed:900001 v", b"stats", b"version", b"mn", b"delete x",
                 b"flush_all", b"ms feed:1 3", b"shutdown", b"lru_crawler metadump all", b"",
                 b"GET / HTTP/1.1"):
        with Peer(target.address) as peer:
            peer.send([line + b"\r\n" + b"stats\r\nstats\r\nstats\r\n"])
            came = peer.read_all()
            if came != 3 * UNAUTHENTICATED:
                raise protocol.Mismatch("%s answered %s" % (line, protocol.shown(came)))
    for opcode in range(0x60):
        if opcode in (wire.QUIT, wire.QUITQ, wire.SASL_LIST, wire.SASL_START, wire.SASL_STEP):
            continue
        with Peer(target.address) as peer:
            peer.send([packet(opcode, b"feed:900001") * 4])
            for _ in range(3):
                found = peer.read_packet()
                if found[:2] != (opcode, 0x20):
                    raise protocol.Mismatch("opcode 0x%02x answered %s" % (opcode, found))
            if peer.read_all() != b"":
                raise protocol.Mismatch("opcode 0x%02x: a fourth time" % opcode)


def addresses(net):
    """As many of this machine as wanted: each may fail some times before it has to wait."""
    return ("127.0.%d.%d" % (net, host) for host in range(1, 255))


def test_auth_wrong_passwords(target):
    source = addresses(1)
    right = USER + b" " + PASSWORD
    for wrong in (b"", b" ", USER, USER + b" ", right[:-1], right + b"x", right + b" ",
                  b" " + right, right.replace(b" ", b":"), right.upper(),
                  b"\0" * len(right), right * 30):
        with Peer(target.address, source=next(source)) as peer:
            request = b"set x 0 0 %d\r\n%s\r\n" % (len(wrong), wrong)
            peer.ask(request * 3, 3 * b"CLIENT_ERROR authentication failure\r\n")
            peer.expect_closed()
        with Peer(target.address, source=next(source)) as peer:
            message = b"\0" + wrong.replace(b" ", b"\0", 1)
            peer.send([packet(wire.SASL_START, b"PLAIN", value=message) * 3])
            for _ in range(3):
                if peer.read_packet()[1] != 0x20:
                    raise protocol.Mismatch("in with %s" % wrong)
            peer.expect_closed()
    for key, value in ((b"PLAINX", b"\0" + right.replace(b" ", b"\0", 1)), (b"CRAM-MD5", b""),
                       (b"plain", b"\0a\0b"), (b"PLAIN", b""), (b"PLAIN", b"\0\0"),
                       (b"PLAIN", b"\0" * 900)):
        with Peer(target.address, source=next(source)) as peer:
            peer.send([packet(wire.SASL_START, key, value=value)])
            if peer.read_packet()[1] != 0x20:
                raise protocol.Mismatch("in with %s %s" % (key, value))


def test_auth_login_again(target):
    """A wrong login after a right one: the connection is out."""
    message = b"\0" + USER + b"\0" + PASSWORD
    for opcode, extras, key, value in (
            (wire.SASL_START, b"", b"PLAIN", message + b"x"), (wire.SASL_START, b"", b"", message),
            (wire.SASL_START, b"1234", b"PLAIN", message + b"\0"),
            (wire.SASL_STEP, b"", b"PLAIN", b""), (wire.SASL_START, b"", b"x" * 251, message)):
        with Peer(target.address) as peer:
            log_in(peer, True)
            peer.send([packet(opcode, key, extras, value) + packet(wire.NOOP)])
            for asked in (opcode, wire.NOOP):
                found = peer.read_packet()
                if found[:2] != (asked, 0x20):
                    raise protocol.Mismatch("0x%02x after it answered %s" % (asked, found))


GUESSERS = 200  # connections that guess at once
DELAYS = (0, 0, 0, 1, 2, 4)  # seconds before the first guess, the second, …
CLOCK_SLACK_S = 0.05
FREE_GUESSES = 3
GUESSES = 20  # whose clients go at once
GONE_S = 7  # two short delays, their ends held up, and the ticks


def test_auth_guesses(target):
    """At once, on connections of their own, all from one address: few passwords are looked at.

    Nobody else waits: the good client goes on, and one from elsewhere logs in.
    """
    source = next(addresses(2))
    errors, began = target.figure("auth_errors"), protocol.time.monotonic()
    peers = [Peer(target.address, source=source) for _ in range(GUESSERS)]
    for number, peer in enumerate(peers):
        guess = USER + b" %d" % number
        peer.push(b"set x 0 0 %d\r\n%s\r\n" % (len(guess), guess))
    looked_at = 0

    def enough():
        nonlocal looked_at
        looked_at = target.figure("auth_errors") - errors
        return looked_at >= len(DELAYS) - 1

    target.await_true("no further guess has its turn", enough)
    took = protocol.time.monotonic() - began
    if looked_at > len(DELAYS) or took < sum(DELAYS[:looked_at]) - CLOCK_SLACK_S:
        raise protocol.Mismatch("%d passwords were looked at in %.1f s" % (looked_at, took))
    if target.figure("auth_delayed") < GUESSERS - looked_at:
        raise protocol.Mismatch("not all the others wait")
    end_all(peers, "reset")


def test_auth_gone(target):
    """Guesses whose clients have gone are none: the right login, the only one, has its turn."""
    source = next(addresses(4))
    errors, delayed, refused = (target.figure(name) for name in
                                ("auth_errors", "auth_delayed", "auth_refused"))
    for number in range(GUESSES + FREE_GUESSES):
        with Peer(target.address, source=source) as peer:
            peer.push(b"set x 0 0 4\r\nu xx\r\n")
            if number < FREE_GUESSES:
                peer.expect_bytes(b"CLIENT_ERROR authentication failure\r\n")
            elif number % 2:
                target.await_true("it does not wait", lambda: (
                    target.figure("auth_delayed") - delayed + target.figure("auth_errors") -
                    errors > number))
                peer.push(b"unread")
    began = protocol.time.monotonic()
    with Peer(target.address, source=source) as peer:
        log_in(peer)
    took = protocol.time.monotonic() - began
    looked_at = target.figure("auth_errors") - errors
    target.await_true("they wait", lambda: (
        target.figure("auth_refused") - refused >= GUESSES + FREE_GUESSES - looked_at))
    if looked_at > FREE_GUESSES + 1 or took > GONE_S:
        raise protocol.Mismatch("%d were looked at, it took %.1f s" % (looked_at, took))


def test_auth_failures_logged(target):
    """Each failed login has a line, or is counted in one; so many a second."""
    began = protocol.time.monotonic()
    failures = 0
    for source in list(addresses(3))[:60]:
        with Peer(target.address, source=source) as peer:
            peer.ask(b"set x 0 0 5\r\na\nb c\r\n" * 2,
                     2 * b"CLIENT_ERROR authentication failure\r\n")
            failures += 2
    check_logged(target, began, failures, "a login was refused")
    if not target.says(r'user="a\?b"'):
        raise protocol.Mismatch("the log does not name the user")


def test_auth_a_byte_at_a_time(target):
    """The dialogue, in pieces; then all commands are there."""
    data = USER + b" " + PASSWORD
    login = b"set in 0 0 %d\r\n%s\r\n" % (len(data), data)
    sasl = packet(wire.SASL_START, b"PLAIN", value=b"\0" + data.replace(b" ", b"\0", 1))
    with Peer(target.address) as text, Peer(target.address) as binary:
        text.send([bytes([byte]) for byte in login + b"get nobody\r\n"])
        text.expect_bytes(b"STORED\r\nEND\r\n")
        binary.send([bytes([byte]) for byte in sasl + packet(wire.NOOP)])
        binary.expect_bytes(wire.answer(wire.SASL_START, value=b"Authenticated") +
                            wire.answer(wire.NOOP))
    for at in range(len(login)):
        with Peer(target.address) as peer:
            peer.push(login[:at])
            peer.reset() if at % 2 else peer.finish()
    with Peer(target.address) as peer:
        log_in(peer)


AUTH_TESTS = (
    test_auth_huge_set_text, test_auth_huge_set_binary, test_auth_lines_without_end,
    test_auth_nothing_else, test_auth_failures_logged, test_auth_wrong_passwords,
    test_auth_login_again, test_auth_guesses, test_auth_gone, test_auth_a_byte_at_a_time)


# ---- what the process is ----


def test_process_socket(target):
    """The unix socket belongs to whom the daemon became, and to nobody else."""
    file, process = os.stat(target.socket), os.stat("/proc/%d" % target.pid)
    if (file.st_uid, file.st_gid) != (process.st_uid, process.st_gid):
        raise protocol.Mismatch("the socket is of user %d, the daemon of %d" % (
            file.st_uid, process.st_uid))
    if stat.S_IMODE(file.st_mode) != 0o700:
        raise protocol.Mismatch("its mode is %o" % file.st_mode)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(target.socket)
        client.sendall(b"version\r\n")
        if client.recv(100) != VERSION:
            raise protocol.Mismatch("no version")


def test_process_privileges(target):
    with open("/proc/%d/status" % target.pid, encoding="ascii") as status:
        if not re.search(r"^NoNewPrivs:\s*1$", status.read(), re.M):
            raise protocol.Mismatch("NoNewPrivs is not set")


# What readelf says of a program built as configure.ac has it, and what is missing else.
HARDENED = (
    (r"Type:\s+DYN \(Position-Independent Executable", "PIE"),
    (r"GNU_RELRO", "RELRO"),
    (r"\(FLAGS\).*BIND_NOW", "BIND_NOW"),
    (r"\(FLAGS_1\).*\bNOW\b", "NOW"),
    (r"__stack_chk_fail", "the stack protector"),
    (r"__(memcpy|snprintf|vsnprintf|read)_chk", "FORTIFY_SOURCE"),
    (r"GNU_STACK\s+(0x0+\s+){3}\s*0x0+ 0x0+\s+RW\b", "a stack that cannot be executed"),
)


def test_process_hardened(target):
    """Sanitizers have checks of their own, which those of a release would be in the way of."""
    said = subprocess.run(["readelf", "--wide", "--file-header", "--segments", "--dynamic",
                           "--syms", "/proc/%d/exe" % target.pid],
                          check=True, capture_output=True, text=True).stdout
    if re.search(r"__[at]san_init", said):
        return
    missing = [what for pattern, what in HARDENED if not re.search(pattern, said)]
    if missing:
        raise protocol.Mismatch("built without " + ", ".join(missing))


PROCESS_TESTS = (test_process_socket, test_process_privileges, test_process_hardened)
