#!/usr/bin/env python3
"""Ten times as many ids as memory holds: is each of them still exact, changed ones and after a restart too?

    tests/recovery/cold.py [--seed N] [--table-size SIZE] [--times N] [--directory DIR]

$ROLLCALLD as in crash.py, $ROLLCALL (for `inspect`) beside it; $ROLLCALL_TEST_SCALE above 100
takes larger tables. One daemon with `oldest: dump`, a space of counters and one of existence
keys, both too large for its memory:

1. Ids are written in rising order, a few left out, until the dumped tables of each space hold ten
   times what its tables in memory do. Everything is read back.
2. Reads of the disk are counted, id by id, with no cache: an id in memory costs none, a dumped one
   one of 4 KiB, and one more each if it lies in the section of what did not fit in place (extend)
   or has a value there beside (aux). Which do is read from the table files.
3. Dumped ids are changed (overlay), deleted, written again. All is read back.
4. A clean stop and a start, with a cache this time: all is read back; what is asked for twice costs
   the disk nothing the second time.
5. More changes, until files were merged and while more are; kill -9; a start; all is read back.

What must be there is an exact map in this process, for every command is answered before the next
step begins; a change that is refused for want of room in the overlay (`busy`) is sent again, which is
seldom (BUSY_MAX); a new id that a dumped table has no room for is not there, and the daemon's figures
must say so (FULL_MAX). Of existence keys no member that was added may be denied and none that was
deleted may be found; of those never added, and of as many foreign ones, the planned share may be, for
a table and for each layer.

Prints what it counted; exits 1 with the first differences and keeps the folder if there are any.
"""
import argparse
import functools
import gc
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time

import judge
from refusals import is_closed
from victim import DATA, FALSE_POSITIVES, Failure, Folder, Victim, answers, protocol, scale_of_run, seed_of_run

SPACES = ("feed", "liked")
TIMES = 10  # dumped ids for one in memory
BLOCK = 1000  # commands sent together, keys of a get
STEP = 4000  # ids between two looks whether that is enough
LEFT_OUT = 0.03  # of the ids: never written
LARGE = 0.02  # of the records: one value too large for its bits
LARGE_MIN, LARGE_MAX = 1 << 30, 1 << 63
SMALL_MAX = (1 << 9, 1 << 12, 1 << 12, 1 << 16)
COUNTED = 500  # ids of each sort whose reads are counted
CHANGED = 0.05  # of the ids: in one round of changes
PAIRS_CHANGED = 0.01  # of the existence keys: a small table's overlay has room for few lines
WAIT_S = 60  # for a merge, for a dump
POLL_S = 0.002
SHOWN = 10
CACHES = {"off": "0", "on": "4MiB"}
BUSY_MAX = 0.001  # of the commands: those that are answered TRY_AGAIN,
FULL_MAX = 0.001  # and FULL, where the next table opened so late that the stream had taken the late-room
FULL = b"SERVER_ERROR no table free"
TRY_AGAIN = (b"SERVER_ERROR busy", b"SERVER_ERROR journal busy")
NEVER_ADDED = (judge.NEVER,) * judge.MEMBERS
MEMBER_LINES = {  # states of an id's members -> what a get answers of them but for the id, how many lines
    states: (b"".join([b"VALUE liked:%%d:u%d 0 1\r\n1\r\n" % i
                       for i, one in enumerate(states) if one == judge.THERE]), states.count(judge.THERE))
    for states in itertools.product((judge.NEVER, judge.THERE, judge.DELETED), repeat=judge.MEMBERS)}
EXTEND, AUX = range(2)  # sections of a counter table's file, as `inspect` lists it
KEY = re.compile(rb"\w+ (\w+):(\d+)")
ENTRY = re.compile(r"^section (\d)|^  id +(\d+)  sub", re.M)

