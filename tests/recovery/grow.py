#!/usr/bin/env python3
"""A space of any ids grows in parts while its daemon is killed: is each acknowledged id there, once?

    tests/recovery/grow.py [--seed N]

$ROLLCALLD as in crash.py. Ids that no two of are alike are counted once each, 500 outstanding, while
checkpoints are made; kill -9 comes after a random number of them, ROUNDS times. After each start every
acknowledged id must hold 1, every other one that was sent 1 or nothing. The space must have grown to several
parts at the end, and nobody may have waited longer than FELT_S for a block. Then it is told to take no more
memory than it has (a small `memory`): new ids are refused, and the others go on. With `oldest: dump` and as
little memory ids come on and on, none refused, while parts go to files and come back: the daemon is killed
whenever it likes, and each start must have all, in files, too; likewise when `oldest` is refuse again, with
memory for all: then they come back. Lines are `ok` or `FAIL` with the reason; exit 1 if one failed.
"""
import os
import random
import re
import sys
import threading
import time

from victim import Failure, Folder, Victim, seed_of_run

# With wide slots few ids fill a part
CONFIG = """threads: 2
memory: %s
data: %s
journal: {sync: everysec, segment: 16MiB, buffer: 4MiB}
checkpoint: {every: 500ms, journal: 16MiB}
cold: {cache: 1MiB, overlay: 16MiB, queue: 256}
spaces:
  user: {kind: counter, slots: {a: 60, b: 60, c: 60, d: 60}, ids: any, table-size: 64KiB, oldest: %s}
"""
ROUNDS = 3
BLOCK = 500  # ids at once
KEYS = 200  # of a get: all may lie in files, and the queue holds 256
LIVES = (35000, 90000)  # ids of a daemon's life
POLL_S = 0.005
FELT_S = 3  # no request waits longer for a part: 20 ms, and as many times more on a machine with much else to do
MULTIPLIER = 0x9E3779B97F4A7C15  # odd: no two indices have one id
MASK = (1 << 40) - 1
ONE = b"1\r\n"  # of an id that was counted once
FULL = b"SERVER_ERROR out of memory storing object"
SAMPLE = 20000  # ids looked at, where most lie in files
VALUE = re.compile(rb"VALUE user:(\d+)\.a 0 \d+\r\n(\d+)\r\n")
LITTLE = "51MiB"  # memory: some 5 MiB of it for parts, which have 4 at most
FILES = 3  # parts in files, at least
LIVES_MAX = 30
BACK_S = 60  # until all are in memory, where there is room


def id_of(index):
    return index * MULTIPLIER & MASK


def configure(folder, memory, oldest="refuse"):
    with open(folder.config, "w", encoding="ascii") as file:
        file.write(CONFIG % (memory, folder.data, oldest))


class Client:
    """A connection. What is as it should be is compared as a whole, not line by line: that takes time."""

    def __init__(self, daemon):
        self.socket = daemon.connect().socket

    def read(self, enough):
        """What comes until it is enough, or the connection ends."""
        data = bytearray()
        while not enough(data):
            piece = self.socket.recv(1 << 18)
            if not piece:
                break
            data += piece
        return bytes(data)

    def ask(self, text, count):
        """The lines that answer so many commands; fewer: the connection ended."""
        try:
            self.socket.sendall(text)
            answer = self.read(lambda data: len(data) >= count * len(ONE) and data.count(b"\n") >= count)
        except OSError:
            answer = b""
        return [b"1"] * count if answer == ONE * count else answer.split(b"\r\n")[:-1]

    def get(self, first, count):
        """What ids from an index on hold, but for nothing; None: 1 each."""
        keys = [b"user:%d.a" % id_of(index) for index in range(first, first + count)]
        self.socket.sendall(b"get " + b" ".join(keys) + b"\r\n")
        answer = self.read(lambda data: data.endswith(b"END\r\n") or b"ERROR" in data)
        if answer == b"".join([b"VALUE %s 0 1\r\n1\r\n" % key for key in keys]) + b"END\r\n":
            return None
        held = {int(key): int(value) for key, value in VALUE.findall(answer)}
        if not answer.endswith(b"END\r\n") or answer.count(b"\n") != 2 * len(held) + 1:
            raise Failure("a page is answered %r" % answer[:200])
        return held

    def figure(self, name):
        self.socket.sendall(b"stats spaces\r\n")
        for line in self.read(lambda data: data.endswith(b"END\r\n")).split(b"\r\n"):
            if line.startswith(b"STAT user:%s " % name):
                return int(line.split()[2])
        raise Failure("no figure %r" % name)


class Adder:
    """Counts ids in a thread of its own, until the daemon is gone or refuses one."""

    def __init__(self, daemon, first):
        self.client = Client(daemon)
        self.acknowledged = self.sent = first
        self.longest_s, self.refused = 0.0, set()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        answers = [b""] * BLOCK
        while len(answers) == BLOCK and not self.refused:
            block = range(self.sent, self.sent + BLOCK)
            self.sent = block.stop
            began = time.monotonic()
            answers = self.client.ask(b"".join(b"incr user:%d.a 1\r\n" % id_of(index) for index in block), BLOCK)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.refused = set(answers) - {b"1"}
            self.acknowledged += 0 if self.refused else len(answers)

    def join(self):
        self.thread.join()
        return self


