#!/usr/bin/env python3
"""Many more dumped tables than descriptors: does everything still work, and are clients let in?

    tests/recovery/many.py [--tables N] [--descriptors N] [--clients N] [--seed N] [--directory DIR]

$ROLLCALLD as in crash.py. One daemon whose hard limit of open files is --descriptors, which it may
not raise, and a space with the smallest tables:

1. As many clients connect as are let in, and more, which are refused in words; at least --clients
   must be let in. They stay.
2. Ids are written until --tables tables are dumped.
3. Each client reads a part of all ids, at the same time as the others; then a further id is written.
4. Ids of dumped tables are changed until files were merged. A checkpoint is made.
5. kill -9, a start, a clean stop, a start: each time all clients come back and all is read again.

No dump, merge or checkpoint may fail, no new id may be refused, and the process never has more
descriptors than --descriptors. Prints what each step took. `make check-long` ($ROLLCALL_TEST_LONG) has
5,000 tables at the usual limit of 1,024. What it takes grows with their square, as each dump stores a
manifest of all files: --tables 20000 would write some 45 GB and compute for more than ten minutes.
"""
import argparse
import concurrent.futures
import os
import random
import signal
import socket
import sys
import time

import judge
from victim import Failure, Folder, Victim, limited_program, protocol

SLOTS = 8  # wide ones: few ids fill a table
KEYS = 100  # of one get
BLOCK = 500  # commands sent together
SHORT = {"tables": 300, "descriptors": 120, "clients": 50}
LONG = {"tables": 5000, "descriptors": 1024, "clients": 500}
REFUSED = b"ERROR Too many open connections\r\n"
BUSY = b"SERVER_ERROR busy"
SURPLUS = 20  # clients beyond those that are let in
CHANGED = 8  # tables whose ids are changed
READERS = 8  # clients that read at the same time
WAIT_S = 120  # for a dump, a merge, a checkpoint
POLL_S = 0.01

CONFIG = """threads: 2
memory: 2GiB
max-connections: 1000
data: %(directory)s
journal: {segment: 64MiB}
cold: {cache: 1MiB, threads: 4}
spaces:
  feed:
    kind: counter
    slots: {%(slots)s}
    role: store
    oldest: dump
    table-size: 64KiB
    tables: 8
    late-room: 0.1
"""


class Limited(Victim):
    """A daemon with so many descriptors, hard, and no right to raise that."""

    def __init__(self, folder, descriptors):
        before = os.environ.get("ROLLCALLD")
        os.environ["ROLLCALLD"] = limited_program(folder, descriptors, descriptors)
        try:
            super().__init__(folder)
        finally:
            os.environ.pop("ROLLCALLD")
            if before:
                os.environ["ROLLCALLD"] = before


def let_in(client):
    """Whether a connection is served; else it must have been refused in words."""
    try:
        client.ask(b"version\r\n", (b"\r\n",))
        return True
    except judge.Lost as problem:
        if REFUSED.strip().decode() not in str(problem):
            raise Failure("a client is not refused in words: %s" % problem) from None
        client.socket.close()
        return False


