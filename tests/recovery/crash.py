#!/usr/bin/env python3
"""Kill and restart: does everything that was acknowledged come back, and nothing that was not sent?

    tests/recovery/crash.py                        the self-test, then 10 rounds of each part
    tests/recovery/crash.py --rounds 100           as make check-crash
    tests/recovery/crash.py --seed 7 --oldest refuse --sync always
    tests/recovery/crash.py --no-kill --no-data    the load and the judge alone, nothing is killed
    tests/recovery/crash.py --self-test            does the judge see it when something is lost?

$ROLLCALLD names the daemon, $ROLLCALL_BUILD the folder of the build, where tests/recovery/load is.

A part is a daemon with tables, segments and checkpoints so small that something is always going on:
`oldest: recycle` (only the newest ids stay, a table goes many times a second), `oldest: refuse` (no
id ever goes), `oldest: dump` (most ids come to lie in files). Each round of it, on
the same directory:

1. load.c: writers that change ids of their own, old and new, and check every answer.
2. At a random moment the daemon is killed: just so, when a file came or went (a segment, a
   checkpoint, a manifest), when a table was opened or recycled, soon after SIGUSR2. Or it is stopped
   with SIGTERM.
3. Started again, with the next sync policy; sometimes killed once more while it recovers.
4. Everything is read back and judged (judge.py says how), and is what the next round begins with.

All that is random comes from the seed, each round's from the seed, the part and its number; the
moment as the system's clock and scheduler hit it. Prints a line a round; on a failure says what was
acknowledged, recovered and sent, keeps the folder, and exits 1.
"""
import argparse
import copy
import os
import random
import signal
import sys
import time

import judge
from refusals import BUSY, NO_MEMORY, NO_TABLE
from victim import FALSE_POSITIVES, Failure, Folder, Load, Victim, protocol, scale_of_run, seed_of_run

ROUNDS = 10
SYNCS = ("never", "everysec", "always")
TABLES = {"recycle": 6, "refuse": 24, "dump": 6}
DICTS = {"recycle": "512KiB", "refuse": "64KiB", "dump": "512KiB"}  # refuse: they fill up as well
MEMORY = {"recycle": "128MiB", "refuse": "128MiB", "dump": "512MiB"}  # dump: cold reads as well
PARTS = tuple(TABLES)
IDS_MAX = 8 << 20
IDS_A_TABLE = 5000  # a few more than a table of 64 KiB holds
WATCH_S = 1.0  # for the moment a round waits for
POLL_S = 0.0002
RECENT = 25000  # of dumped ids: so many of the newest are judged each round,
SHARE = 0.03  # and this share of the others, and all in the last
# What may be refused though nothing fails: kind of key, reason -> how much of a part's answers at most. That it is
# refused only while there is no room the judge sees after each round (refusals.py).
REFUSED_MAX = {
    "recycle": {},
    # The row gets full, and before it the small dict of deleted members: 8 % of the commands delete one
    "refuse": {("counter", NO_TABLE): 0.12, ("member", NO_TABLE): 0.05, ("member", NO_MEMORY): 0.08},
    # A dumped filter whose late-room is used up takes no new members; an overlay that is full waits for a merge
    "dump": {("member", NO_TABLE): 0.01, ("counter", BUSY): 0.005, ("member", BUSY): 0.005},
}
TAMPER_ROUNDS = 8  # at most, until there is something of the kind that is to be lost
ENDINGS = {"kill": 8, "files": 5, "roll": 4, "checkpoint": 4, "stop": 2}


class Plan:
    """What a round does."""

    def __init__(self, seed, part, number, options):
        rng = random.Random("%d/%s/%d" % (seed, part, number))
        low, high = options.duration
        self.rng = rng
        self.seconds = rng.uniform(low, high)
        self.depth = rng.choice((1, 16, 64, 256, 1024))
        self.new = rng.choice((3, 30, 150))
        self.ending = rng.choices(list(ENDINGS), ENDINGS.values())[0]
        self.delay = rng.choice((0, rng.uniform(0, 0.003), rng.uniform(0, 0.03)))
        self.recoveries = []  # kills in a recovery, as a part of the time the last one took
        while len(self.recoveries) < 3 and rng.random() < 0.3:
            self.recoveries.append(rng.uniform(0, 1.3))
        self.seed = rng.getrandbits(63)
        if options.no_kill:
            self.ending, self.recoveries = "drain", []


