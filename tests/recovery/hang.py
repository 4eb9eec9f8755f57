#!/usr/bin/env python3
"""Does nobody who reads wait for a disk, however long it hangs?

    tests/recovery/hang.py [--directory DIR] [--seconds S]

$ROLLCALLD as in crash.py; $CC builds hang.c. Under each sync setting a daemon of two workers writes
into a directory of which one kind of file hangs after the other: segments of the journal, table files,
the manifest, the directory itself, each in its writes and in its syncs. While one hangs, and it does
until all of this has happened, changes are made, a table opens, a checkpoint is asked for, the
configuration is read again, every space is emptied, and

- connections on every worker that only read are answered again and again, from memory and in order,
  and so is `stats`: whoever waited for the disk would not be answered before it goes on;
- a new connection is served.

Then it goes on: every change that waits is answered, as done or as refused, and what was
acknowledged is there, after kill -9 and a start too. With the journal hanging for longer than a
change may wait, one that comes then is refused (`journal busy`).

With --seconds each hangs for so long at least, and the longest answer of a reader is held against
20 ms: for a quiet machine. Prints the longest answers; exits 1 at the first thing that is wrong.
"""
import argparse
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import judge
from victim import Failure, Folder, Victim, protocol

HANG_BYTES = 4096
READERS = 8  # connections are dealt to the workers in turn
READS = 200  # of each reader while it hangs
ANSWER_S = 30  # nothing that is measured: only a bound
LATE_S = 0.020
IDS = 2000
STEP = 1000  # new ids of one hang: some open tables

CONFIG = """threads: 2
memory: 64MiB
requests-per-turn: %(turn)d
flush-all: yes
data: %(directory)s
journal: {sync: %(sync)s, segment: 1MiB, buffer: 1MiB}
checkpoint: {every: 1h, journal: 64GiB}
spaces:
  feed:
    kind: counter
    slots: {like: 20}
    role: store
    oldest: refuse
    table-size: 64KiB
    tables: 60
  other:
    kind: counter
    slots: {like: 20}
    role: store
    oldest: refuse
    table-size: 64KiB
    tables: 2
"""
# what hangs: part of the path, calls
JOURNAL = (("/journal-", "w"), ("/journal-", "s"), ("/journal-", "ws"))
OTHERS = ((".table", "w"), (".table", "s"), ("/MANIFEST", "w"), ("/MANIFEST", "s"), ("", "s"))


class Hang:
    """What hang.c shares."""

    def __init__(self, folder):
        self.path = os.path.join(folder.path, "hang")
        self.library = os.path.join(folder.path, "hang.so")
        with open(self.path, "wb") as file:
            file.truncate(HANG_BYTES)
        os.chmod(self.path, 0o666)
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hang.c")
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run(compiler + ["-shared", "-fPIC", "-O1", "-o", self.library, source, "-ldl"],
                       check=True)
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), HANG_BYTES)

    def arm(self, part, calls):
        self.memory[8:16] = calls.encode().ljust(8, b"\0")
        self.memory[16:1040] = part.encode().ljust(1024, b"\0")
        struct.pack_into("=I", self.memory, 0, 1)

    def disarm(self):
        struct.pack_into("=I", self.memory, 0, 0)

    def waiting(self):
        return struct.unpack_from("=I", self.memory, 4)[0]

    def environment(self):
        """For the daemon. A sanitizer's library would come first, and need not here."""
        options = os.environ.get("ASAN_OPTIONS", "")
        return {"LD_PRELOAD": self.library, "ROLLCALL_HANG": self.path,
                "ASAN_OPTIONS": options + ":verify_asan_link_order=0"}