def check(client, sent, doubtful, pages=None):
    """doubtful: indices that were sent and not acknowledged. pages: of KEYS ids each; all of them without."""
    for first in pages or range(0, sent, KEYS):
        count = min(KEYS, sent - first)
        held = client.get(first, count)
        if held is None:
            continue
        for index in range(first, first + count):
            least = 0 if index in doubtful else 1
            if not least <= held.get(id_of(index), 0) <= 1:
                raise Failure("id %d, the %dth of %d, holds %s" % (
                    id_of(index), index, sent, held.get(id_of(index))))


def start(folder):
    daemon = Victim(folder)
    daemon.serve()
    return daemon


def live_and_die(folder, daemon, first, ids, doubtful):
    """So many ids come, and the daemon is killed; another one has begun."""
    adder = Adder(daemon, first)
    while adder.acknowledged < first + ids and adder.thread.is_alive():
        time.sleep(POLL_S)
    daemon.kill_now()
    adder.join()
    if adder.refused or adder.longest_s > FELT_S:
        raise Failure("answered %s, the longest block took %.1f s" % (adder.refused, adder.longest_s))
    daemon.check_log()
    doubtful.update(range(adder.acknowledged, adder.sent))
    return start(folder), adder.sent


def check_count(client, sent, doubtful):
    if not sent - len(doubtful) <= client.figure(b"records") <= sent:
        raise Failure("records are counted wrongly")


def killed_while_it_grows(folder, rand):
    configure(folder, "512MiB")
    daemon = start(folder)
    first = parts = 0
    doubtful = set()
    for _ in range(ROUNDS):
        daemon, first = live_and_die(folder, daemon, first, rand.randint(*LIVES), doubtful)
        client = Client(daemon)
        check(client, first, doubtful)
        check_count(client, first, doubtful)
        before, parts = parts, client.figure(b"tables")
    if parts < 2 or parts < before:
        raise Failure("%d ids lie in %d parts, %d before" % (first, parts, before))
    print("%d ids in %d parts" % (first, parts))
    return daemon


def some_pages(rand, sent):
    last = max(sent // KEYS - 1, 0)
    return [rand.randint(0, last) * KEYS for _ in range(SAMPLE // KEYS)]


def parts_in_files(folder, rand):
    configure(folder, LITTLE, "dump")
    daemon = start(folder)
    first = lives = files = 0
    doubtful = set()
    while files < FILES and lives < LIVES_MAX:
        daemon, first = live_and_die(folder, daemon, first, rand.randint(*LIVES), doubtful)
        client = Client(daemon)
        check(client, first, doubtful, some_pages(rand, first))
        check_count(client, first, doubtful)
        files, lives = client.figure(b"cold_tables"), lives + 1
    if files < FILES:
        raise Failure("%d parts lie in files after %d lives" % (files, lives))
    print("%d ids, %d parts in files after %d lives" % (first, files, lives))
    daemon.kill_now()
    configure(folder, "512MiB")
    daemon = start(folder)
    client = Client(daemon)
    until = time.monotonic() + BACK_S
    while client.figure(b"cold_tables") > 0:
        if time.monotonic() > until:
            raise Failure("%d parts are in files still" % client.figure(b"cold_tables"))
        time.sleep(POLL_S)
    check(client, first, doubtful)
    check_count(client, first, doubtful)
    return daemon


def full(folder, _rand):
    configure(folder, LITTLE)
    daemon = start(folder)
    adder = Adder(daemon, 0).join()
    if adder.refused != {FULL} and adder.refused != {FULL, b"1"}:
        raise Failure("new ids are answered %s:\n%s" % (adder.refused, daemon.output()))
    if not daemon.says("space user cannot grow"):
        raise Failure("the log does not say so:\n%s" % daemon.output())
    client = Client(daemon)
    check(client, adder.acknowledged, ())
    if client.ask(b"incr user:%d.a 0\r\n" % id_of(1), 1) != [b"1"]:
        raise Failure("an id that is there cannot be counted")
    return daemon


def run(case, rand):
    name = case.__name__.replace("_", " ")
    folder = Folder()
    daemon = None
    try:
        daemon = case(folder, rand)
        print("ok   %s" % name)
        return True
    except Failure as failure:
        folder.keep()
        print("FAIL %s (%s): %s" % (name, folder.path, failure))
        return False
    finally:
        if daemon is not None:
            daemon.kill()
        folder.remove()


def main():
    words = sys.argv[1:]
    seed = seed_of_run(int(words[1]) if words[:1] == ["--seed"] else 0)
    rand = random.Random(seed)
    failed = [case for case in (killed_while_it_grows, parts_in_files, full) if not run(case, rand)]
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.setdefault("ROLLCALLD", "rollcalld")
    sys.exit(main())
