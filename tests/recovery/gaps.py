#!/usr/bin/env python3
"""A stream with gaps and strays over tables that leave memory: is all that was acknowledged found again?

    tests/recovery/gaps.py [--rounds N] [--seeds N] [--seed N] [--directory DIR]

$ROLLCALLD and $ROLLCALL_BUILD as in crash.py. One daemon with `oldest: dump` and small tables; its ids
rise by one or two, but now and then they go on far above (an outage, a typo, another stream), some
come into a gap later, and some of all kinds are written again or deleted. So tables open anywhere in
the row, above and below those that are files by then, and what was kept apart has to move. After
each round the daemon is killed, stopped or left, and everything is read back.

All commands are answered before the next are sent, so an exact map tells what must be there; what
was refused is not, and is counted by the kind of its id and the reason: no more may be than REFUSED_MAX
says, and none for want of a table where figures that are asked for at once say that one is free.
Prints a line a seed; exits 1 with the first differences and keeps the folder.
"""
import argparse
import random
import signal
import sys

import judge
from refusals import is_closed
from tally import Tally
from victim import Failure, Victim, passes, protocol, scale_of_run, seed_of_run

ROUNDS = 8  # of each seed
SEEDS = 2
BATCH = 100  # commands sent together
BATCHES = (20, 120)  # of a round
BLOCK = 500  # ids of a read
SHOWN = 5
GAPS = (500, 3000, 8000, 30000, 100000)
STRAY = 400000
BITS = (3, 12, 40)  # of a value: the last ones lie beside
# What an id may be: share of the commands, of 1
NEXT, GAP, LATE, STRAYS = 0.90, 0.005, 0.025, 0.01  # the rest: an old one
DELETED = 0.1  # of the old ones
VALUES = {"memory": "512MiB", "oldest": "dump", "table_size": "64KiB", "dicts": "256KiB",
          "segment": "1MiB", "buffer": "1MiB", "journal": "4MiB", "sync": "everysec"}
STREAM, LEAPT, LATER, FAR, OLD = "of the stream", "after a leap", "late", "far ahead", "old"
AFTER_LEAP = 80  # ids of the stream, or late ones: nearly always sixteen of each space are among them
BUSY, NO_TABLE, TOO_FAR = (b"SERVER_ERROR busy", b"SERVER_ERROR no table free",
                           b"CLIENT_ERROR id too far ahead")
# Kind of id -> reason -> the most, of the commands of the kind; another reason never comes. Where a table is free,
# and the id's own takes more, none is refused for want of one: changes overran dumps, or a dumped filter takes no
# more members than it was made for. A change waits for a merge when the overlay is full, and is busy where that
# takes five seconds. Only ids above the tables may find no room though a table is free, where that for ids apart is
# full of strays (APART_FULL): of a stream that leaps over it the first id is too far, as nobody knows of more; up to
# the sixteenth, in each space, no table is open yet.
REFUSED_MAX = {
    STREAM: {NO_TABLE: 0.001, BUSY: 0.002},
    LEAPT: {NO_TABLE: 0.01, BUSY: 0.002, TOO_FAR: 2 / AFTER_LEAP},
    LATER: {NO_TABLE: 0.01, BUSY: 0.002},
    FAR: {NO_TABLE: 0.01, BUSY: 0.002, TOO_FAR: 0.02},
    OLD: {NO_TABLE: 0.01, BUSY: 0.002},
}

# Bytes of the room apart that a table is worth at least, and of a place there. It may be full from three quarters on.
APART_BYTES = {"feed": 8192, "liked": 4096}
APART_PLACE, APART_FULL = {"feed": 64 / 3, "liked": 64 / 2}, 0.75


class Stream:
    """Which id comes next."""

    def __init__(self, rng):
        self.rng, self.place, self.gaps = rng, 1000, []
        self.leapt = 0  # ids before it counts as STREAM again

    def choose(self, old):
        """An id and its kind."""
        one, kind = self.choose_one(old)
        if kind in (STREAM, LATER) and self.leapt > 0:
            self.leapt -= 1
            kind = LEAPT
        return one, kind

    def choose_one(self, old):
        rng, kind = self.rng, self.rng.random()
        if kind < NEXT:
            self.place += rng.randrange(1, 3)
        elif kind < NEXT + GAP:
            self.gaps.append((self.place, self.place + rng.choice(GAPS)))
            self.place, self.leapt = self.gaps[-1][1], AFTER_LEAP
        elif kind < NEXT + GAP + LATE and self.gaps:
            low, high = rng.choice(self.gaps[-6:])
            return rng.randrange(low + 1, high), LATER
        elif kind < NEXT + GAP + LATE + STRAYS:
            return self.place + rng.randrange(1, STRAY), FAR
        elif old:
            return rng.choice(old), OLD
        return self.place, STREAM