class Reader:
    """A connection that asks for what is in memory, or for figures, and nothing else."""

    def __init__(self, daemon):
        self.client = daemon.connect()
        self.client.socket.settimeout(ANSWER_S)
        self.longest = 0.0

    def read(self, number, value):
        began = time.monotonic()
        try:
            answer = self.client.ask(b"get other:%d.like\r\n" % number)
        except (OSError, judge.Lost) as problem:
            raise Failure("a read is not answered while a file hangs: %s" % problem) from None
        self.longest = max(self.longest, time.monotonic() - began)
        wanted = b"VALUE other:%d.like 0 %d\r\n%s\r\nEND\r\n" % (number, len(value), value)
        if answer != wanted:
            raise Failure("a read was answered %r" % answer)


class Run:
    """One daemon, one sync setting."""

    def __init__(self, options, sync):
        self.options, self.sync = options, sync
        self.folder = Folder(options.directory)
        self.hang = Hang(self.folder)
        self.turn = 100
        self.configure()
        self.daemon = self.start()
        self.next = 1000
        self.acknowledged = {}
        self.longest = 0.0
        writer = self.daemon.connect()
        for number in range(1, IDS, 100):
            writer.ask(b"set other:%d.like 0 0 1\r\n7\r\n" % number, (b"STORED\r\n",))
        writer.socket.close()

    def configure(self):
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(CONFIG % {"directory": self.folder.data, "sync": self.sync, "turn": self.turn})

    def start(self):
        saved = dict(os.environ)
        os.environ.update(self.hang.environment())
        try:
            daemon = Victim(self.folder)
        finally:
            os.environ.clear()
            os.environ.update(saved)
        daemon.serve()
        return daemon

    def until(self, what, holds):
        end = time.monotonic() + ANSWER_S
        while not holds():
            if not self.daemon.alive() or time.monotonic() > end:
                raise Failure("%s: not within %d s\n%s" % (what, ANSWER_S, self.daemon.output()))
            time.sleep(0.001)

    # ---- changes that nobody waits for yet ----

    def change(self):
        """A connection with commands on their way: increments, and new ids that open tables."""
        numbers = range(self.next, self.next + STEP)
        self.next += STEP
        changer = socket.create_connection(self.daemon.address, ANSWER_S)
        changer.sendall(b"".join(b"set feed:%d.like 0 0 1\r\n3\r\n" % n for n in numbers))
        return changer, numbers

    def settle(self, changer, numbers):
        """What each of them came to."""
        data = b""
        while data.count(b"\r\n") < len(numbers):
            piece = changer.recv(1 << 16)
            if not piece:
                raise Failure("a connection was closed after %d answers" % data.count(b"\r\n"))
            data += piece
        changer.close()
        refused = 0
        for number, answer in zip(numbers, data.split(b"\r\n")):
            if answer == b"STORED":
                self.acknowledged[number] = b"3"
            elif answer.startswith(b"SERVER_ERROR "):
                refused += 1
            else:
                raise Failure("set was answered %r" % answer)
        return refused

    def reload(self):
        self.turn += 1
        self.configure()
        self.daemon.signal(signal.SIGHUP)

    def flush(self):
        """Empties every space in the midst; its answer comes later."""
        flusher = socket.create_connection(self.daemon.address, ANSWER_S)
        flusher.sendall(b"flush_all\r\n")
        return flusher

    # ---- one hang ----

    def provoke(self):
        """Whatever touches the disk, at once."""
        changed = [self.change(), self.change()]
        self.daemon.signal(signal.SIGUSR2)
        self.reload()
        return changed

    def read_on(self, readers):
        began = time.monotonic()
        rounds = 0
        while rounds < READS or time.monotonic() < began + self.options.seconds:
            for i, reader in enumerate(readers):
                reader.read(1 + 100 * ((rounds + i) % (IDS // 100)), b"7")
            rounds += 1
        for reader in readers:
            reader.client.stats(b"")
        self.longest = max([self.longest] + [reader.longest for reader in readers])

    def expect_busy(self):
        """The journal hangs: a change is refused within a bound, on a connection of its own."""
        end = time.monotonic() + ANSWER_S
        while time.monotonic() < end:
            with socket.create_connection(self.daemon.address, ANSWER_S) as client:
                client.sendall(b"incr other:1.like 0\r\n")
                client.settimeout(0.1)
                try:
                    answer = client.recv(100)
                except socket.timeout:
                    continue  # it waits for the journal
                if answer != b"SERVER_ERROR journal busy\r\n":
                    raise Failure("a change was answered %r while the journal hangs" % answer)
                return
        raise Failure("the journal hangs, and a change is not refused in %d s" % ANSWER_S)

    def one(self, part, calls):
        readers = [Reader(self.daemon) for _ in range(READERS)]
        self.hang.arm(self.folder.data + part if part in ("", "/MANIFEST") else part, calls)
        changed = self.provoke()
        self.until("%s %s hangs" % (part, calls), lambda: self.hang.waiting() > 0)
        self.read_on(readers)
        if part == "/journal-" and ("w" in calls or self.sync == "always"):
            self.expect_busy()
        self.read_on(readers)
        if self.hang.waiting() == 0:
            raise Failure("%s %s did not hang" % (part, calls))
        self.hang.disarm()
        refused = sum(self.settle(*one) for one in changed)
        for reader in readers:
            reader.client.socket.close()
        return refused

    # ---- all ----

    def check(self, words):
        client = self.daemon.connect()
        for number, value in self.acknowledged.items():
            answer = client.ask(b"get feed:%d.like\r\n" % number)
            if answer != b"VALUE feed:%d.like 0 1\r\n%s\r\nEND\r\n" % (number, value):
                raise Failure("%s feed:%d was acknowledged and is %r" % (words, number, answer))
        client.socket.close()

    def emptied(self):
        """The journal hangs while every space is emptied: its worker reads on."""
        readers = [Reader(self.daemon) for _ in range(READERS)]
        self.hang.arm("/journal-", "w")
        changed = self.change()
        self.until("the journal hangs", lambda: self.hang.waiting() > 0)
        flusher = self.flush()
        client = readers[0].client
        self.until("flush_all", lambda: client.ask(b"get other:1.like\r\n") == b"END\r\n")
        for _ in range(READS):
            for reader in readers:
                if reader.client.ask(b"get other:1.like\r\n") != b"END\r\n":
                    raise Failure("a space was emptied, and something is there")
        self.hang.disarm()
        self.settle(*changed)
        if flusher.recv(100) != b"OK\r\n":
            raise Failure("flush_all was not obeyed")
        flusher.close()

    def run(self):
        refused = 0
        for part, calls in JOURNAL + OTHERS:
            refused += self.one(part, calls)
        self.check("before the kill:")
        self.daemon.kill_now()
        self.daemon = self.start()
        self.check("after it:")
        self.emptied()
        problem = self.daemon.stop(False)
        if problem:
            raise Failure(problem)
        if self.options.seconds > 0 and self.longest > LATE_S:
            raise Failure("the longest read took %.1f ms" % (self.longest * 1000))
        print("ok   %s: %d changes acknowledged, %d refused, the longest read %.1f ms" % (
            self.sync, len(self.acknowledged), refused, self.longest * 1000))

    def end(self):
        self.hang.disarm()
        self.daemon.kill()
        self.folder.remove()


def main():
    parser = argparse.ArgumentParser(description="See the top of this file.")
    parser.add_argument("--directory", help="where the data directories are made")
    parser.add_argument("--seconds", type=float, default=0, help="each hangs for so long at least")
    options = parser.parse_args()
    for sync in ("never", "everysec", "always"):
        run = Run(options, sync)
        try:
            run.run()
        except (Failure, judge.Lost, protocol.Mismatch, OSError) as problem:
            print("FAIL %s: %s\n%s" % (sync, problem, run.daemon.output()[-2000:]))
            return 1
        finally:
            run.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
