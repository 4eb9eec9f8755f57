#!/usr/bin/env python3
"""Three times as many ids as a dumped table held come late, beside live traffic: is all of it stored?

    tests/recovery/late.py [--table-size SIZE] [--seed N] [--directory DIR]

$ROLLCALLD and $ROLLCALL_BUILD as in crash.py; $ROLLCALL_TEST_SCALE says how large a table is. A daemon
with `oldest: dump`; a stream whose ids lie STEP apart is written until DUMPED tables are files. Then ids
between those of the oldest one are written, TIMES as many as it held, OUTSTANDING commands at a time on
CONNECTIONS connections: rising into the first table, falling into the second, in random order over the
rest. Beside them the stream goes on, and ids in memory are read, one block after each of the late ones.
In the midst of the random ones the daemon is killed and started again.

Each order must hold to this, all of it counted:
- of all commands at most one in BUSY_ONE_IN is `busy`, and nothing else is refused; what was busy is
  sent again and counts again,
- the file becomes larger with few merges: MERGES_MAX,
- no live command is refused, and no answer of a read in memory is wrong,
- requests wait less often than once in WAIT_PAGES pages that are read: they wait for several together,
- after the kill, after a stop, and at the end each id has its number; the records are counted right.

Prints a line an order (with its rate, which nothing depends on); exits 1 with the first difference and
keeps the folder.
"""
import argparse
import random
import signal
import sys
import time

import judge
from cold import Tables
from victim import Failure, Victim, answers, passes, protocol, scale_of_run, seed_of_run

STEP = 8
DUMPED = 4
TIMES = 3
CONNECTIONS = 4
OUTSTANDING = 64  # of all connections together
BLOCK = 1000  # ids of a read, commands of the stream
LIVE = 32  # ids of the stream that come with each block of late ones, and are read
BUSY_ONE_IN = 1000
MERGES_MAX = 20  # of one order: the overlay becomes wider, and the file twice as large each time
WAIT_PAGES = 2  # of dumped tables come with each wait of a request, at least
BUSY = b"SERVER_ERROR busy"
VALUES = {"memory": "512MiB", "oldest": "dump", "tables": 3, "dicts": "256KiB", "segment": "16MiB",
          "buffer": "4MiB", "journal": "256MiB", "sync": "everysec", "every": "60s"}


class Writer:
    """Commands on several connections, answered before the next are sent."""

    def __init__(self, daemon):
        self.clients = [daemon.connect() for _ in range(CONNECTIONS)]
        self.sent = self.busy = 0

    def close(self):
        for client in self.clients:
            client.socket.close()

    @staticmethod
    def command(one, number):
        text = b"%d" % number
        return b"set feed:%d.like 0 0 %d\r\n%s\r\n" % (one, len(text), text)

    def send(self, pairs):
        """Sends each once; those that are to be sent again."""
        shares = [pairs[i::CONNECTIONS] for i in range(CONNECTIONS)]
        for client, share in zip(self.clients, shares):
            client.socket.sendall(b"".join(self.command(*pair) for pair in share))
        again = []
        for client, share in zip(self.clients, shares):
            for pair, line in zip(share, answers(client, len(share))):
                if line == BUSY:
                    again.append(pair)
                elif line != b"STORED":
                    raise Failure("id %d is answered %r" % (pair[0], line))
        self.sent += len(pairs)
        self.busy += len(again)
        return again

    def put(self, pairs):
        while pairs:
            pairs = self.send(pairs)


