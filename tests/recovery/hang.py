#!/usr/bin/env python3
"""Does nobody who reads wait for a disk, however long it hangs?

    tests/recovery/hang.py [--directory DIR] [--seconds S]

$ROLLCALLD as in crash.py; $CC builds hang.c. Under each sync setting a daemon of two workers writes
into a directory of which one kind of file hangs after the other: segments of the journal, table files,
the manifest, the directory itself, each in its writes and in its syncs. One space dumps its tables. While
one hangs, and it does until all of this has happened, changes are made, tables open and are dumped, a
checkpoint is asked for, the configuration is read again, the second time every space is emptied, and

- connections on every worker that only read are answered again and again, from memory and in order,
  and so is `stats`, each in READ_S: whoever waited for the disk would not be answered before it goes on,
  and whoever waited for as long as a request may, not before that;
- new connections are served likewise.

Then it goes on: every change that waits is answered, as done or as refused for what hangs (may_refuse),
the configuration has been read, and what was acknowledged is there, after kill -9 and a start too; what was
emptied is not. Nothing is refused while nothing hangs. With the
journal hanging for longer than a change may wait, one that comes then is refused (`journal busy`). Spaces
are emptied at once, but while a manifest of dumps hangs: then flush_all and the reload wait, and a
flush_all that waits too long is refused and does nothing.

With --seconds each hangs for so long at least, and the longest answer of a reader is held against
20 ms: for a quiet machine. Prints the longest answers, and how many changes were refused by space and
reason; exits 1 at the first thing that is wrong.
"""
import argparse
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import judge
from tally import Tally
from victim import Failure, Folder, Victim, protocol

HANG_BYTES = 4096
READERS = 8  # connections are dealt to the workers in turn
FLUSH_S = 1
TRIES = 5
READS = 50  # of each reader, twice while it hangs
ANSWER_S = 30  # nothing that is measured: only a bound
READ_S = 0.9  # a read: less than any wait of a request has (the shortest: 1 s, for room in the journal)
LATE_S = 0.020
IDS = 2000
VALUE = b"7"  # of what readers read
STEP = 1000  # new ids of one hang: more than a table of them
BLOCK = 100  # keys of one get