CONFIG = """threads: 2
memory: 256MiB
%(data)scold: {cache: %(cache)s, threads: 4}
spaces:
  feed:
    kind: counter
    slots: {repost: 10, comment: 20, like: 20, read: 20}
    role: store
    empty-fields: clear
    oldest: dump
    table-size: %(table_size)s
    tables: 4
    late-room: 0.2
  liked:
    kind: phantom
    false-positives: %(rate).6f
    deletes: yes
    exceptions-memory: 64KiB
    role: store
    oldest: dump
    table-size: %(table_size)s
    tables: 4
    late-room: 0.2
"""


counters_request = functools.cache(judge.counters_request)  # each id is read back several times
members_request = functools.cache(judge.members_request)


def blocks(things):
    for begin in range(0, len(things), BLOCK):
        yield things[begin:begin + BLOCK]


class Tables:
    """The tables of a space, as `stats tables` shows them."""

    def __init__(self, client, space):
        rows = {}
        for name, value in client.tables(space).items():
            found = re.fullmatch(space + r":(\d+):(\w+)", name)
            if found:
                rows.setdefault(int(found.group(1)), {})[found.group(2)] = value
        self.rows = sorted(rows.items(), key=lambda row: int(row[1]["base"]))
        held = "records" if space == "feed" else "members"
        self.dumped = sum(int(row[held]) for _, row in self.rows if row["cold"] == "1")
        self.in_memory = sum(int(row[held]) for _, row in self.rows if row["cold"] == "0")
        self.files = sum(row["cold"] == "1" for _, row in self.rows)

    def of(self, ids):
        """(id, serial, figures) of each of these ids, which must rise."""
        at = 0
        for one in ids:
            while at + 1 < len(self.rows) and int(self.rows[at + 1][1]["base"]) <= one:
                at += 1
            yield one, self.rows[at][0], self.rows[at][1]


class Sections:
    """Which ids lie in the entries of the files of a space's dumped tables."""

    def __init__(self, folder, space, serials, program):
        self.program, self.ids = program, {}
        names = re.compile(space + r"-(\d+)-0-\d+\.table")
        for name in os.listdir(folder.data):
            found = names.fullmatch(name)
            if found and int(found.group(1)) in serials:
                self.ids[int(found.group(1))] = self.file(os.path.join(folder.data, name))

    def file(self, path):
        """For each section: id -> its entries."""
        done = subprocess.run([self.program, "inspect", path, "--limit", "0"], check=False,
                              text=True, capture_output=True)
        if done.returncode != 0:
            raise Failure("inspect %s: exit %d: %s" % (path, done.returncode, done.stderr))
        entries = {EXTEND: {}, AUX: {}}
        for number, one in ENTRY.findall(done.stdout):
            if number:
                section = entries[int(number)]
            else:
                section[int(one)] = section.get(int(one), 0) + 1
        return entries

    def reads(self, serial, one):
        """What a read of that id costs: its page, and the entries that are not in it."""
        entries = self.ids[serial]
        return 1 + (one in entries[EXTEND]) + (one in entries[AUX])


