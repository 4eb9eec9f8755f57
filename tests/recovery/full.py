#!/usr/bin/env python3
"""A disk that is full: do reads go on, do writes say so, does all recover, is nothing lost?

    tests/recovery/full.py [--cycles N] [--seed N] [--megabytes N] [--oldest refuse,dump]

$ROLLCALLD and $ROLLCALL_BUILD as in crash.py; with $ROLLCALL_TEST_SCALE below 100 loads are shorter, and
checkpoints as much more frequent and more ids of a load new. Mounts a small tmpfs, so it needs root and is
skipped by name elsewhere. With `oldest: refuse` nothing but journal and checkpoints needs the disk; with
`oldest: dump` tables are to leave memory for it, too. Each cycle of each, on the same directory,
with the next sync policy:

1. load, and all is judged (judge.py);
2. a ballast file takes the room that is left, or all but what the images of a checkpoint need, so
   that one fails midway, and the load goes on until writes are refused: they must get a
   SERVER_ERROR, reads must be answered, and what was answered must hold;
3. the daemon is killed now, under load, and started: in every second cycle when there is room
   again, else on the full disk, where it must serve all the same, and twice running;
4. the ballast goes: within a short time nothing is refused any more for want of room;
5. load, kill -9 under load, restart, all is judged.

Prints a line a cycle; exits 1 on a failure, saying what was acknowledged, recovered and sent, and
copies the data directory to a folder that it names.
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import judge
from refusals import BUSY, NO_TABLE, is_closed
from victim import FALSE_POSITIVES, Failure, Folder, Load, Victim, protocol, scale_of_run, seed_of_run

SKIPPED = 77
CYCLES = 3
SYNCS = ("everysec", "always", "never")
MEGABYTES = 32
IDS_MAX = 1 << 20
REFUSE_S = 30  # until a full disk is felt
RECOVER_S = 15  # until room is felt
DUMP_S = 60  # until a table has been dumped, under load
PROBE_MS = 10  # a load that asks whether room is felt
PAUSE_S = 0.02  # between two of them
READ_S = 5  # one read while the disk is full
SCALE = min(100, max(34, scale_of_run()))  # per cent of the times below
LOAD_MS = 3 * SCALE
KILL_S = 0.005 * SCALE  # a load is under way at most before the daemon is killed
LEFT_MAX = 1 << 20  # of room, for the images of a checkpoint to begin with
DEPTH = 64
NEW = 4000 // (100 + SCALE)  # ids in 1,000 commands
VALUES = {"table_size": "64KiB", "dicts": "256KiB",
          "segment": "1MiB", "buffer": "1MiB", "every": "%dms" % LOAD_MS, "journal": "4MiB"}
PARTS = {"refuse": {"memory": "256MiB", "tables": 40},  # as many as no part fills
         "dump": {"memory": "512MiB", "tables": 3}}  # cold reads as well
NO_ROOM = "out of disk space"
# What else is refused: kind of key, reason -> how much of a part's answers at most, from when the disk is filled
# until the daemon is started where it has room: till then an overlay may be full, and cannot be merged, and no table
# is had for ten seconds after a dump failed.
REFUSED_MAX = {"refuse": {},
               "dump": {("counter", BUSY): 0.05, ("counter", NO_TABLE): 0.02,
                        ("member", BUSY): 0.05, ("member", NO_TABLE): 0.02}}


class Disk:
    """A tmpfs with the data directory and a ballast."""

    def __init__(self, folder, megabytes):
        self.path = os.path.join(folder.path, "disk")
        os.mkdir(self.path)
        command = ["mount", "-t", "tmpfs", "-o", "size=%dm,mode=0711" % megabytes, "tmpfs", self.path]
        done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise protocol.Mismatch("no tmpfs can be mounted: " + done.stderr.strip())
        self.ballast = os.path.join(self.path, "ballast")
        folder.data = folder.own(os.path.join(self.path, "data"))

    def fill(self, left=0):
        """Takes all room there is but `left` bytes."""
        with open(self.ballast, "ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass
        os.truncate(self.ballast, max(0, os.path.getsize(self.ballast) - left))

    def free(self):
        if os.path.exists(self.ballast):
            os.unlink(self.ballast)

    def unmount(self):
        subprocess.run(["umount", self.path], check=False)


class Test:
    """The daemon on that disk and what it must hold."""

    def __init__(self, oldest, folder, disk, seed):
        self.oldest, self.folder, self.disk = oldest, folder, disk
        self.values = dict(VALUES, oldest=oldest, **PARTS[oldest])
        self.model = judge.Model(os.path.join(folder.path, "model"), IDS_MAX)
        self.judge = judge.Judge(self.model, oldest, FALSE_POSITIVES)
        self.judge.dumps_fail = True
        self.rng = random.Random(seed)
        self.daemon = None
        self.count = 0  # loads begun
        self.room = True  # nothing may be refused
        self.answered, self.refused = 0, {}  # the second: (kind, reason) -> how often, of REFUSED_MAX
        self.false_positives = 0

    def start(self, sync):
        self.folder.configure(dict(self.values, sync=sync))
        self.daemon = Victim(self.folder)
        self.daemon.serve()

    def begin_load(self, milliseconds):
        self.count += 1
        return Load(self.daemon.address[1], self.model, depth=DEPTH, new=NEW, window=1 << 40,
                    milliseconds=milliseconds, round=self.count, seed=self.rng.getrandbits(62),
                    refuses=int(self.oldest == "refuse"))

    def finish(self, load, ending):
        try:
            load.finish()
        finally:
            load.kill()
        self.false_positives += load.false_positives
        if load.wrong:
            raise Failure("\n".join(load.wrong))
        if load.ends != {ending}:
            raise Failure("connections ended %s, not %s" % (", ".join(sorted(load.ends)), ending))
        self.answered += load.answered
        return self.refused_for_room(load.refused)

    def refused_for_room(self, refused):
        """How many were for want of room; only what may come may be among the others."""
        for key, count in refused.items():
            allowed = key[1] == NO_ROOM or key in REFUSED_MAX[self.oldest]
            if not allowed or self.room and not (key[1] == NO_TABLE and self.has_closed(key[0])):
                raise Failure("%d x %s %s%s" % (count, *key, ", and the disk has room" if self.room else ""))
            if key[1] != NO_ROOM:
                self.refused[key] = self.refused.get(key, 0) + count
        return sum(count for (_, reason), count in refused.items() if reason == NO_ROOM)

    def has_closed(self, kind):
        """A dumped filter that is full refuses, though the disk has room."""
        space = judge.SPACES[kind]
        client = self.daemon.connect()
        rows = judge.Tables(client.tables(space), space).rows
        client.socket.close()
        return any(is_closed(row) for row in rows)

    def check_refused(self):
        for key, count in self.refused.items():
            if count > REFUSED_MAX[self.oldest][key] * self.answered:
                raise Failure("%d of %d x %s %s" % (count, self.answered, *key))

    def load(self, milliseconds=LOAD_MS):
        """What was refused for want of room in a short load."""
        return self.finish(self.begin_load(milliseconds), "drained")

    def compare(self, pending=(), refused=None):
        client = self.daemon.connect()
        ids, _ = self.judge.judge(client, list(pending), refused or {}, None, self.rng)
        client.socket.close()
        if self.judge.count:
            raise Failure("\n".join(self.judge.problems))
        return ids

    def reads_go_on(self):
        client = self.daemon.connect()
        client.socket.settimeout(READ_S)
        for _ in range(20):
            client.ask(b"get feed:%d\r\n" % self.rng.randrange(1, self.model.next))
        client.socket.close()

    def until_refused(self):
        until = time.monotonic() + REFUSE_S
        while time.monotonic() < until:
            load = self.begin_load(LOAD_MS)
            try:
                self.reads_go_on()
            finally:
                refused = self.finish(load, "drained")
            if refused:
                self.reads_go_on()
                return refused
        raise Failure("the disk is full, and nothing was refused in %d s" % REFUSE_S)

    def until_taken(self):
        began = time.monotonic()
        while time.monotonic() < began + RECOVER_S:
            refused = self.load(PROBE_MS) or self.load()
            if not refused:
                return time.monotonic() - began
            time.sleep(PAUSE_S)
        raise Failure("there is room again, and after %d s still: %d x %s" % (RECOVER_S, refused, NO_ROOM))

    def until_dumped(self):
        """On a slow machine the cycles may have written too little for a table to leave memory."""
        until = time.monotonic() + DUMP_S
        client = self.daemon.connect()
        while client.stats(b"")["dump_files"] == "0":
            if time.monotonic() > until:
                raise Failure("no table has left memory after %d s" % DUMP_S)
            self.load()
        client.socket.close()
        self.compare()

    def kill(self, sync, room):
        """kill -9 under load; `room`: called before it is started again."""
        load = self.begin_load(0)
        time.sleep(self.rng.uniform(0.02, KILL_S))
        self.daemon.kill_now()
        self.finish(load, "closed")
        room()
        self.start(sync)
        return self.compare(load.pending, load.refused)

    def cycle(self, number):
        sync = SYNCS[number % len(SYNCS)]
        self.load()
        self.compare()
        self.room = False
        self.disk.fill(self.rng.choice((0, self.rng.randrange(LEFT_MAX))))
        refused = self.until_refused()
        self.compare()
        if number % 2 == 0:
            self.kill(sync, self.disk.free)
        else:
            self.kill(sync, self.disk.fill)
            self.reads_go_on()
            self.kill(sync, self.disk.fill)
        self.disk.free()
        took = self.until_taken()
        ids = self.kill(sync, lambda: None)
        self.room = True
        print("%d: %d x %s; taken again after %.1f s; %d ids judged; then sync %s%s" % (
            number, refused, NO_ROOM, took, ids, sync,
            "".join("; so far %d x %s %s" % (count, *key) for key, count in self.refused.items())))
        sys.stdout.flush()

    def run(self, cycles):
        """None, or what was wrong."""
        try:
            self.start(SYNCS[0])
            for number in range(1, cycles + 1):
                self.cycle(number)
            if self.oldest == "dump":
                self.until_dumped()
            self.check_refused()
            self.judge.false_positives(self.false_positives)
            return self.judge.problems[0] if self.judge.count else self.daemon.stop(False)
        except (Failure, judge.Lost, protocol.Mismatch, OSError) as problem:
            return "%s\n%s" % (problem, self.daemon.output()[-2000:] if self.daemon else "")
        finally:
            if self.daemon is not None:
                self.daemon.kill()


def part(oldest, options, seed):
    """The exit status of one part."""
    folder = Folder()
    disk = None
    try:
        try:
            disk = Disk(folder, options.megabytes)
        except (protocol.Mismatch, OSError) as problem:
            print("SKIP: a full disk: %s" % problem)
            return SKIPPED
        problem = Test(oldest, folder, disk, seed).run(options.cycles)
        if problem:
            folder.keep()
            shutil.copytree(folder.data, os.path.join(folder.path, "data-kept"))
            print("FAIL %s, seed %d: %s\nkept: %s" % (oldest, seed, problem, folder.path))
            return 1
        print("%s: %d cycles, 0 lost" % (oldest, options.cycles))
        return 0
    finally:
        if disk is not None:
            disk.unmount()
        folder.remove()


def main():
    parser = argparse.ArgumentParser(description="See the top of this file.")
    parser.add_argument("--cycles", type=int, default=CYCLES, help="of each part")
    parser.add_argument("--seed", type=int, default=0, help="0: as $ROLLCALL_TEST_SEED says")
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="of the disk")
    parser.add_argument("--oldest", default=",".join(PARTS), help="parts: refuse, dump")
    options = parser.parse_args()
    parts = options.oldest.split(",")
    if any(oldest not in PARTS for oldest in parts):
        parser.error("--oldest: refuse or dump")
    seed = seed_of_run(options.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the disk is unmounted
    if os.geteuid() != 0:
        print("SKIP: a full disk: mounting one needs root")
        return SKIPPED
    for oldest in parts:
        status = part(oldest, options, seed)
        if status != 0:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