CONFIG = """threads: 2
memory: 256MiB
requests-per-turn: %(turn)d
flush-all: yes
data: %(directory)s
journal: {sync: %(sync)s, segment: 1MiB, buffer: 1MiB}
checkpoint: {every: 1h, journal: 64GiB}
spaces:
  feed:
    kind: counter
    slots: {like: 63, b: 63, c: 63, d: 63, e: 63, f: 63, g: 63, h: 63}
    role: store
    oldest: refuse
    table-size: 64KiB
    tables: 100
  rolled:
    kind: counter
    slots: {like: 63, b: 63, c: 63, d: 63, e: 63, f: 63, g: 63, h: 63}
    role: store
    oldest: dump
    table-size: 64KiB
    tables: 3
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
BUSY, JOURNAL_BUSY, NO_TABLE = b"SERVER_ERROR busy", b"SERVER_ERROR journal busy", b"SERVER_ERROR no table free"


def may_refuse(part):
    """Space -> why its changes may be refused while such files hang: all of them, as only time says how many. `feed`
    always has a table free: sixteen changes at most come between two flush_all, each of some three tables, of its
    hundred. It is opened by the keeper, though, and while that is in the bracket that stores the manifest, who waits
    for a table for longer than a request may is `busy`. `rolled` has no table free while a dump hangs, which needs each
    of these files: who waits for one in vain is `busy`, and who is ahead may find the room apart full. No dictionary is
    ever full."""
    journal = {JOURNAL_BUSY} if part in ("/journal-", "") else set()
    bracket = {BUSY} if part in ("/MANIFEST", "") else set()
    return {b"feed": journal | bracket, b"rolled": journal | {BUSY, NO_TABLE}}


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
        began = time.monotonic()
        self.daemon = daemon
        self.longest = 0.0
        try:
            self.client = daemon.connect()
        except OSError as problem:
            raise Failure("a connection is not taken: %s" % problem) from None
        self.client.socket.settimeout(ANSWER_S)
        self.took(began)

    def took(self, began):
        took = time.monotonic() - began
        self.longest = max(self.longest, took)
        if took > READ_S:
            raise Failure("a reader waited for %.1f s\n%s" % (took, self.daemon.output()))

    def ask(self, request):
        began = time.monotonic()
        try:
            answer = self.client.ask(request)
        except (OSError, judge.Lost) as problem:
            raise Failure("%r is not answered: %s" % (request, problem)) from None
        self.took(began)
        return answer

    def read(self, number, values):
        """Which of the values it has; None: there is none."""
        answer = self.ask(b"get other:%d.like\r\n" % number)
        for value in values:
            if answer == get_answer(b"other", number, value):
                return value
        raise Failure("a read was answered %r" % answer)


def get_answer(space, number, value):
    if value is None:
        return b"END\r\n"
    return b"VALUE %s:%d.like 0 %d\r\n%s\r\nEND\r\n" % (space, number, len(value), value)


class Run:
    """One daemon, one sync setting."""

    def __init__(self, options, sync):
        self.options, self.sync = options, sync
        self.folder = Folder(options.directory)
        self.hang = Hang(self.folder)
        self.turn = 100
        self.configure()
        self.daemon = None
        self.next = 1000
        self.readers = []
        self.rounds = 0
        self.values = {VALUE}  # that a reader may find
        self.read_last = VALUE
        self.acknowledged = {b"feed": [], b"rolled": []}
        self.emptied = {b"feed": [], b"rolled": []}
        self.tally = Tally()  # of the changes of each space
        self.done = self.waits = False  # the flush_all of this hang, while it lasted; and the reload
        self.longest = 0.0

    def fill(self, may=frozenset()):
        """What readers read; and tables of `rolled` leave memory."""
        client = self.daemon.connect()
        for number in range(1, IDS, 100):
            client.ask(b"set other:%d.like 0 0 1\r\n%s\r\n" % (number, VALUE), (b"STORED\r\n",))
        end = time.monotonic() + ANSWER_S
        while client.stats(b"")["dump_files"] == "0":
            self.settle(*self.change(b"rolled"), may)
            if time.monotonic() > end:
                raise Failure("no table leaves memory")
        client.socket.close()

    def configure(self):
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(CONFIG % {"directory": self.folder.data, "sync": self.sync, "turn": self.turn})

    def start(self):
        saved = dict(os.environ)
        os.environ.update(self.hang.environment())
        try:
            self.daemon = Victim(self.folder)
        finally:
            os.environ.clear()
            os.environ.update(saved)
        self.daemon.serve()

    def until(self, what, holds):
        """Readers read on meanwhile."""
        end = time.monotonic() + ANSWER_S
        while not holds():
            if not self.daemon.alive() or time.monotonic() > end:
                raise Failure("%s: not within %d s\n%s" % (what, ANSWER_S, self.daemon.output()))
            self.read()
            time.sleep(0.001)

    # ---- changes that nobody waits for yet ----

    def change(self, space):
        """A connection with commands on their way: new ids, that open tables."""
        numbers = range(self.next, self.next + STEP)
        self.next += STEP
        changer = socket.create_connection(self.daemon.address, ANSWER_S)
        changer.sendall(b"".join(b"set %s:%d.like 0 0 1\r\n3\r\n" % (space, n) for n in numbers))
        return changer, space, numbers

    def settle(self, changer, space, numbers, may=frozenset()):
        """What each of them came to; may: the reasons for which they may be refused."""
        data = b""
        while data.count(b"\r\n") < len(numbers):
            piece = changer.recv(1 << 16)
            if not piece:
                raise Failure("a connection was closed after %d answers" % data.count(b"\r\n"))
            data += piece
        changer.close()
        for number, answer in zip(numbers, data.split(b"\r\n")):
            stored = answer == b"STORED"
            if not self.tally.note(space.decode(), stored, answer, may):
                raise Failure("set %s:%d was answered %r" % (space.decode(), number, answer))
            if stored:
                self.acknowledged[space].append(number)

    def reload(self):
        self.turn += 1
        self.configure()
        self.daemon.signal(signal.SIGHUP)

    def reloads(self):
        return self.daemon.output().count("reload: done")

    # ---- one hang ----

    def read(self):
        """A round of the readers."""
        for i, reader in enumerate(self.readers):
            number = 1 + 100 * ((self.rounds + i) % (IDS // 100))
            self.read_last = reader.read(number, self.values)
        self.rounds += 1

    def read_on(self):
        end = time.monotonic() + self.options.seconds / 2
        rounds = self.rounds + READS
        while self.rounds < rounds or time.monotonic() < end:
            self.read()
        for reader in self.readers:
            reader.ask(b"stats\r\n")
        for _ in self.readers:  # dealt to the workers in turn, too
            new = Reader(self.daemon)
            new.read(1, self.values)
            new.client.socket.close()
            self.longest = max(self.longest, new.longest)

    def expect_busy(self):
        """The journal hangs: a change is refused within a bound, on a connection of its own."""
        end = time.monotonic() + ANSWER_S
        while time.monotonic() < end:
            with socket.create_connection(self.daemon.address, ANSWER_S) as client:
                client.sendall(b"incr other:1.like 0\r\n")
                if not self.answered(client, 0.1):
                    continue  # it waits for the journal
                answer = client.recv(100)
                if answer != b"SERVER_ERROR journal busy\r\n":
                    raise Failure("a change was answered %r while the journal hangs" % answer)
                return
        raise Failure("the journal hangs, and a change is not refused in %d s" % ANSWER_S)

    def answered(self, client, seconds=0):
        """Is there an answer within so long? Readers read on."""
        end = time.monotonic() + seconds
        while not select.select([client], [], [], 0)[0]:
            if time.monotonic() >= end:
                return False
            self.read()
        return True

    def flush(self):
        """Empties every space in the midst; the answer comes later. None: it was refused, as one is that
        waits too long; that takes 5 s, so it is seen under one sync setting only."""
        flusher = socket.create_connection(self.daemon.address, ANSWER_S)
        flusher.sendall(b"flush_all\r\n")
        self.values = {VALUE, None}
        end = time.monotonic() + FLUSH_S
        while self.read_last is not None and time.monotonic() < end:
            self.read()
        if self.read_last is not None and self.sync == "everysec":
            self.until("flush_all", lambda: self.read_last is None or self.answered(flusher))
            self.read()
        if self.read_last is None:
            self.values = {None}
        elif self.sync == "everysec":
            answer = flusher.recv(100)
            if answer != b"SERVER_ERROR busy\r\n":
                raise Failure("flush_all was answered %r while a file hangs" % answer)
            flusher.close()
            self.values = {VALUE}
            return None
        return flusher

    def flushed(self, flusher):
        """Nothing hangs any more: every space is empty, and what comes next is there."""
        self.values = {VALUE, None}
        self.until("flush_all is answered", lambda: self.answered(flusher))
        if flusher.recv(100) != b"OK\r\n":
            raise Failure("flush_all was not obeyed")
        flusher.close()
        self.values = {None}
        self.read()

    def provoke(self, part, calls, flushes):
        """Whatever touches the disk, while it hangs. The flush_all that is not answered yet; None."""
        reloads = self.reloads()
        self.until("%s %s hangs" % (part, calls), lambda: self.hang.waiting() > 0)
        self.daemon.signal(signal.SIGUSR2)
        self.reload()
        self.read_on()
        if part == "/journal-" and ("w" in calls or self.sync == "always"):
            self.expect_busy()
        flusher = self.flush() if flushes else None
        self.read_on()
        self.done = self.read_last is None
        self.waits = not self.done and self.reloads() == reloads
        if self.hang.waiting() == 0:
            raise Failure("%s %s did not hang" % (part, calls))
        return flusher

    def one(self, part, calls, flushes):
        self.readers = [Reader(self.daemon) for _ in range(READERS)]
        reloads = self.reloads()
        self.hang.arm(self.folder.data + part if part in ("", "/MANIFEST") else part, calls)
        before = {space: list(numbers) for space, numbers in self.acknowledged.items()}
        changed = [self.change(space) for space in (b"feed", b"rolled", b"rolled")]
        flusher = self.provoke(part, calls, flushes)
        self.hang.disarm()
        if flusher:
            self.flushed(flusher)
        may = may_refuse(part)
        for changer, space, numbers in changed:
            self.settle(changer, space, numbers, may[space])
        self.until("a reload", lambda: self.reloads() > reloads)
        for reader in self.readers:
            self.longest = max(self.longest, reader.longest)
            reader.client.socket.close()
        self.readers = []
        if flusher:
            self.refill(before)

    def refill(self, before):
        """What was there before every space was emptied is not, what was on its way may be, and what comes
        now is."""
        for space, numbers in before.items():
            self.emptied[space] += numbers
            self.acknowledged[space] = []
        self.values = {VALUE}
        self.fill()
        self.settle(*self.change(b"feed"))

    # ---- all ----

    def check(self, words):
        client = self.daemon.connect()
        for held, ids in ((True, self.acknowledged), (False, self.emptied)):
            for space, numbers in ids.items():
                for at in range(0, len(numbers), BLOCK):
                    part = numbers[at:at + BLOCK]
                    answer = client.ask(b"get" + b"".join(b" %s:%d.like" % (space, n) for n in part) + b"\r\n")
                    wanted = b"".join(get_answer(space, n, b"3")[:-5] for n in part if held) + b"END\r\n"
                    if answer != wanted:
                        raise Failure("%s of %s:%d to %d, which were %s, there is %r" % (
                            words, space.decode(), part[0], part[-1],
                            "acknowledged" if held else "emptied", answer[:200]))
        client.socket.close()

    def again(self):
        """All is there, and after kill -9 and a start."""
        self.check("before the kill")
        self.daemon.kill_now()
        self.start()
        self.check("after it")

    def empty(self, part, calls):
        """In the bracket of a checkpoint flush_all waits, and so does a reload. It is there for the manifest
        of dumps; the round in which a file hangs may have been in it already, or have found none."""
        for _ in range(TRIES):
            self.one(part, calls, True)
            if self.waits if part == "/MANIFEST" else self.done:
                return
        raise Failure("%s %s hangs: flush_all and reloads %s" % (
            part, calls, "never wait" if part == "/MANIFEST" else "wait"))

    def run(self):
        self.start()
        self.fill()
        for part, calls in JOURNAL + OTHERS:
            self.one(part, calls, False)
        self.again()
        for part, calls in JOURNAL + OTHERS:
            self.empty(part, calls)
        self.again()
        problem = self.daemon.stop(False)
        if problem:
            raise Failure(problem)
        if self.options.seconds > 0 and self.longest > LATE_S:
            raise Failure("the longest read took %.1f ms" % (self.longest * 1000))
        print("ok   %s: %d changes of the last hang acknowledged, the longest read %.1f ms; of all %s" % (
            self.sync, sum(map(len, self.acknowledged.values())), self.longest * 1000, self.tally))

    def end(self):
        self.hang.disarm()
        if self.daemon:
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
            print("FAIL %s: %s\n%s" % (sync, problem, run.daemon.output()[-2000:] if run.daemon else ""))
            return 1
        finally:
            run.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
