#!/usr/bin/env python3
"""Ids in random order with `oldest: refuse`: each table has many layers. Does a killed daemon have them all again?

    tests/recovery/shuffled.py [--seed N]

$ROLLCALLD as in crash.py. Counters and members of ids that come in no order fill tables and their layers while
checkpoints are made; none is refused while tables are free. Then the daemon is killed, now with changes since the
last checkpoint, now with deletes, and has all of it at each start. With `oldest: dump` and fewer tables they go to
files with all their layers, and changes of them are there after a kill, too; so it is with `oldest: refuse` again.
Lines are `ok` or `FAIL` with the reason; exit 1 if one failed.
"""
import random
import sys
import time

from victim import Failure, Folder, Victim, seed_of_run

CONFIG = """threads: 2
memory: 512MiB
data: %s
journal: {sync: everysec, segment: 16MiB, buffer: 4MiB}
checkpoint: {every: %s, journal: 16MiB}
spaces:
  feed: {kind: counter, slots: {a: 60, b: 60}, table-size: 64KiB, tables: %d, oldest: %s}
  liked: {kind: phantom, deletes: yes, table-size: 64KiB, tables: %d, oldest: %s}
"""
IDS = {"feed": 24000, "liked": 130000}
BLOCK = 500
TABLES, TABLES_FEW = 24, 4
LAYERS = 3  # of one table, at least
ONE_IN = 7  # ids are deleted, or counted once more
DELETES = 5  # of members at once: there is little room for them
FILES = 2  # tables with all their layers
DUMPED_S = 60
POLL_S = 0.02


class Client:
    def __init__(self, daemon):
        self.socket = daemon.connect().socket

    def ask(self, lines, enough):
        self.socket.sendall(b"".join(lines))
        data = b""
        while not enough(data):
            piece = self.socket.recv(1 << 18)
            if not piece:
                raise Failure("the connection ended after %r" % data[-200:])
            data += piece
        return data.split(b"\r\n")[:-1]

    def change(self, lines, *right):
        for at in range(0, len(lines), BLOCK):
            block = lines[at : at + BLOCK]
            answers = self.ask(block, lambda data, count=len(block): data.count(b"\n") >= count)
            wrong = [said for said in answers if said not in right]
            if wrong:
                raise Failure("%r is answered %r, the %dth" % (
                    block[answers.index(wrong[0])], wrong[0], at + answers.index(wrong[0])))

    def get(self, keys):
        """Which of them are there, and what they hold."""
        held = {}
        for at in range(0, len(keys), BLOCK):
            line = b"get " + b" ".join(keys[at : at + BLOCK]) + b"\r\n"
            answers = self.ask([line], lambda data: data.endswith(b"END\r\n") or b"ERROR" in data)
            if answers[-1] != b"END":
                raise Failure("a page is answered %r" % answers[-1])
            held.update(zip((head.split()[1] for head in answers[:-1:2]), answers[1:-1:2]))
        return held

    def figure(self, name):
        for line in self.ask([b"stats spaces\r\n"], lambda data: data.endswith(b"END\r\n")):
            if line.startswith(b"STAT %s " % name):
                return int(line.split()[2])
        raise Failure("no figure %r" % name)


