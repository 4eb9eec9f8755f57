#!/usr/bin/env python3
"""What clients wait for: is each request answered in time, from the first one on?

    tests/recovery/waits.py [NAME ...]

$ROLLCALLD as in crash.py. Each case has a daemon with `oldest: dump`:

manifest cannot be stored: ids are added all the while; none may wait longer than ANSWER_S, what
cannot be taken is refused with `no table free`, and once it can be stored all are taken again.
manifest stored slowly (with --enable-points): while a checkpoint stores it, reads, new connections,
flush_all and a reload go on as they should.
disk hangs (with --enable-points): what waits for a table (`busy`) or a page is refused, others go on, and the
page is read and ids are taken once it does its part again.
first request: whoever can connect is answered, on an empty directory and on one that is loaded.
start that takes long (with --enable-points): nobody can connect, the log and the service manager
are told how far it is, and SIGTERM ends it at once.
stopped at its start: SIGTERM at any moment ends it, and nothing is lost.

Where ids were acknowledged none may be lost by a kill -9. Lines are `ok`, `SKIP`, `FAIL` with the
reason; exit 1 if one failed.
"""
import contextlib
import os
import random
import re
import signal
import socket
import sys
import time

import judge
from victim import Failure, Folder, Victim, protocol, run_cases

VALUES = {"memory": "512MiB", "oldest": "dump", "table_size": "64KiB", "tables": 4,
          "dicts": "64KiB", "sync": "always", "segment": "1MiB", "buffer": "1MiB", "every": "1s",
          "journal": "4MiB"}
ANSWER_S = 10  # a wait for a table ends after 5 s; the rest is for a slow machine
FELT_S = 30  # until writes are refused
AGAIN_S = 30  # until they are taken again: a round that failed is tried again after 10 s
BLOCK = 500  # ids at once
POLL_S = 0.01
SLOW_S = 2  # a manifest takes to be stored
WAIT_S = 5  # the longest wait of a request; the tick adds a second
HANGS_S = 9
TOLD_S = 2.2  # a start that takes 2 s says how far it is
STOPS = 20
REFUSED = b"SERVER_ERROR no table free"
WAITED = b"SERVER_ERROR busy"