class Test:
    def __init__(self, folder, seed):
        self.rng = random.Random(seed)
        self.folder, self.stream = folder, Stream(self.rng)
        self.values = dict(VALUES, tables=self.rng.choice((3, 4, 6)),
                           every=self.rng.choice(("100ms", "300ms", "2s")))
        self.likes, self.readers = {}, {}  # id -> its number; id -> is u0 there? None: deleted
        self.old = []
        self.figures = {}  # `stats spaces`, as a batch is sent
        self.tally = Tally()  # of the commands of each kind
        self.daemon = self.client = None

    def start(self):
        self.folder.configure(self.values)
        self.daemon = Victim(self.folder)
        self.daemon.serve()
        self.client = self.daemon.connect()

    # ---- writing ----

    def command(self, one):
        """(what is sent, the answers that mean it was done, what it makes of the maps)"""
        liked = self.rng.random() < 0.3
        there = (self.readers if liked else self.likes).get(one)
        if there and self.rng.random() < DELETED:
            key = b"liked:%d:u0" % one if liked else b"feed:%d" % one
            return b"delete %s\r\n" % key, (b"DELETED",), liked, None
        if liked:
            return b"set liked:%d:u0 0 0 1\r\n1\r\n" % one, (b"STORED",), True, True
        number = self.rng.randrange(1, 1 << self.rng.choice(BITS))
        text = b"%d" % number
        return (b"set feed:%d.like 0 0 %d\r\n%s\r\n" % (one, len(text), text), (b"STORED",), False,
                number)

    def answers(self, count):
        data, lines = b"", []
        while len(lines) < count:
            piece = self.client.socket.recv(1 << 16)
            if not piece:
                raise Failure("the connection was closed")
            *whole, data = (data + piece).split(b"\r\n")
            lines += whole
        return lines

    def write(self):
        kinds = dict(self.stream.choose(self.old) for _ in range(BATCH))
        ids = list(kinds)
        commands = [self.command(one) for one in ids]
        self.figures = self.client.stats(b"spaces")
        self.client.socket.sendall(b"".join(command[0] for command in commands))
        for one, command, line in zip(ids, commands, self.answers(len(ids))):
            sent, done, liked, value = command
            kind = kinds[one]
            if not self.tally.note(kind, line in done, line, REFUSED_MAX[kind]):
                raise Failure("%s: %r is answered %r" % (kind, sent, line))
            if line in done:
                (self.readers if liked else self.likes)[one] = value
                self.old.append(one)
            elif line in (NO_TABLE, TOO_FAR):
                above = kind in (LEAPT, FAR) or one > self.stream.place
                self.check_table(one, judge.SPACES["member" if liked else "counter"], line, above)

    def check_table(self, one, space, line, above):
        """An id was just refused for want of a table: is none free? Or may it lie above the tables, and the room apart
        was full as its batch was sent, or is?"""
        now = self.client.stats(b"spaces")
        free = int(now[space + ":spare"])
        if line == NO_TABLE and (
                free == 0 or is_closed(judge.Tables(self.client.tables(space), space).of(one))):
            return
        apart = max(int(figures[space + ":ahead_ids"]) for figures in (self.figures, now))
        if not above or apart < self.apart_full(space):
            raise Failure("%s:%d: %s, but %d tables are free, and %d ids are apart" % (
                space, one, line.decode(), free, apart))

    def apart_full(self, space):
        """So many ids apart may be all there is room for: of a power of two of bytes for all tables."""
        room = 1 << (self.values["tables"] * APART_BYTES[space] - 1).bit_length()
        return APART_FULL * room / APART_PLACE[space]

    def check_refused(self):
        excess = self.tally.excess(REFUSED_MAX)
        if excess:
            raise Failure("refused: %s\n%s" % (excess, self.daemon.output()[-2000:]))

    # ---- reading ----

    def compare(self):
        wrong = []
        ids = list({**self.likes, **self.readers})
        for begin in range(0, len(ids), BLOCK):
            block = ids[begin:begin + BLOCK]
            counters, members = self.client.counters(block), self.client.members(block)
            for one in block:
                like = counters.get(one, judge.NOTHING)[2]
                if like != (self.likes.get(one) or -1):
                    wrong.append("feed:%d.like is %d, not %s" % (one, like, self.likes.get(one)))
                if one in self.readers and bool(self.readers[one]) != ((one, 0) in members):
                    wrong.append("liked:%d:u0: %s" % (one, self.readers[one]))
        records = int(self.client.stats(b"spaces")["feed:records"])
        expected = sum(number is not None for number in self.likes.values())
        if records != expected:
            wrong.append("%d records are counted, not %d" % (records, expected))
        if wrong:
            raise Failure("%d wrong:\n%s" % (len(wrong), "\n".join(wrong[:SHOWN])))
        return len(ids)

    def end_of_round(self):
        self.client.socket.close()
        how = self.rng.random()
        if how < 0.5:
            self.daemon.kill_now()
        elif how < 0.7:
            problem = self.daemon.stop(False)
            if problem:
                raise Failure(problem)
        else:
            self.client = self.daemon.connect()
            return
        self.daemon.check_log()
        self.start()

    def run(self, rounds):
        """None, or what was wrong."""
        try:
            self.start()
            for _ in range(rounds):
                for _ in range(self.rng.randrange(*BATCHES)):
                    self.write()
                self.end_of_round()
                self.compare()
            figures = self.client.stats(b"spaces")
            print("%d ids, up to %d; %d tables, %s of them files; %s" % (
                len(self.old), self.stream.place, int(figures["feed:tables"]),
                figures["feed:cold_tables"], self.tally))
            self.check_refused()
            sys.stdout.flush()
            return None
        except (Failure, judge.Lost, protocol.Mismatch, OSError) as problem:
            said = "" if self.daemon is None or self.daemon.alive() else self.daemon.output()[-2000:]
            return "%s\n%s" % (problem, said)
        finally:
            if self.daemon is not None:
                self.daemon.kill()


def main():
    scale = scale_of_run()
    parser = argparse.ArgumentParser(description="See the top of this file.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each seed")
    parser.add_argument("--seeds", type=int, default=max(1, SEEDS * scale // 100))
    parser.add_argument("--seed", type=int, default=0, help="the first; 0: as $ROLLCALL_TEST_SEED says")
    parser.add_argument("--directory", help="where the folder is made (default: TMPDIR)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    first = seed_of_run(options.seed)
    for seed in range(first, first + options.seeds):
        if not passes(seed, options.directory, lambda folder: Test(folder, seed).run(options.rounds)):
            return 1
    print("0 lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
