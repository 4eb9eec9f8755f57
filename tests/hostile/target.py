"""target.py: the daemon that is attacked, what it must be like afterwards, and its good client."""
import argparse
import contextlib
import os
import re
import shutil
import struct
import sys
import tempfile
import threading
import time

import wire
from wire import protocol

MIB = 1 << 20
SETTLE_S = 20  # to give everything back in
POLL_S = 0.02
PAUSE_S = 0.015  # of the good client after a round: else it has a core, and its daemon another
AT_REST_LOOKS = 75  # more than a second: in each the workers let go of what is too large
# Pages of tables and dicts that are touched later, and the allocator's own: half of it so far. A
# larger answer's buffer (300 KB each in writeback.py) counts, too, until its worker's next tick.
RESIDENT_SLACK = MIB
# A sanitizer's allocator keeps what is freed for a while, and has a shadow of it.
SANITIZED_SLACK = 48 * MIB
QUARANTINE = "quarantine_size_mb=8:thread_local_quarantine_size_kb=64"
REPORT = re.compile(r"Sanitizer|runtime error|check failed|CHECK|Assertion")
USER, PASSWORD = b"rollcall", b"secret words"
BIG_BYTES = 1000000
WARM_SMALL = 1200  # values of 10,000 bytes that go round the plain space
KEPT_ASKED = b"set feed:20 0 0 11\r\n1,2,3,40000\r\nget" + b" feed:20" * 4096 + b"\r\n"
KEPT_ANSWER = b"STORED\r\n" + b"VALUE feed:20 0 11\r\n1,2,3,40000\r\n" * 4096 + b"END\r\n"
BUFFERS_BYTES = 16 * MIB  # what all connections may keep: the least it ever is

DATA = """data: %s
journal: {sync: always, segment: 4MiB, buffer: 1MiB}
checkpoint: {every: 0, journal: 8MiB}
cold: {threads: 1, cache: 1MiB, queue: 16, overlay: 1MiB}
"""
CONFIG = """threads: 2
memory: 64MiB
max-connections: 2048
backlog: 1024
spaces:
  feed:
    kind: counter
    slots: {repost: 20, comment: 20, like: 20, read: 20}
    role: store
    table-size: 256KiB
    tables: 2
  cache:
    kind: counter
    slots: {repost: 20, comment: 20, like: 20, read: 20}
    role: cache
    value-flags: 7
    table-size: 256KiB
    tables: 2
  liked:
    kind: phantom
    deletes: yes
    exceptions-memory: 256KiB
    false-positives: 0.000001
    role: store
    table-size: 256KiB
    tables: 2
  other:
    kind: plain
    memory: 8MiB
    item-max: 1MiB
"""


TAKEN = 100  # descriptors that a limited daemon is started with
LIMITED = """#!%s
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (%d,) * 2)
for _ in range(%d):
    os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
os.execv(%r, sys.argv)
"""