class Test:
    def __init__(self, folder, seed, table_size):
        self.rng = random.Random(seed)
        self.folder = folder
        self.values = dict(VALUES, table_size=table_size)
        self.numbers, self.place = {}, 1000 * STEP
        self.lines = {}  # id -> what a get answers of it
        self.newest = []
        self.daemon = self.client = self.writer = self.live = None

    def start(self):
        self.folder.configure(self.values)
        self.daemon = Victim(self.folder)
        self.daemon.serve()
        self.client = self.daemon.connect()
        self.writer, self.live = Writer(self.daemon), Writer(self.daemon)

    def end(self):
        self.writer.close()
        self.live.close()
        self.client.socket.close()

    def number(self, one):
        self.numbers[one] = number = one % 997 + 1 if one % 101 else 1 << 40
        self.lines[one] = judge.value_line(one, b",,%d," % number)
        return one, number

    # ---- the stream ----

    def next_ids(self, count):
        ids = [self.place + STEP * i for i in range(count)]
        self.place = ids[-1] + STEP
        return ids

    def fill(self):
        tables = Tables(self.client, "feed")
        while tables.files < DUMPED:
            for _ in range(4):
                self.live.put([self.number(one) for one in self.next_ids(BLOCK)])
            tables = Tables(self.client, "feed")
        return tables

    def go_on(self):
        ids = self.next_ids(LIVE)
        self.live.put([self.number(one) for one in ids])
        self.newest = (self.newest + ids)[-LIVE * 8:]
        self.compare(self.newest)

    # ---- late ones ----

    @staticmethod
    def between(tables, first, last):
        """TIMES as many ids as the dumped tables from first to last hold, in rising order."""
        rows = tables.rows[first:last + 1]
        low = max(int(rows[0][1]["base"]), 1000 * STEP) // STEP + 1
        records = sum(int(row["records"]) for _, row in rows)
        end = int(tables.rows[last + 1][1]["base"]) // STEP
        ids = [STEP * place + 1 + i for place in range(low, end) for i in range(1, 2 * TIMES, 2)]
        return ids[:TIMES * records], records

    def put_late(self, ids):
        for begin in range(0, len(ids), OUTSTANDING):
            self.writer.put([self.number(one) for one in ids[begin:begin + OUTSTANDING]])
            if begin // OUTSTANDING % 8 == 0:
                self.go_on()

    def merges(self):
        return int(self.client.stats(b"")["dump_merges"])

    def check_order(self, name, ids, held, began, merges):
        sent, busy = self.writer.sent, self.writer.busy
        done = self.merges() - merges
        print("%s: %d ids late to tables of %d, %d of %d busy, %d merges, %d ids/s" % (
            name, len(ids), held, busy, sent, done, len(ids) / (time.monotonic() - began)))
        sys.stdout.flush()
        if busy * BUSY_ONE_IN > sent:
            raise Failure("%s: %d of %d commands were busy" % (name, busy, sent))
        if not 1 <= done <= MERGES_MAX:
            raise Failure("%s: %d merges, not 1 to %d" % (name, done, MERGES_MAX))
        if self.live.busy > 0:
            raise Failure("%s: %d commands of the stream were busy" % (name, self.live.busy))

    def order(self, name, ids, held):
        self.writer.sent = self.writer.busy = 0
        merges, began = self.merges(), time.monotonic()
        self.put_late(ids)
        figures = self.client.stats(b"")
        waits, pages = int(figures["suspensions"]), int(figures["cold_reads"])
        if waits * WAIT_PAGES > pages:
            raise Failure("%s: %d waits for %d pages" % (name, waits, pages))
        self.check_order(name, ids, held, began, merges)
        self.compare(ids)

    def restart(self, kill):
        self.end()
        if kill:
            self.daemon.kill_now()
        else:
            problem = self.daemon.stop(False)
            if problem:
                raise Failure(problem)
        self.daemon.check_log()
        self.start()
        self.compare_all()

    # ---- reading ----

    def compare(self, ids):
        """As a whole, and one by one where that is not what it should be."""
        for begin in range(0, len(ids), BLOCK):
            block = ids[begin:begin + BLOCK]
            answer = self.client.ask_counters(block)
            if answer != b"".join([self.lines[one] for one in block]) + b"END\r\n":
                self.compare_each(block, judge.counters_in(answer))

    def compare_each(self, ids, found):
        for one in ids:
            if found.get(one, judge.NOTHING) != (-1, -1, self.numbers[one], -1):
                raise Failure("feed:%d is %s, not %d" % (one, found.get(one), self.numbers[one]))
        raise Failure("a page is answered otherwise: %s" % found)

    def compare_all(self):
        self.compare(sorted(self.numbers))
        records = int(self.client.stats(b"spaces")["feed:records"])
        if records != len(self.numbers):
            raise Failure("%d records are counted, not %d" % (records, len(self.numbers)))

    def run(self):
        """None, or what was wrong."""
        try:
            self.start()
            tables = self.fill()
            self.order("rising", *self.between(tables, 0, 0))
            ids, held = self.between(tables, 1, 1)
            self.order("falling", ids[::-1], held)
            ids, held = self.between(tables, 2, DUMPED - 1)
            self.rng.shuffle(ids)
            self.order("random", ids[:len(ids) // 2], held)
            self.restart(kill=True)
            self.order("random, after a kill", ids[len(ids) // 2:], held)
            self.restart(kill=False)
            return None
        except (Failure, judge.Lost, protocol.Mismatch, OSError) as problem:
            said = "" if self.daemon is None else self.daemon.output()[-2000:]
            return "%s\n%s" % (problem, said)
        finally:
            if self.daemon is not None:
                self.daemon.kill()


def main():
    scale = scale_of_run()
    parser = argparse.ArgumentParser(description="See the top of this file.")
    size = "128KiB" if scale <= 50 else "256KiB" if scale <= 100 else "4MiB"
    parser.add_argument("--table-size", default=size)
    parser.add_argument("--seed", type=int, default=0, help="0: as $ROLLCALL_TEST_SEED says")
    parser.add_argument("--directory", help="where the folder is made (default: TMPDIR)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    seed = seed_of_run(options.seed)
    if not passes(seed, options.directory, lambda folder: Test(folder, seed, options.table_size).run()):
        return 1
    print("0 lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