class Many:
    def __init__(self, options):
        self.options = options
        self.rng = random.Random(options.seed)
        self.folder = Folder(options.directory)
        with open(self.folder.config, "w", encoding="ascii") as file:
            slots = ", ".join("%s: 63" % chr(ord("a") + i) for i in range(SLOTS))
            file.write(CONFIG % {"directory": self.folder.data, "slots": slots})
        self.last = 0  # id written
        self.added = {}  # id -> what was added later
        self.daemon = None
        self.control = None
        self.clients = []
        self.most = 0  # descriptors seen

    def value(self, one):
        return one * 7 + 1 + self.added.get(one, 0)

    # ---- steps ----

    def start(self):
        self.daemon = Limited(self.folder, self.options.descriptors)
        took = self.daemon.serve()
        self.control = self.daemon.connect()
        return "served after %.2f s" % took

    def come_in(self):
        """All that are let in, and some more."""
        refused = 0
        self.clients = []
        while refused < SURPLUS:
            client = self.daemon.connect()
            if let_in(client):
                self.clients.append(client)
            else:
                refused += 1
        if len(self.clients) < self.options.clients:
            raise Failure("%d clients are let in, not %d" % (
                len(self.clients), self.options.clients))
        return "%d clients, %d of %d descriptors" % (
            len(self.clients), self.descriptors(), self.options.descriptors)

    def figures(self):
        return {name: int(value) for name, value in self.control.stats(b"").items()
                if value.isdigit()}

    def descriptors(self):
        count = len(os.listdir("/proc/%d/fd" % self.daemon.process.pid))
        if count > self.options.descriptors:
            raise Failure("%d descriptors are open" % count)
        self.most = max(self.most, count)
        return count

    def resident(self):
        with open("/proc/%d/status" % self.daemon.process.pid, encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["VmRSS"].split()[0]) // 1024

    def check(self):
        figures = self.figures()
        for name in ("dump_failures", "checkpoint_failures", "cold_failed", "cold_bad_pages"):
            if figures.get(name, 0):
                raise Failure("%s: %d\n%s" % (name, figures[name], self.daemon.output()))
        self.descriptors()
        return figures

    def add(self, client, ids, amount):
        """incr of each; amount(id) is added, and the answer must be the sum. What is refused as
        there is no room for changes before a merge ends is sent again."""
        while ids:
            request = b"".join(b"incr feed:%d.a %d\r\n" % (one, amount(one)) for one in ids)
            client.socket.sendall(request)
            data = bytearray()
            while data.count(b"\n") < len(ids):
                piece = client.socket.recv(1 << 18)
                if not piece:
                    raise Failure("closed while ids were written")
                data += piece
            busy = []
            for one, line in zip(ids, data.split(b"\r\n")):
                if line == BUSY:
                    busy.append(one)
                elif line != b"%d" % self.value(one):
                    raise Failure("incr feed:%d.a: %r" % (one, line))
            ids = busy

    def write(self, count):
        ids = range(self.last + 1, self.last + 1 + count)
        self.last += count
        self.add(self.control, ids, self.value)

    def dump(self):
        began = dumps = 0
        memory = self.resident()
        while dumps < self.options.tables:
            for _ in range(10):
                self.write(BLOCK)
            dumps = self.check()["dump_files"]
            if self.options.tables > 2000 and dumps // 1000 > began:
                began = dumps // 1000
                print("  %d tables, %d MiB, %.1f s" % (
                    dumps, self.resident(), time.monotonic() - self.began), flush=True)
        return "%d ids, %d tables, %d MiB more resident" % (
            self.last, dumps, self.resident() - memory)

    def read(self, client, ids):
        for begin in range(0, len(ids), KEYS):
            part = ids[begin:begin + KEYS]
            answer = client.ask(b"get" + b"".join(b" feed:%d.a" % one for one in part) + b"\r\n")
            lines = answer.split(b"\r\n")
            right = []
            for one in part:
                value = b"%d" % self.value(one)
                right += [b"VALUE feed:%d.a 0 %d" % (one, len(value)), value]
            if lines[:-2] != right:
                raise Failure("ids from %d are not as they were written: %r" % (
                    part[0], answer[:200]))

    def read_all(self):
        """Each client a part of them: one of each table, and all of some tables."""
        ids = list(range(1, self.last + 1))
        step = max(1, len(ids) // (100 * self.options.tables))
        chosen = ids[::step]
        parts = [chosen[i::len(self.clients)] for i in range(len(self.clients))]
        before = self.figures()
        with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
            for done in [pool.submit(self.read, *each) for each in zip(self.clients, parts)]:
                done.result()
        after = self.check()
        self.write(1)
        return "%d ids, %d reads, %d files opened" % (
            len(chosen), after["cold_reads"] - before["cold_reads"],
            after["cold_files_opened"] - before["cold_files_opened"])

    def await_figure(self, name, least):
        until = time.monotonic() + WAIT_S
        while self.check()[name] < least:
            if time.monotonic() > until:
                raise Failure("%s stays below %d" % (name, least))
            time.sleep(POLL_S)

    def merge(self):
        """The ids of some tables, each a few times."""
        merges = self.figures()["dump_merges"]
        a_table = self.last // self.options.tables
        for table in self.rng.sample(range(self.options.tables), CHANGED):
            ids = range(table * a_table + 1, (table + 1) * a_table)
            for one in ids:
                self.added[one] = self.added.get(one, 0) + 3
            for begin in range(0, len(ids), BLOCK):
                self.add(self.clients[0], ids[begin:begin + BLOCK], lambda one: 3)
        self.await_figure("dump_merges", merges + 1)
        return "%d merges" % (self.figures()["dump_merges"] - merges)

    def checkpoint(self):
        before = self.figures()
        self.daemon.signal(signal.SIGUSR2)
        self.await_figure("checkpoints", before["checkpoints"] + 1)
        after = self.figures()
        return "%d images, %d us, manifest of %d bytes" % (
            after["images"] - before["images"], after["last_checkpoint_us"],
            os.path.getsize(os.path.join(self.folder.data, "MANIFEST")))

    def kill(self):
        self.daemon.kill_now()
        self.daemon.check_log()
        return ""

    def stop(self):
        problem = self.daemon.stop(False)
        if problem:
            raise Failure(problem)
        self.daemon.check_log()
        return ""

    # ---- all ----

    def run(self):
        again = (self.start, self.come_in, self.read_all)
        steps = (self.start, self.come_in, self.dump, self.read_all, self.merge, self.checkpoint,
                 self.kill) + again + (self.stop,) + again + (self.checkpoint, self.stop)
        for step in steps:
            self.began = time.monotonic()
            told = step()
            print("%-10s %7.2f s  %s" % (step.__name__, time.monotonic() - self.began, told),
                  flush=True)
        print("at most %d descriptors" % self.most)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (LONG if os.environ.get("ROLLCALL_TEST_LONG") else SHORT).items():
        parser.add_argument("--" + name, type=int, default=usual)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory")
    options = parser.parse_args()
    many = Many(options)
    try:
        many.run()
        return 0
    except (Failure, judge.Lost, protocol.Mismatch, OSError, socket.timeout) as problem:
        print("FAILED: %s" % problem)
        many.folder.keep()
        print("kept: %s" % many.folder.path)
        if many.daemon:
            print(many.daemon.output()[-3000:])
        return 1
    finally:
        if many.daemon:
            many.daemon.kill()
        many.folder.remove()


if __name__ == "__main__":
    sys.exit(main())