class Writer:
    """Adds ids in order; knows which were taken."""

    def __init__(self, daemon):
        self.client = daemon.connect()
        self.client.socket.settimeout(ANSWER_S)
        self.next = 1
        self.taken = []

    def add(self):
        """The answers to a block of new ids that were not taken."""
        block = range(self.next, self.next + BLOCK)
        self.next = block.stop
        self.client.socket.sendall(b"".join(b"incr feed:%d.like %d\r\n" % (one, one) for one in block))
        lines = self.lines(BLOCK)
        if len(lines) != BLOCK:
            raise Failure("%d answers to %d commands" % (len(lines), BLOCK))
        self.taken += [one for one, line in zip(block, lines) if line == b"%d" % one]
        return {line for one, line in zip(block, lines) if line != b"%d" % one}

    def lines(self, count):
        """So many answers; no two pieces of them may be ANSWER_S apart."""
        came = bytearray()
        while came.count(b"\n") < count:
            try:
                piece = self.client.socket.recv(1 << 16)
            except TimeoutError:
                raise Failure("no answer in %d s" % ANSWER_S) from None
            if not piece:
                raise Failure("the connection ended")
            came += piece
        return bytes(came).split(b"\r\n")[:-1]

    def until(self, refused, seconds):
        """Adds until ids are refused, or all of a block are taken. While the disk has not even failed
        they are told to wait: that must end in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            others = self.add()
            if others - {REFUSED, WAITED}:
                raise Failure("refused otherwise: %s" % others)
            if others == {REFUSED} if refused else not others:
                return
            if REFUSED in others:
                time.sleep(POLL_S)
        raise Failure("after %d s new ids are still %s" % (seconds, "taken" if refused else "refused"))


def obstruct(folder):
    """The manifest cannot be stored: where its next one is written there is a directory."""
    os.mkdir(os.path.join(folder.data, "MANIFEST.tmp"))


def clear(folder):
    os.rmdir(os.path.join(folder.data, "MANIFEST.tmp"))


def check(daemon, ids):
    if not ids:
        return
    client = daemon.connect()
    found = client.counters(ids)
    client.socket.close()
    lost = [one for one in ids if found.get(one) != (-1, -1, one, -1)]
    if lost:
        raise Failure("%d of %d ids are lost, the first: %d" % (len(lost), len(ids), lost[0]))


def manifest_cannot_be_stored(folder):
    daemon = start(folder)
    writer = Writer(daemon)
    writer.until(False, FELT_S)
    obstruct(folder)
    try:
        writer.until(True, FELT_S)
        for _ in range(3):  # refused at once, not one by one after a wait
            writer.add()
    finally:
        clear(folder)
    if not daemon.says(r"MANIFEST.*it is tried again"):
        raise Failure("the log does not say why:\n%s" % daemon.output())
    writer.until(False, AGAIN_S)
    return daemon, writer.taken


def manifest_stored_slowly(folder):
    """The bracket in which it is stored takes SLOW_S; no client but flush_all's may notice."""
    with delayed("manifest store", SLOW_S):
        daemon = start(folder)
    writer = Writer(daemon)
    until = time.monotonic() + FELT_S
    while b"STAT dump_files 0" in stats(daemon):  # a first one: from here on the brackets are dumps'
        writer.add()
        if time.monotonic() > until:
            raise Failure("no table leaves memory")
    flushing = connect(daemon)
    reloads = 0
    end = time.monotonic() + 3 * SLOW_S
    while time.monotonic() < end:
        daemon.signal(signal.SIGHUP)
        reloads += 1
        flushing.sendall(b"flush_all\r\n")
        for _ in range(4):  # of both workers
            answered(daemon)
        if flushing.recv(64) not in (b"OK\r\n", b"SERVER_ERROR busy\r\n"):
            raise Failure("flush_all is answered otherwise")
        writer.add()
    until = time.monotonic() + FELT_S
    while "reload: done" not in daemon.output() and time.monotonic() < until:
        time.sleep(POLL_S)
    if "reload: done" not in daemon.output():
        raise Failure("no reload was made")
    if daemon.output().count("reload: done") > reloads:
        raise Failure("more reloads than were asked for")
    return daemon, []


def disk_hangs(folder):
    """Of both kinds of space: first for a manifest, so that no table leaves memory, then for a page."""
    with delayed("manifest store", HANGS_S):
        daemon = start(folder)
    member = b"add liked:%d:u1 0 0 1\r\n1\r\n"
    for line in (b"incr feed:%d.like 7\r\n", member):
        with connect(daemon) as client:
            number = refused_in_time(client, line)
    until = time.monotonic() + 10 * HANGS_S
    with connect(daemon) as client:
        while not re.search(rb"file liked-0-0-\S+ role dump", manifest(folder)):
            add_ids(client, member, number)
            number += BLOCK
            if time.monotonic() > until:
                raise Failure("no table of liked has left memory")
    daemon.kill_now()
    with delayed("cold read", HANGS_S):
        daemon = Victim(folder)
    if first_answer(daemon, b"mn\r\n") != b"MN\r\n":
        raise Failure("mn is not answered")
    for key in (b"feed:1.like", b"liked:1:u1"):
        with connect(daemon) as client, connect(daemon) as other:
            client.sendall(b"get %s\r\n" % key)
            for _ in range(10):
                answered(daemon, b"mn\r\n", b"MN\r\n")
            came = client.recv(64)
            if came != b"SERVER_ERROR disk read failed\r\n":
                raise Failure("%r is answered %r" % (key, came))
            time.sleep(HANGS_S - WAIT_S)
            other.sendall(b"get %s\r\n" % key)
            if not other.recv(64).startswith(b"VALUE"):
                raise Failure("the page has been read, and %r is not answered" % key)
    return daemon, []