class Part:
    """One directory and its rounds."""

    def __init__(self, oldest, seed, options):
        self.oldest, self.seed, self.options = oldest, seed, options
        self.folder = Folder(options.directory)
        path = os.path.join(self.folder.path, "model")
        self.model = judge.Model(path, IDS_MAX)
        self.judge = judge.Judge(self.model, oldest, FALSE_POSITIVES)
        self.daemon = None
        self.refused = {}  # (kind, reason) -> how often
        self.kills = self.answered = self.seconds = self.false_positives = 0
        self.took = 0.05  # seconds the last start took

    def start(self, number):
        options = self.options
        self.folder.configure({
            "memory": options.memory or MEMORY[self.oldest], "oldest": self.oldest,
            "table_size": options.table_size, "tables": TABLES[self.oldest],
            "dicts": DICTS[self.oldest], "sync": self.sync(number), "segment": options.segment,
            "buffer": options.buffer, "every": options.every, "journal": options.journal},
            not options.no_data)
        self.daemon = Victim(self.folder)

    def serve(self):
        self.took = self.daemon.serve()

    def load(self, number, plan, milliseconds):
        window = 1 << 40 if self.oldest != "recycle" else TABLES[self.oldest] * IDS_A_TABLE
        return Load(self.daemon.address[1], self.model, writers=self.options.writers,
                    depth=plan.depth, seed=plan.seed, milliseconds=milliseconds, new=plan.new,
                    window=window, round=number, recycles=int(self.oldest == "recycle"),
                    refuses=int(self.oldest == "refuse"))

    # ---- the moment ----

    def await_change(self, look):
        before, until = look(), time.monotonic() + WATCH_S
        while look() == before and time.monotonic() < until:
            time.sleep(POLL_S)

    def tables(self, client):
        figures = client.stats(b"spaces")
        return [figures[space + name] for space in judge.SPACES.values()
                for name in (":tables", ":layers", ":spare")]

    def strike(self, plan):
        """Ends the daemon as the plan says."""
        time.sleep(plan.seconds)
        if plan.ending == "files":
            self.await_change(self.folder.names)
        elif plan.ending == "roll":
            client = self.daemon.connect()
            self.await_change(lambda: self.tables(client))
            client.socket.close()
        elif plan.ending == "checkpoint":
            self.daemon.signal(signal.SIGUSR2)
        elif plan.ending == "stop":
            problem = self.daemon.stop(False)
            if problem:
                raise Failure(problem)
            return
        time.sleep(plan.delay)
        self.daemon.kill_now()
        self.kills += 1

    def restart(self, number, plan):
        """Starts it for the next round; kills it while it recovers as often as the plan says."""
        for share in plan.recoveries:
            self.start(number + 1)
            time.sleep(share * self.took)
            self.daemon.kill_now()
            self.kills += 1
        self.start(number + 1)
        self.serve()

    # ---- a round ----

    def chosen(self, number, pending):
        """Which ids are judged; None: all."""
        if self.oldest != "dump" or number == self.options.rounds:
            return None
        recent = self.model.next - RECENT
        keys = {command.id for command in pending}
        rng = random.Random("%d/%d" % (self.seed, number))
        return lambda one, changed: (
            one > recent or changed == number or one in keys or rng.random() < SHARE)

    def check_load(self, load, ending):
        """The load itself must have ended as it should, without an answer that may not come."""
        if load.wrong:
            raise Failure("\n".join(load.wrong))
        if load.ends != {ending}:
            raise Failure("connections ended %s, not %s" % (", ".join(sorted(load.ends)), ending))
        for key, count in load.refused.items():
            if key not in REFUSED_MAX[self.oldest]:
                raise Failure("%d x %s %s" % (count, *key))
            self.refused[key] = self.refused.get(key, 0) + count

    def check_refused(self):
        """Ends a part: no reason may have been given for more commands than it may."""
        for key, count in self.refused.items():
            if count > REFUSED_MAX[self.oldest][key] * self.answered:
                raise Failure("%d of %d x %s %s" % (count, self.answered, *key))

    def round(self, number):
        plan = Plan(self.seed, self.oldest, number, self.options)
        began = time.monotonic()
        load = self.load(number, plan,
                         int(plan.seconds * 1000) + 1 if self.options.no_kill else 0)
        try:
            if not self.options.no_kill:
                self.strike(plan)
            load.finish()
        finally:
            load.kill()
        self.seconds += time.monotonic() - began
        self.answered += load.answered
        self.false_positives += load.false_positives
        self.check_load(load, "drained" if self.options.no_kill else "closed")
        if not self.options.no_kill:
            self.daemon.check_log()
            self.restart(number, plan)
        client = self.daemon.connect()
        ids, happened = self.judge.judge(
            client, load.pending, load.refused, self.chosen(number, load.pending), plan.rng)
        client.socket.close()
        self.tell(number, plan, load, ids, happened)

    def sync(self, number):
        return self.options.sync[number % len(self.options.sync)]

    def tell(self, number, plan, load, ids, happened):
        refused = "".join(", %d x %s %s" % (count, *key) for key, count in load.refused.items())
        print("%s %d/%d: %s, %s: %d answered%s, %d not (%d had happened); %d ids judged; "
              "serves after %.0f ms%s" % (
                  self.oldest, number, self.options.rounds, self.sync(number), plan.ending,
                  load.answered, refused, len(load.pending),
                  happened, ids, self.took * 1000,
                  ", killed %d x before" % len(plan.recoveries) if plan.recoveries else ""))
        sys.stdout.flush()

    def rounds(self):
        """All rounds; the number of the one that failed, or None."""
        number = 1
        try:
            self.start(number)
            self.serve()
            for number in range(1, self.options.rounds + 1):
                self.round(number)
                if self.judge.count:
                    break
            self.check_refused()
            self.judge.false_positives(self.false_positives)
        except (Failure, judge.Lost, protocol.Mismatch, OSError) as problem:
            self.judge.problem(str(problem))
        return number if self.judge.count else None

    def run(self):
        """True: nothing was lost."""
        try:
            failed = self.rounds()
            if failed is None and self.daemon.alive():
                problem = self.daemon.stop(False)
                if problem:
                    self.judge.problem(problem)
                    failed = self.options.rounds
            if failed is not None:
                self.fail(failed)
            return failed is None
        finally:
            if self.daemon is not None:
                self.daemon.kill()
            self.folder.remove()

    def fail(self, number):
        if self.options.quiet:
            return
        print("FAIL %s, round %d, seed %d, sync %s: %d problems" % (
            self.oldest, number, self.seed, self.sync(number), self.judge.count))
        for problem in self.judge.problems:
            print("    " + problem.rstrip().replace("\n", "\n    "))
        self.folder.keep()
        with open(os.path.join(self.folder.path, "daemon.log"), "w", encoding="utf-8") as file:
            file.write(self.daemon.output() if self.daemon else "")
        print("    kept: %s (data, config.yaml, daemon.log, model)" % self.folder.path)