class Both:
    """What the two spaces should hold."""

    def __init__(self, rand):
        self.rand = rand
        self.left = {space: rand.sample(range(1, count + 1), count) for space, count in IDS.items()}
        self.counts, self.members = {}, set()
        self.daemon = None

    def fill(self, client, part):
        """So much of the ids that are left comes."""
        for space, left in self.left.items():
            new, self.left[space] = left[: int(len(left) * part)], left[int(len(left) * part) :]
            if space == "feed":
                client.change([b"incr feed:%d.a 1\r\n" % n for n in new], b"1")
                self.counts.update((n, 1) for n in new)
            else:
                client.change([b"add liked:%d:u 0 0 1\r\n1\r\n" % n for n in new],
                              b"STORED", b"NOT_STORED")  # one that seems to be there
                self.members.update(new)

    def some(self, of):
        return self.rand.sample(sorted(of), len(of) // ONE_IN)

    def alter(self, client):
        """Some ids are counted once more, some are deleted and come again."""
        for count in (1, 2):
            more = self.some([n for n, held in self.counts.items() if held == count])
            client.change([b"incr feed:%d.a 1\r\n" % n for n in more], b"%d" % (count + 1))
            self.counts.update((n, count + 1) for n in more)
        gone = self.some(self.counts)
        client.change([b"delete feed:%d\r\n" % n for n in gone], b"DELETED")
        for n in gone:
            del self.counts[n]
        self.left["feed"] += gone
        gone = self.some(self.members)
        client.change([b"delete liked:%d:u\r\n" % n for n in gone[:DELETES]], b"DELETED")
        self.members.difference_update(gone[:DELETES])

    def check(self, client):
        numbers = client.get([b"feed:%d.a" % n for n in range(1, IDS["feed"] + 1)])
        right = {b"feed:%d.a" % n: b"%d" % held for n, held in self.counts.items()}
        for key in numbers.keys() | right.keys():
            if numbers.get(key) != right.get(key):
                raise Failure("%r holds %r, not %r" % (key, numbers.get(key), right.get(key)))
        found = client.get([b"liked:%d:u" % n for n in sorted(self.members)])
        if len(found) != len(self.members):
            raise Failure("%d members, and %d are there" % (len(self.members), len(found)))
        records = client.figure(b"feed:records")
        if records != len(self.counts):
            raise Failure("%d records are counted as %d" % (len(self.counts), records))


def start(folder, both, tables, oldest, every="100ms"):
    with open(folder.config, "w", encoding="ascii") as file:
        file.write(CONFIG % (folder.data, every, tables, oldest, tables, oldest))
    daemon = Victim(folder)
    both.daemon = daemon
    daemon.serve()
    return daemon, Client(daemon)


def killed(daemon):
    daemon.kill_now()
    daemon.check_log()


def many_layers(folder, both):
    """In memory: filled, killed, altered, killed."""
    for every, part in (("1h", 0.1), ("500ms", 0.5), ("500ms", 0.6), ("1h", 0.9)):
        daemon, client = start(folder, both, TABLES, "refuse", every)
        both.check(client)
        both.fill(client, part)
        both.alter(client)
        both.check(client)
        killed(daemon)
    daemon, client = start(folder, both, TABLES, "refuse")
    both.check(client)
    figures = {space: [client.figure(b"%s:%s" % (space, name)) for name in (b"tables", b"layers")]
               for space in (b"feed", b"liked")}
    print("tables and layers: %s" % figures)
    if min(layers for _, layers in figures.values()) < LAYERS:
        raise Failure("too few layers")
    killed(daemon)


def dumped(folder, both):
    """They go to files, and back comes none: changed there, killed, changed in both ways."""
    for tables, oldest in ((TABLES_FEW, "dump"), (TABLES_FEW, "dump"), (TABLES, "refuse")):
        daemon, client = start(folder, both, tables, oldest)
        until = time.monotonic() + DUMPED_S
        while client.figure(b"feed:cold_tables") + client.figure(b"liked:cold_tables") < FILES:
            if time.monotonic() > until:
                raise Failure("no tables are in files")
            time.sleep(POLL_S)
        both.check(client)
        both.alter(client)
        both.check(client)
        killed(daemon)
    daemon, client = start(folder, both, TABLES, "refuse")
    both.check(client)
    daemon.check_log()


def main():
    words = sys.argv[1:]
    seed = seed_of_run(int(words[1]) if words[:1] == ["--seed"] else 0)
    print("seed %d" % seed)
    folder = Folder()
    both = Both(random.Random(seed))
    try:
        for case in (many_layers, dumped):
            case(folder, both)
            print("ok   %s" % case.__name__.replace("_", " "))
    except Failure as failure:
        folder.keep()
        print("FAIL %s (%s): %s" % (case.__name__.replace("_", " "), folder.path, failure))
        return 1
    finally:
        both.daemon.kill()
        folder.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