def manifest(folder):
    with open(os.path.join(folder.data, "MANIFEST"), "rb") as file:
        return file.read()


def add_ids(client, line, first):
    """Adds a block of ids. Were some refused, and how long did it take?"""
    began = time.monotonic()
    client.sendall(b"".join(line % number for number in range(first, first + BLOCK)))
    came = b""
    while came.count(b"\n") < BLOCK:
        came += client.recv(1 << 16)
    errors = {one for one in came.split(b"\r\n") if b"ERROR" in one}
    if errors - {WAITED}:
        raise Failure("refused otherwise: %s" % errors)
    return bool(errors), time.monotonic() - began


def refused_in_time(client, line):
    """Adds ids until some are refused that have waited as long as one may; the next one."""
    until = time.monotonic() + 10 * HANGS_S
    for first in range(1, 1 << 20, BLOCK):
        refused, took = add_ids(client, line, first)
        if refused and took >= WAIT_S:
            return first + BLOCK
        if time.monotonic() > until:
            break
    raise Failure("nobody has waited for a table")


@contextlib.contextmanager
def delayed(point, seconds):
    """A daemon that is started here takes so long at each of these points."""
    os.environ["ROLLCALL_POINT_DELAY"] = "%s=%dms" % (point, 1000 * seconds)
    try:
        yield
    finally:
        del os.environ["ROLLCALL_POINT_DELAY"]