# ---- the judge judged ----

def tamper_counter(model, number, by):
    slots, members, _, _ = model.entry(number)
    model.put(number, (slots[0], slots[1], max(slots[2], 0) + by, slots[3]), members)


def tamper_member(model, number, old, new):
    slots, members, _, _ = model.entry(number)
    members[members.index(old)] = new
    model.put(number, slots, members)


def some_id(model, test):
    """The newest for which it is true; LookupError: there is none yet."""
    for number in range(model.next - 1, 0, -1):
        if test(*model.entry(number)[:2]):
            return number
    raise LookupError


TAMPERS = {
    "nothing": None,
    "an increment that is lost": lambda model: tamper_counter(
        model, some_id(model, lambda slots, members: slots[2] > 0), 1),
    "an increment nobody sent": lambda model: tamper_counter(
        model, some_id(model, lambda slots, members: slots[2] > 0), -1),
    "an id that is lost": lambda model: tamper_counter(
        model, some_id(model, lambda slots, members: slots == judge.NOTHING), 1),
    "an add that is lost": lambda model: tamper_member(
        model, some_id(model, lambda slots, members: judge.NEVER in members), judge.NEVER,
        judge.THERE),
    "a delete that is lost": lambda model: tamper_member(
        model, some_id(model, lambda slots, members: judge.THERE in members), judge.THERE,
        judge.DELETED),
}