class Cold:
    """The daemon, and what it must hold."""

    def __init__(self, folder, options, seed):
        self.folder, self.options = folder, options
        self.rng = random.Random(seed)
        self.daemon = self.client = None
        self.next = 1
        self.records = {}  # id -> its slots; those that were written
        self.lines = {}  # id -> what a get answers of it; of the same ids
        self.members = {}  # id -> states, as judge.py numbers them
        self.sent = self.refused = self.full = 0
        self.asked = self.found = 0  # of members never added
        self.layers = [0]  # of the table of a member's id: the filters that are asked
        self.looks = 0  # at such
        self.problems = []

    # ---- the daemon ----

    def start(self, cache):
        values = {"directory": self.folder.data, "sync": "everysec", "segment": "4MiB",
                  "buffer": "1MiB", "every": "1s", "journal": "64MiB"}
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(CONFIG % {"data": DATA % values, "cache": CACHES[cache],
                                 "table_size": self.options.table_size, "rate": FALSE_POSITIVES})
        self.daemon = Victim(self.folder)
        took = self.daemon.serve()
        self.client = self.daemon.connect()
        return took

    def stop(self):
        self.client.socket.close()
        problem = self.daemon.stop(False)
        if problem:
            raise Failure(problem)
        self.daemon.check_log()

    def kill(self):
        self.client.socket.close()
        self.daemon.kill_now()
        self.daemon.check_log()

    def figure(self, name):
        return int(self.client.stats(b"")[name])

    def quiet(self):
        """Waits until each row has its spare: then no table leaves memory before more is written."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            spaces = self.client.stats(b"spaces")
            if all(spaces[space + ":leaving_tables"] == "0" and int(spaces[space + ":spare"]) > 0
                   for space in SPACES):
                return
            time.sleep(POLL_S)
        raise Failure("no spare table since %d s" % WAIT_S)

    # ---- writing ----

    def carry_out(self, commands):
        """`commands`: (request, its answer, what undoes it in the model), no two of one key."""
        until = time.monotonic() + WAIT_S
        while commands:
            again = []
            for block in blocks(commands):
                self.client.socket.sendall(b"".join(command[0] for command in block))
                came = answers(self.client, len(block))
                if came == [command[1] for command in block]:
                    continue
                for command, answer in zip(block, came):
                    if answer in TRY_AGAIN:
                        again.append(command)
                    elif answer == FULL and command[2]:
                        self.check_full(command[0])
                        command[2]()
                        self.full += 1
                    elif answer == b"NOT_STORED":
                        self.found += 1  # a member never added: the filter says it is there
                    elif answer != command[1]:
                        raise Failure("%r is answered %r, not %r" % (
                            command[0], answer, command[1]))
            self.sent += len(commands)
            self.refused += len(again)
            commands = again
            if commands and time.monotonic() > until:
                raise Failure("%r is refused since %d s" % (commands[0][0], WAIT_S))

    def check_full(self, request):
        """A new id was refused: there must be no room for it."""
        space, one = KEY.match(request).groups()
        space = space.decode()
        row = judge.Tables(self.client.tables(space), space).of(int(one))
        if not is_closed(row) and int(self.client.stats(b"spaces")[space + ":spare"]) > 0:
            raise Failure("%r is answered %r, and the table has room: %s" % (request, FULL, row))

    def some_record(self):
        random = self.rng.random  # randrange() takes several times as long
        slots = [int(random() * top) if random() < 0.7 else -1 for top in SMALL_MAX]
        if self.rng.random() < LARGE:
            slots[self.rng.randrange(len(slots))] = self.rng.randrange(LARGE_MIN, LARGE_MAX)
        elif max(slots) < 0:
            slots[2] = 1
        return tuple(slots)

    def keep(self, one, slots):
        """The record's value, as text."""
        self.records[one] = slots
        value = judge.text_of(slots)
        self.lines[one] = judge.value_line(one, value)
        return value

    def drop(self, one):
        del self.records[one], self.lines[one]

    def set_record(self, one):
        undo = None if one in self.records else lambda: self.drop(one)
        value = self.keep(one, self.some_record())
        return b"set feed:%d 0 0 %d\r\n%s\r\n" % (one, len(value), value), b"STORED", undo

    def add_member(self, one, i):
        states = self.members.setdefault(one, [judge.NEVER] * judge.MEMBERS)
        before, states[i] = states[i], judge.THERE
        return (b"add liked:%d:u%d 0 0 1\r\n1\r\n" % (one, i), b"STORED",
                lambda: states.__setitem__(i, before))

    def load(self):
        """Ids in rising order until memory is too small for them, `times` times."""
        while True:
            commands, pairs = [], []
            for one in range(self.next, self.next + STEP):
                if self.rng.random() >= LEFT_OUT:
                    commands.append(self.set_record(one))
                    pairs.extend(self.add_member(one, i) for i in range(judge.MEMBERS)
                                 if self.rng.random() < 0.9)
            self.next += STEP
            self.carry_out(commands)
            self.carry_out(pairs)
            tables = [Tables(self.client, space) for space in SPACES]
            if all(one.files and one.dumped >= self.options.times * one.in_memory
                   for one in tables):
                return tables

    # ---- changing ----

    def change_record(self, one):
        slots = self.records.get(one)
        what = self.rng.random()
        if slots is None or what < 0.25:
            return self.set_record(one)
        if what < 0.4:
            self.drop(one)
            return b"delete feed:%d\r\n" % one, b"DELETED", None
        slot = self.rng.randrange(len(judge.SLOTS))
        by = self.rng.randrange(1, SMALL_MAX[slot])
        value = (max(slots[slot], 0) + by) % (1 << 64)
        self.keep(one, slots[:slot] + (value,) + slots[slot + 1:])
        return (b"incr feed:%d.%s %d\r\n" % (one, judge.SLOTS[slot].encode(), by),
                b"%d" % value, None)

    def change_member(self, one):
        states = self.members.get(one, [judge.NEVER] * judge.MEMBERS)
        i = self.rng.randrange(judge.MEMBERS)
        if states[i] == judge.THERE:
            states[i] = judge.DELETED
            return b"delete liked:%d:u%d\r\n" % (one, i), b"DELETED", None
        return self.add_member(one, i)

    def change(self):
        """A share of all ids there ever were; nearly all of them are dumped."""
        everyone = range(1, self.next)
        self.carry_out([self.change_record(one) for one in
                        self.rng.sample(everyone, int(len(everyone) * CHANGED))])
        self.carry_out([self.change_member(one) for one in
                        self.rng.sample(everyone, int(len(everyone) * PAIRS_CHANGED))])

    def change_until_merged(self):
        before, rounds = self.figure("dump_merges"), 0
        until = time.monotonic() + WAIT_S
        while self.figure("dump_merges") == before or rounds == 0:
            if time.monotonic() > until:
                raise Failure("%d rounds of changes, and no file was merged" % rounds)
            self.change()
            rounds += 1
        self.change()
        return rounds + 1

    # ---- reading back ----

    def problem(self, line):
        self.problems.append(line)

    def compare(self, when):
        """Every id there ever was."""
        began = time.monotonic()
        tables = Tables(self.client, "liked")
        self.layers[1:] = [int(figures["layers"]) for _, _, figures in tables.of(range(1, self.next))]
        for block in blocks(range(1, self.next)):
            self.compare_records(when, block)
            self.compare_pairs(when, block)
            for one in block:
                self.count_never(one, 1)
            self.found += self.client.probes(block)
        if self.problems:
            raise Failure("%d problems\n%s" % (
                len(self.problems), "\n".join(self.problems[:SHOWN])))
        print("%s: %d ids exact, %d records and %d members of them there (%.1f s)" % (
            when, self.next - 1, len(self.records),
            sum(states.count(judge.THERE) for states in self.members.values()),
            time.monotonic() - began))
        sys.stdout.flush()

    def count_never(self, one, members):
        """So many members of this id that nobody added were asked for."""
        self.asked += members
        self.looks += members * self.layers[one]

    def compare_records(self, when, block):
        """As a whole, and one by one where that is not what it should be."""
        answer = self.client.ask(counters_request(block))
        if answer == b"".join(filter(None, map(self.lines.get, block))) + b"END\r\n":
            return
        found, before = judge.counters_in(answer), len(self.problems)
        for one in block:
            if found.get(one) != self.records.get(one):
                self.problem("%s: feed:%d is %s, not %s" % (
                    when, one, found.get(one, "absent"), self.records.get(one, "absent")))
        if len(self.problems) == before:
            raise Failure("%s: a page is answered %r" % (when, answer[:200]))

    def compare_pairs(self, when, block):
        states = [(one, self.members.get(one, NEVER_ADDED)) for one in block]
        answer = self.client.ask(members_request(block))
        wanted = []
        for one, both in states:
            lines, there = MEMBER_LINES[tuple(both)]
            wanted.append(lines % ((one,) * there))
        if answer == b"".join(wanted) + b"END\r\n":
            for one, both in states:
                self.count_never(one, both.count(judge.NEVER))
            return
        there = judge.members_in(answer)
        for one, both in states:
            self.compare_members(when, one, both, there)

    def compare_members(self, when, one, states, there):
        for i, state in enumerate(states):
            got = (one, i) in there
            if state == judge.NEVER:
                self.count_never(one, 1)
                self.found += got
            elif got != (state == judge.THERE):
                self.problem("%s: liked:%d:u%d is %s" % (
                    when, one, i, "found, and was deleted" if got else "denied, and was added"))

    def compare_false(self):
        """As often as conf/README.md promises."""
        allowed = judge.most_found(FALSE_POSITIVES, self.looks)
        print("members never added: %d asked for in %d filters, %d found; at most %d" % (
            self.asked, self.looks, self.found, allowed))
        if self.found > allowed:
            raise Failure("too many members are found that nobody added")

    # ---- counting reads ----

    def reads(self):
        return int(self.client.stats(b"cold")["cold_reads"])

    def cost(self, key):
        before = self.reads()
        self.client.ask(b"get %s\r\n" % key)
        return self.reads() - before

    def count_one(self, key, wanted, counts):
        got = self.cost(key)
        counts[got] = counts.get(got, 0) + 1
        if got != wanted:
            self.problem("get %s: %d reads of the disk, not %d" % (key.decode(), got, wanted))

    def storage_bytes(self):
        """What the system says it has read from storage for the daemon; None: it does not say."""
        try:
            with open("/proc/%d/io" % self.daemon.process.pid, encoding="ascii") as file:
                return int(dict(line.split(": ") for line in file)["read_bytes"])
        except OSError:
            return None

    def sample(self, rows, test):
        chosen = [row for row in rows if test(row)]
        return self.rng.sample(chosen, min(COUNTED, len(chosen)))

    def count_counters(self):
        self.quiet()
        rows = [row for row in Tables(self.client, "feed").of(sorted(self.records))
                if row[2]["layers"] == "1"]
        memory = self.sample(rows, lambda row: row[2]["cold"] == "0")
        dumped = [row for row in rows if row[2]["cold"] == "1"]
        sections = Sections(self.folder, "feed", {serial for _, serial, _ in dumped},
                            self.options.rollcall)
        sorts = {"in memory": [(one, 0) for one, _, _ in memory]}
        for name, cost in (("dumped, in place", 1), ("dumped, spilled or aux", 2),
                           ("dumped, spilled and aux", 3)):
            sorts[name] = [(one, cost) for one, serial, _ in self.sample(
                dumped, lambda row, cost=cost: sections.reads(row[1], row[0]) == cost)]
        for name, ids in sorts.items():
            if ids:
                self.count("feed: %s" % name, [(b"feed:%d" % one, cost) for one, cost in ids])
        if not sorts["dumped, in place"] or not sorts["dumped, spilled or aux"]:
            raise Failure("no such ids: the test is wrong")

    def count_members(self):
        keys = {"0": [], "1": []}
        for one, _, figures in Tables(self.client, "liked").of(sorted(self.members)):
            if figures["layers"] == "1":
                keys[figures["cold"]].extend(
                    b"liked:%d:u%d" % (one, i) for i in range(judge.MEMBERS))
        for name, cold in (("in memory", 0), ("dumped", 1)):
            chosen = self.rng.sample(keys[str(cold)], min(COUNTED, len(keys[str(cold)])))
            self.count("liked: " + name, [(key, cold) for key in chosen])

    def count(self, name, keys):
        counts, before = {}, self.storage_bytes()
        for key, wanted in keys:
            self.count_one(key, wanted, counts)
        after = self.storage_bytes()
        stored = "" if before is None else ", %d bytes by the system's count" % (after - before)
        print("%s: %d keys, %s%s" % (name, len(keys), ", ".join(
            "%d with %d reads" % (count, reads) for reads, count in sorted(counts.items())),
            stored))
        if self.problems:
            raise Failure("\n".join(self.problems[:SHOWN]))

    def count_cached(self):
        """What was just read is in the cache."""
        rows = Tables(self.client, "feed").of(sorted(self.records))
        ids = self.sample(rows, lambda row: row[2]["cold"] == "1")[:COUNTED // 10]
        first = sum(self.cost(b"feed:%d" % one) for one, _, _ in ids)
        self.count("feed: in the cache (%d reads the first time)" % first,
                   [(b"feed:%d" % one, 0) for one, _, _ in ids[-10:]])

    # ---- all of it ----

    def steps(self):
        self.start("off")
        began = time.monotonic()
        tables = self.load()
        for space, one in zip(SPACES, tables):
            print("%s: %d dumped in %d tables, %d in memory: %.1f times" % (
                space, one.dumped, one.files, one.in_memory, one.dumped / one.in_memory))
        print("loaded in %.1f s" % (time.monotonic() - began))
        self.compare("loaded")
        self.count_counters()
        self.count_members()
        self.change()
        self.compare("changed")
        self.stop()
        took = self.start("on")
        print("stopped, serves after %.0f ms" % (took * 1000))
        self.compare("after a clean stop")
        self.count_cached()
        rounds = self.change_until_merged()
        merges = self.figure("dump_merges")
        self.kill()
        took = self.start("on")
        print("%d rounds of changes, %d merges, kill -9, serves after %.0f ms" % (
            rounds, merges, took * 1000))
        print("%d of %d commands were sent again, %d new ids did not fit into dumped tables" % (
            self.refused, self.sent, self.full))
        if self.refused > BUSY_MAX * self.sent or self.full > FULL_MAX * self.sent:
            raise Failure("too many")
        self.compare("after kill -9")
        self.compare_false()
        if self.figure("cold_bad_pages") or self.figure("cold_failed"):
            raise Failure("reads of the disk have failed")
        self.stop()

    def run(self):
        """None, or what was wrong."""
        try:
            self.steps()
            return None
        except (Failure, judge.Lost, protocol.Mismatch, OSError) as problem:
            return "%s\n%s" % (problem, self.daemon.output()[-2000:] if self.daemon else "")
        finally:
            if self.daemon is not None:
                self.daemon.kill()


def arguments():
    scale = scale_of_run()
    parser = argparse.ArgumentParser(description="See the top of this file.")
    add = parser.add_argument
    add("--seed", type=int, default=0, help="0: as $ROLLCALL_TEST_SEED says")
    add("--table-size", default="64KiB" if scale <= 100 else "256KiB")
    add("--times", type=float, default=TIMES, help="dumped ids for one in memory")
    add("--directory", help="where the folder is made (default: TMPDIR)")
    options = parser.parse_args()
    options.rollcall = os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))
    return options


def main():
    options = arguments()
    gc.disable()  # nothing here has cycles, and to look for them takes a third of the time
    seed = seed_of_run(options.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    folder = Folder(options.directory)
    try:
        problem = Cold(folder, options, seed).run()
        if problem:
            folder.keep()
            print("FAIL seed %d: %s\nkept: %s" % (seed, problem, folder.path))
            return 1
        print("0 lost")
        return 0
    finally:
        folder.remove()


if __name__ == "__main__":
    sys.exit(main())