@contextlib.contextmanager
def service_manager(folder):
    """For a daemon that is started here: the socket it tells its state."""
    path = os.path.join(folder.path, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(path)
        os.chmod(path, 0o777)
        os.environ["NOTIFY_SOCKET"] = path
        try:
            yield channel
        finally:
            del os.environ["NOTIFY_SOCKET"]
            os.unlink(path)


def connect(daemon):
    return socket.create_connection(daemon.address, ANSWER_S)


def stats(daemon):
    with connect(daemon) as client:
        client.sendall(b"stats\r\n")
        came = b""
        while not came.endswith(b"END\r\n"):
            came += client.recv(1 << 16)
        return came


def answered(daemon, line=b"get feed:1\r\n", end=b"END\r\n"):
    """A new connection, and a request, in far less than the disk takes."""
    began = time.monotonic()
    with connect(daemon) as client:
        client.sendall(line)
        came = b""
        while not came.endswith(end):
            came += client.recv(1 << 16)
    took = time.monotonic() - began
    if took > SLOW_S / 2:
        raise Failure("a read took %.1f s" % took)


def first_answer(daemon, line=b"add feed:1.like 0 0 1\r\n7\r\n"):
    """What the first connection that is accepted is told."""
    until = time.monotonic() + FELT_S
    while time.monotonic() < until:
        try:
            with connect(daemon) as client:
                client.sendall(line)
                return client.recv(64)
        except ConnectionRefusedError:
            if daemon.process.poll() is not None:
                break
    raise Failure("nobody can connect:\n%s" % daemon.output())


def first_request(folder):
    taken = []
    for number in range(3):  # empty, then loaded
        with service_manager(folder) as channel:
            daemon = Victim(folder)
            try:
                wanted = b"STORED\r\n" if number == 0 else b"NOT_STORED\r\n"
                came = first_answer(daemon)
                if came != wanted:
                    raise Failure("start %d: the first answer is %r" % (number, came))
                await_state(daemon, channel, "READY=1")
                if "listening on" not in daemon.output():
                    raise Failure("it listens and does not say so")
                writer = Writer(daemon)
                writer.next = 2 + number * BLOCK
                writer.add()
                taken += writer.taken
            except BaseException:
                daemon.kill()
                raise
            if number < 2:
                daemon.kill_now()
    return daemon, taken


def await_state(daemon, channel, wanted):
    """Waits until the service manager has been told this; until then nobody can have connected."""
    channel.settimeout(FELT_S)
    told = []
    while not told or wanted not in told[-1]:
        try:
            told.append(channel.recv(4096).decode())
        except TimeoutError:
            raise Failure("nobody was told %s, but %s:\n%s" % (wanted, told, daemon.output())) from None
    return told


def start_that_takes_long(folder):
    daemon = start(folder)
    writer = Writer(daemon)
    for _ in range(10):
        writer.add()
    daemon.signal(signal.SIGUSR2)  # a table to load
    until = time.monotonic() + FELT_S
    while b"STAT checkpoints 0" in stats(daemon) and time.monotonic() < until:
        time.sleep(POLL_S)
    writer.add()  # and something to replay
    daemon.kill_now()
    for state in ("STATUS=loading: ", "STATUS=replaying: "):
        with delayed("recovery look", TOLD_S), service_manager(folder) as channel:
            daemon = Victim(folder)
            try:
                if "EXTEND_TIMEOUT_USEC=" not in await_state(daemon, channel, state)[-1]:
                    raise Failure("the service manager is told no time")
                try:
                    connect(daemon).close()
                    raise Failure("it takes clients that it does not serve")
                except ConnectionRefusedError:
                    pass
                if daemon.signal(signal.SIGTERM) and daemon.process.wait(FELT_S) != 0:
                    raise Failure("it did not end well:\n%s" % daemon.output())
            finally:
                daemon.kill()
    with delayed("recovery look", TOLD_S), service_manager(folder) as channel:
        daemon = Victim(folder)
        await_state(daemon, channel, "READY=1")
        answered(daemon)
    return daemon, writer.taken


def stopped_at_its_start(folder):
    daemon = start(folder)
    began = time.monotonic()
    writer = Writer(daemon)
    for _ in range(20):
        writer.add()
    daemon.kill_now()
    probe = start(folder)
    takes = time.monotonic() - began
    probe.kill_now()
    rng = random.Random(1)
    for _ in range(STOPS):
        daemon = Victim(folder)
        time.sleep(rng.uniform(0, min(takes, 0.1)))
        daemon.signal(signal.SIGTERM)
        try:
            code = daemon.process.wait(FELT_S)
        finally:
            daemon.kill()
        if code not in (0, -signal.SIGTERM):  # the latter: before it was main()'s
            raise Failure("it ended with %d:\n%s" % (code, daemon.output()))
    return start(folder), writer.taken


def start(folder):
    daemon = Victim(folder)
    daemon.serve()
    return daemon


CASES = (manifest_cannot_be_stored, manifest_stored_slowly, disk_hangs, first_request, start_that_takes_long,
         stopped_at_its_start)
WITH_POINTS = (manifest_stored_slowly, disk_hangs, start_that_takes_long)


def has_points(daemon):
    """Was the daemon built with --enable-points?"""
    with open(daemon, "rb") as file:
        return b"ROLLCALL_POINT_DELAY" in file.read()


def run(case):
    """Prints how it went; false: it failed."""
    name = case.__name__.replace("_", " ")
    if case in WITH_POINTS and not has_points(os.environ["ROLLCALLD"]):
        print("SKIP: %s: the daemon was built without --enable-points" % name)
        return True
    folder = Folder()
    daemon = None
    try:
        folder.configure(VALUES)
        with open(folder.config, "a", encoding="ascii") as file:
            file.write("flush-all: yes\n")
        daemon, taken = case(folder)
        check(daemon, taken)
        daemon.kill_now()
        daemon = start(folder)
        check(daemon, taken)
        problem = daemon.stop(False)
        if problem:
            raise Failure(problem)
        print("ok   " + name)
    except (Failure, judge.Lost, protocol.Mismatch, OSError) as problem:
        folder.keep()
        print("FAIL %s: %s\n    kept: %s" % (name, problem, folder.path))
        return False
    finally:
        if daemon is not None:
            daemon.kill()
        sys.stdout.flush()
        folder.remove()
    return True


def main():
    return run_cases(CASES, run)


if __name__ == "__main__":
    sys.exit(main())