class Tampered(Part):
    """Judges a second time, after the model was changed."""

    def __init__(self, tamper, *rest):
        super().__init__(*rest)
        self.tamper = tamper

    def tell(self, number, *rest):
        if self.tamper:
            try:
                self.tamper(self.model)
            except LookupError:
                return  # a slow machine: a later round will have one
            client = self.daemon.connect()
            self.judge.judge(client, [], {}, None, random.Random(1))
            client.socket.close()


class Emptied(Part):
    """A daemon without data is killed: all is lost."""

    def tell(self, *rest):
        pass


def self_test(options, seed):
    """True: each loss was seen, and nothing else."""
    options = copy.copy(options)
    options.quiet, options.no_data = True, True
    good = True
    for name, tamper in list(TAMPERS.items()) + [("everything that is lost", None)]:
        whole = name.startswith("everything")
        options.no_kill = not whole
        options.rounds = TAMPER_ROUNDS if tamper else 1
        options.duration = (0.2, 0.3)
        part = (Emptied("refuse", seed, options) if whole
                else Tampered(tamper, "recycle", seed, options))
        passed = part.run() == (tamper is None and not whole)
        if not passed:
            print("FAIL self-test: %s: %s" % (name, part.judge.problems or "not seen"))
        good = good and passed
    print("self-test: %s" % ("ok" if good else "the judge itself is wrong"))
    return good


# ---- the command line ----

def seconds_pair(value):
    low, _, high = value.partition("..")
    return float(low), float(high or low)


def arguments():
    scale = scale_of_run()
    parser = argparse.ArgumentParser(description="See the top of this file.")
    add = parser.add_argument
    add("--rounds", type=int, default=max(2, ROUNDS * scale // 100), help="of each part")
    add("--seed", type=int, default=0, help="0: as $ROLLCALL_TEST_SEED says")
    add("--sync", choices=SYNCS + ("all",), default="all", help="all: each round the next")
    add("--oldest", default=",".join(PARTS), help="parts: recycle, refuse, dump")
    add("--duration", type=seconds_pair, default=(0.05, 1.2), metavar="LOW..HIGH",
        help="seconds of load in a round")
    add("--writers", type=int, default=4)
    add("--no-kill", action="store_true", help="the load ends by itself")
    add("--no-data", action="store_true", help="a daemon that keeps nothing")
    add("--self-test", action="store_true", help="does the judge see a loss?")
    add("--directory", help="where the folder is made (default: TMPDIR)")
    add("--memory", help="of the configuration (default: as the part needs)")
    for name, usual in (("table-size", "64KiB"), ("segment", "1MiB"), ("buffer", "1MiB"),
                        ("every", "300ms"), ("journal", "4MiB")):
        add("--" + name, default=usual, help="of the configuration (%(default)s)")
    options = parser.parse_args()
    options.sync = SYNCS if options.sync == "all" else (options.sync,)
    options.parts = options.oldest.split(",")
    options.quiet = False
    if any(part not in PARTS for part in options.parts):
        parser.error("--oldest: recycle, refuse or dump")
    return options


def main():
    options = arguments()
    seed = seed_of_run(options.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    if options.self_test or len(sys.argv) == 1:
        if not self_test(options, seed):
            return 1
        if options.self_test:
            return 0
    parts = []
    for oldest in options.parts:
        parts.append(Part(oldest, seed, options))
        if not parts[-1].run():
            return 1
    print("%.0f commands a second" % (
        sum(part.answered for part in parts) / max(sum(part.seconds for part in parts), 0.001)))
    print("%d rounds, %d ids judged, %d kills, 0 lost" % (
        options.rounds * len(parts), sum(part.judge.ids for part in parts),
        sum(part.kills for part in parts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