class Folder:
    """The configuration and the file of users, readable by whom the daemon becomes."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="rollcall-hostile-")
        os.chmod(self.path, 0o711)
        self.config = self.write("config.yaml", CONFIG)
        data = os.path.join(self.path, "data")
        os.mkdir(data, 0o700)
        if os.geteuid() == 0:
            shutil.chown(data, protocol.USER)
        self.config_data = self.write("data.yaml", DATA % data + CONFIG)
        self.users = self.write("users", "%s:%s\n" % (USER.decode(), PASSWORD.decode()))

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def limited(self, program, descriptors):
        """A program that is the daemon with fewer descriptors, most of them taken already: else it
        would divide them so that clients never find none."""
        return self.write("limited", LIMITED % (sys.executable, descriptors, TAKEN,
                                                os.path.abspath(program)), 0o755)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def log_in(peer, binary=False):
    if binary:
        message = b"\0" + USER + b"\0" + PASSWORD
        peer.ask(wire.packet(wire.SASL_START, b"PLAIN", value=message),
                 wire.answer(wire.SASL_START, value=b"Authenticated"))
    else:
        data = USER + b" " + PASSWORD
        peer.ask(b"set in 0 0 %d\r\n%s\r\n" % (len(data), data), b"STORED\r\n")


class GoodClient(threading.Thread):
    """Asks some hundred times a second in all dialects, and knows each answer."""

    FEED, LIKED = 900001, 900001
    MEMBERS = 100  # in turns, so that each is added again soon

    def __init__(self, target):
        super().__init__(daemon=True)
        self.rounds = 0
        self.problem = None
        self.ending = False
        self.text = wire.Peer(target.address)
        self.binary = wire.Peer(target.address)
        wire.Peer.open_peers -= {self.text, self.binary}  # these stay
        if target.users:
            log_in(self.text)
            log_in(self.binary, True)

    def run(self):
        try:
            while not self.ending:
                self.round(self.rounds + 1)
                self.rounds += 1
                time.sleep(PAUSE_S)
        except (protocol.Mismatch, OSError) as problem:
            self.problem = "the good client in round %d: %s" % (self.rounds + 1, problem)

    def round(self, n):
        text, binary = self.text, self.binary
        feed, liked = b"feed:%d" % self.FEED, b"liked:%d:u%d" % (self.LIKED, n % self.MEMBERS)
        digits = b"%d" % (3 * n)
        text.ask(b"incr %s.like 1\r\n" % feed, b"%d\r\n" % (3 * n - 2))
        grown = b"%d" % (3 * n - 1)
        text.ask(b"ma %s.like v D1\r\n" % feed, b"VA %d\r\n%s\r\n" % (len(grown), grown))
        extras = struct.pack(">QQI", 1, 0, 0xFFFFFFFF)
        binary.send([wire.packet(wire.INCR, feed + b".like", extras, opaque=n)])
        opcode, status, opaque, _, _, _, value = binary.read_packet()
        if (opcode, status, opaque, value) != (wire.INCR, 0, n, struct.pack(">Q", 3 * n)):
            raise protocol.Mismatch("binary incr: %s" % ((opcode, status, opaque, value),))
        text.ask(b"set %s.read 0 0 %d\r\n%s\r\n" % (feed, len(digits), digits), b"STORED\r\n")
        record = b",,%s,%s" % (digits, digits)
        text.ask(b"get %s nothing:1 %s.read\r\n" % (feed, feed),
                 b"VALUE %s 0 %d\r\n%s\r\nVALUE %s.read 0 %d\r\n%s\r\nEND\r\n" % (
                     feed, len(record), record, feed, len(digits), digits))
        text.ask(b"add %s 0 0 1\r\n1\r\n" % liked,
                 b"STORED\r\n" if n <= self.MEMBERS else b"NOT_STORED\r\n")
        text.ask(b"mg %s\r\n" % liked, b"HD\r\n")
        binary.send([wire.packet(wire.GETQ, b"liked:1:nobody") +
                     wire.packet(wire.NOOP, opaque=n)])
        binary.expect_bytes(wire.answer(wire.NOOP, opaque=n))
        self.plain(digits)

    def plain(self, digits):
        """What was stored may be evicted, but never be something else."""
        self.text.ask(b"set good 5 0 %d\r\n%s\r\n" % (len(digits), digits), b"STORED\r\n")
        self.text.send([b"get good\r\n"])
        line = self.text.read_line()
        if line != b"END":
            if line != b"VALUE good 5 %d" % len(digits):
                raise protocol.Mismatch("get good: " + protocol.shown(line))
            self.text.expect_bytes(digits + b"\r\nEND\r\n")

    def end(self):
        self.ending = True
        self.join()
        self.text.close()
        self.binary.close()


@contextlib.contextmanager
def environment(folder, descriptors):
    """In which daemons are started whose memory can be measured."""
    before = dict(os.environ)
    asan = before.get("ASAN_OPTIONS", "")
    # What is freed goes back at once: what is resident is what is used.
    os.environ["MALLOC_CONF"] = "dirty_decay_ms:0,muzzy_decay_ms:0,tcache:false"
    os.environ["ASAN_OPTIONS"] = asan + (":" if asan else "") + QUARANTINE
    if descriptors:
        program = before.get("ROLLCALLD", os.path.join(protocol.TOP, "build", "rollcalld"))
        os.environ["ROLLCALLD"] = folder.limited(program, descriptors)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Target(protocol.Daemon):
    """A daemon with a good client."""

    def __init__(self, folder, arguments=(), users=False, descriptors=0, data=False,
                 own_socket=False):
        """descriptors: so many it may have, 0: no limit. data: answers wait for it.

        own_socket: it also listens on a unix socket, self.socket."""
        self.users = users
        self.good = None
        self.socket = os.path.join(folder.path, "socket")
        arguments = list(arguments) + (["-Y", folder.users] if users else [])
        arguments += ["-l", self.socket] if own_socket else []
        with environment(folder, descriptors):
            config = folder.config_data if data else folder.config
            super().__init__(argparse.Namespace(connect=None, config=config), arguments)
        self.pid = self.process.pid
        with open("/proc/%d/maps" % self.pid, encoding="utf-8") as maps:
            self.sanitized = "libasan" in maps.read()
        self.good = GoodClient(self)
        self.warm_up()
        self.good.start()
        self.descriptors, self.base = self.at_rest()

    def peer(self, receive_bytes=None):
        """A connection, logged in where that is needed."""
        peer = wire.Peer(self.address, receive_bytes)
        if self.users:
            log_in(peer)
        return peer

    def warm_up(self):
        """Each worker's buffers get as large as they ever do, and the plain space full. Then a turn
        of as many keys as one has, whose answers are more than half of what an output, and a hold,
        keeps for good (NET_OUT_KEEP_BYTES)."""
        with self.peer() as peer:
            small = b"x" * 10000
            peer.send([b"".join(b"set small%d 0 0 10000 noreply\r\n%s\r\n" % (i, small)
                                for i in range(WARM_SMALL))])
            peer.ask(b"mn\r\n", b"MN\r\n")
        value = b"x" * BIG_BYTES
        for _ in range(4):
            with self.peer() as peer:
                for i in range(12):
                    peer.ask(b"set warm%d 0 0 %d\r\n%s\r\n" % (i, BIG_BYTES, value), b"STORED\r\n")
                peer.send([b"get warm11\r\n" * 8])
                peer.expect_bytes(8 * (b"VALUE warm11 0 %d\r\n%s\r\nEND\r\n" % (BIG_BYTES, value)))
        for _ in range(4):
            with self.peer() as peer:
                peer.ask(KEPT_ASKED, KEPT_ANSWER)
        with self.peer() as peer:
            peer.ask(b"delete feed:20\r\n", b"DELETED\r\n")

    def stats(self, arguments=b""):
        with self.peer() as peer:
            peer.send([b"stats" + arguments + b"\r\n"])
            figures = {}
            while (line := peer.read_line()) != b"END":
                words = line.split(b" ", 2)
                if words[0] != b"STAT":
                    raise protocol.Mismatch("stats answers " + protocol.shown(line))
                figures[words[1].decode()] = words[2].decode()
            return figures

    def figure(self, name):
        return int(self.stats()[name])

    def open_descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def resident(self):
        """Bytes that are no file's."""
        try:
            with open("/proc/%d/status" % self.pid, encoding="ascii") as file:
                for line in file:
                    if line.startswith("RssAnon:"):
                        return int(line.split()[1]) << 10
        except OSError:
            pass
        raise protocol.Mismatch("the daemon is gone")

    def at_rest(self):
        """Descriptors and bytes: the least of some looks; what was freed last is on its way."""
        looks = []
        for _ in range(AT_REST_LOOKS):
            time.sleep(POLL_S)
            looks.append((self.open_descriptors(), self.resident()))
        return min(one for one, _ in looks), min(one for _, one in looks)

    def await_true(self, what, test):
        """Waits until test() is true; what: a text, or a function that makes it."""
        until = time.monotonic() + SETTLE_S
        while not test():
            if time.monotonic() > until:
                raise protocol.Mismatch(what() if callable(what) else what)
            time.sleep(POLL_S)

    def check_bounded(self, room):
        """What is resident now is the base and `room` at most."""
        grown = self.resident() - self.base
        if not self.sanitized and grown > room + RESIDENT_SLACK:
            raise protocol.Mismatch("resident memory grew by %.1f MiB" % (grown / MIB))

    def check_alive(self):
        if self.process.poll() is not None:
            raise protocol.Mismatch("the daemon ended with %d:\n%s" % (
                self.process.returncode, self.output()))
        log = self.output()
        if REPORT.search(log):
            raise protocol.Mismatch("a report in the log:\n" + log)
        if self.good is not None and self.good.problem:
            raise protocol.Mismatch(self.good.problem)

    def settle(self):
        """After a test: it answers, its good client goes on, nothing was kept."""
        self.check_alive()
        with self.peer() as peer:
            peer.ask(b"version\r\n", b"VERSION 1.6.45\r\n")
        rounds = self.good.rounds
        self.await_true(lambda: self.good.problem or "the good client has no answer",
                        lambda: self.good.rounds > rounds + 1)
        self.await_true(lambda: "%d descriptors are open, before it were %d" % (
            self.open_descriptors(), self.descriptors),
                        lambda: self.open_descriptors() <= self.descriptors)
        slack = SANITIZED_SLACK if self.sanitized else RESIDENT_SLACK
        self.await_true(lambda: "resident memory is %.1f MiB above the beginning" % (
            (self.resident() - self.base) / MIB),
                        lambda: self.resident() <= self.base + slack)
        self.check_alive()

    def end(self):
        """Ends client and daemon; a text if that does not go well."""
        if self.good is not None:
            self.good.end()
        problem = self.stop(False)
        if problem is None and REPORT.search(self.output()):
            problem = "a report in the log:\n" + self.output()
        return problem
