#!/usr/bin/env python3
"""What followers cost, and what they give: ratios of one run, for a quiet machine with two cores or more.

    tests/bench/follow.py worker       the leader's worker, an increment: alone, with one follower, with three
    tests/bench/follow.py ack          increments a second with `ack: replica`, and with a follower nobody waits for
    tests/bench/follow.py lag          how far behind a follower is while increments come at --rate
    tests/bench/follow.py readers      p99 of a follower's readers while increments come at --rate, and without
    tests/bench/follow.py copy         seconds of a copy of --gib, and of cp of the same files on the same disk;
                                       p99 of the leader's increments at --rate beside either, and without

$ROLLCALLD and $ROLLCALL name the programs (else build/). Several may be named; each prints its figure and its
goal. Nothing is judged: exit 1 only if something does not run. What is compared takes turns, --rounds times,
as a machine's speed changes within seconds; the median of the pairs' ratios counts. Worker and load have a
core each (data.py); followers share the load's, so `worker` shows what they cost who is followed, and not
what a machine of two cores gives to all. In `copy` leader's worker and increments have a core, all else has
the other one. In `readers` the follower's worker and its readers have a core, all
that works for the increments has the other one, and the follower's threads go first on both (SCHED_FIFO).
"""
import datetime
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from data import (CONNECTIONS, IDS, Pinned, Server, Failure, judge, one_space, ratio_of_pairs,  # noqa: E402
                  parser_of, run_parts)

WORKER_GOALS = {1: 1.05, 3: 1.10}
ACK_GOAL, LAG_GOAL_MS, READERS_GOAL = 0.7, 5, 1.3
COPY_GOAL, TRAFFIC_GOAL = 1.3, 1.3
PIPELINE = 16
TURN = 256  # requests of a turn, of `worker`
LEVEL_S = 120
SAMPLE_S = 0.02
TABLE_MIB, COPY_IDS = 256, 100000  # of `copy`: each table, and what is in it
TRAFFIC_RUN_S, QUIET_S = 1, 5  # of `copy`: a run of increments, and how long they go on without a copy
NAMED = 'replication: {name: %s%s}\n'
STREAMS = "follower-streaming"


class Node(Server):
    """A daemon with a name; leader: whom it follows."""

    def __init__(self, options, name, leader=None, more=", keep: 8GiB", spaces=None):
        follow = ', follow: "127.0.0.1:%d"' % leader.address[1] if leader else ""
        super().__init__(options, spaces or [one_space("refuse", "64MiB", 2)], memory="16GiB",
                         more=NAMED % (name, follow + more))
        self.serve()

    def serving(self):
        """Whether it says how it is: a follower may have nothing to read yet."""
        try:
            return bool(self.state())
        except (judge.Lost, OSError):
            return False

    def state(self):
        client = self.connect()
        try:
            return client.stats(b"replication")
        finally:
            client.socket.close()

    def said_at(self, words):
        """When its log said so, in seconds; None: it has not."""
        for line in self.output().splitlines():
            if words in line:
                return datetime.datetime.fromisoformat(line.split("Z ")[0]).timestamp()
        return None

    def level(self, leader):
        until = time.monotonic() + LEVEL_S
        while time.monotonic() < until:
            here = self.state()
            if here["state"] == STREAMS and int(here["applied"]) >= int(leader.state()["written"]):
                return
            time.sleep(0.01)
        raise Failure("a follower does not catch up: %s" % self.state())


def on_core(which, node):
    """All threads of a daemon."""
    core = which(os.sched_getaffinity(0))
    for thread in os.listdir("/proc/%d/task" % node.process.pid):
        os.sched_setaffinity(int(thread), {core})


class Group:
    """Leaders, each with its followers; all end together."""

    def __init__(self, options):
        self.options, self.nodes = options, []

    def lead(self, followers, more=""):
        leader = Node(self.options, "one", more=", keep: 8GiB" + more)
        self.nodes.append(leader)
        leader.followers = []
        for number in range(followers):
            leader.followers.append(Node(self.options, "f%d" % number, leader))
            self.nodes.append(leader.followers[-1])
        for follower in leader.followers:
            follower.level(leader)
        if "ack: replica" in more:
            self.wait_in_sync(leader)
        leader.bench("--load", "--requests", 0, "--ids", IDS)
        for node in [leader, *leader.followers]:
            node.pin()
        for follower in leader.followers:
            on_core(min, follower)
        return leader

    @staticmethod
    def wait_in_sync(leader):
        until = time.monotonic() + LEVEL_S
        while leader.state()["in_sync"] != "1":
            if time.monotonic() > until:
                raise Failure("no follower is in sync: %s" % leader.state())
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes[::-1]:
            node.end()


def increments(leader, options, *how):
    with Pinned():
        return leader.bench("--workload", "incr", "--verify", "form", "--ids", IDS, "--seconds", options.seconds,
                            *how)["run"]["requests_per_s"]


def turns(options, leaders, *how):
    """Loads the leaders in turn: of each the rates, and the nanoseconds of its worker an increment."""
    rates, costs = [[] for _ in leaders], [[] for _ in leaders]
    for number in range(options.rounds):
        order = range(len(leaders)) if number % 2 == 0 else reversed(range(len(leaders)))
        for i in order:
            before = leaders[i].worked_ns()
            rate = increments(leaders[i], options, *how)
            rates[i].append(rate)
            costs[i].append((leaders[i].worked_ns() - before) / (rate * options.seconds))
            for follower in leaders[i].followers:
                follower.level(leaders[i])
    return rates, costs


def worker(options):
    """By one connection, whose turns are always as large: many connections of a load that has less of its
    core send less at once, and it is the smaller turns that cost."""
    with Group(options) as group:
        leaders = [group.lead(followers) for followers in (0, 1, 3)]
        _, costs = turns(options, leaders, "--connections", 1, "--pipeline", TURN)
        for leader, cost in zip(leaders[1:], costs[1:]):
            followers = len(leader.followers)
            print("worker: %.0f ns an increment alone, %.0f with %d: ratio %s (goal: at most %.2f)" % (
                statistics.median(costs[0]), statistics.median(cost), followers,
                ratio_of_pairs(cost, costs[0]), WORKER_GOALS[followers]))


def ack(options):
    with Group(options) as group:
        leaders = [group.lead(1), group.lead(1, ", ack: replica, ack-by: f0")]
        rates, _ = turns(options, leaders, "--connections", CONNECTIONS, "--pipeline", PIPELINE)
        print("ack: %.0f increments/s with a follower, %.0f that wait for it: ratio %s (goal: at least %.1f)" % (
            *map(statistics.median, rates), ratio_of_pairs(rates[1], rates[0]), ACK_GOAL))


class Steady(threading.Thread):
    """Increments at a rate, until it is joined."""

    def __init__(self, leader, options):
        super().__init__(daemon=True)
        self.leader, self.options = leader, options
        self.start()

    def run(self):
        increments(self.leader, self.options, "--connections", CONNECTIONS, "--rate", self.options.rate)


def lag(options):
    with Group(options) as group:
        leader = group.lead(1)
        samples = []
        steady = Steady(leader, options)
        while steady.is_alive():
            samples.append(int(leader.state()["f0:lag_us"]) / 1000)
            time.sleep(SAMPLE_S)
        samples.sort()
        print("lag: p50 %.2f ms, p99 %.2f, at most %.2f, of %d looks at %d increments/s (goal: under %d)" % (
            samples[len(samples) // 2], samples[len(samples) * 99 // 100], samples[-1], len(samples),
            options.rate, LAG_GOAL_MS))


def read_p99(follower, options):
    with Pinned(max):
        return follower.bench("--workload", "record", "--verify", "form", "--connections", CONNECTIONS, "--ids", IDS,
                              "--rate", options.rate, "--seconds", options.seconds)["run"]["latency_us"]["p99"]


def readers(options):
    with Group(options) as group:
        leader = group.lead(1)
        follower = leader.followers[0]
        on_core(min, leader)
        os.sched_setaffinity(follower.process.pid, {max(os.sched_getaffinity(0))})  # the worker: it has one
        for thread in os.listdir("/proc/%d/task" % follower.process.pid):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(1))
        quiet, beside = [], []
        for _ in range(options.rounds):
            quiet.append(read_p99(follower, options))
            steady = Steady(leader, options)
            beside.append(read_p99(follower, options))
            steady.join()
            follower.level(leader)
        print("readers: p99 %.0f us without changes, %.0f with %d a second: ratio %s (goal: at most %.1f)" % (
            statistics.median(quiet), statistics.median(beside), options.rate, ratio_of_pairs(beside, quiet),
            READERS_GOAL))


class Traffic(threading.Thread):
    """Increments at a rate, in short runs, as a `with` lasts. What is not the worker of the leader leaves
    its core: a feed's thread has it from the worker."""

    def __init__(self, leader, options):
        super().__init__(daemon=True)
        self.leader, self.options = leader, options
        self.runs, self.ended, self.problem = [], False, None

    def run(self):
        try:
            while not self.ended:
                began = time.time()
                with Pinned(max):
                    report = self.leader.bench("--workload", "incr", "--verify", "form", "--connections", CONNECTIONS,
                                               "--ids", COPY_IDS, "--space", "feed0", "--rate", self.options.rate,
                                               "--seconds", TRAFFIC_RUN_S)
                self.runs.append(((began + time.time()) / 2, report["run"]["latency_us"]["p99"]))
        except (Failure, subprocess.SubprocessError) as problem:
            self.problem = problem

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.join()

    def tend(self):
        for thread in os.listdir("/proc/%d/task" % self.leader.process.pid):
            if int(thread) != self.leader.worker:
                os.sched_setaffinity(int(thread), {min(os.sched_getaffinity(0))})

    def p99(self, began, ended):
        """The median of the runs in that time."""
        if self.problem is not None:
            raise self.problem
        within = [p99 for middle, p99 in self.runs if began <= middle <= ended]
        if not within:
            raise Failure("no run of increments fell in the %.1f s: more --gib" % (ended - began))
        return statistics.median(within)


def quiet(options, leader):
    with Traffic(leader, options) as traffic:
        began = time.time()
        time.sleep(QUIET_S)
    return traffic.p99(began, time.time())


def copied(options, leader, spaces):
    """Seconds from the manifest to the last file's sync, and the p99 meanwhile."""
    until = time.monotonic() + LEVEL_S * 10
    with Traffic(leader, options) as traffic:
        with Pinned():
            follower = Node(options, "two", leader, spaces=spaces)
        try:
            while follower.said_at("the copy is whole") is None:
                if time.monotonic() > until:
                    raise Failure("no copy:\n" + follower.output())
                traffic.tend()
                time.sleep(0.02)
            began, ended = map(follower.said_at, ("a copy files=", "the copy is whole"))
        finally:
            follower.end()
    return ended - began, traffic.p99(began, ended)


def copied_by_cp(options, leader):
    """The same of cp and a sync."""
    with Traffic(leader, options) as traffic, tempfile.TemporaryDirectory(dir=options.directory) as there:
        began = time.time()
        with Pinned():
            subprocess.run(["cp", "-R", leader.folder.data, os.path.join(there, "cp")], check=True)
            subprocess.run(["sync", "-f", there], check=True)
        ended = time.time()
    return ended - began, traffic.p99(began, ended)


def copy(options):
    spaces = [one_space("refuse", "%dMiB" % TABLE_MIB, 1, "feed%d" % i)
              for i in range(options.gib * 1024 // TABLE_MIB)]
    leader = Node(options, "one", more=", keep: 0", spaces=spaces)
    try:
        for _ in range(2):  # with checkpoints: the journal's beginning goes, or it would be streamed
            for space in spaces:
                leader.bench("--load", "--requests", 0, "--ids", COPY_IDS, "--space", space["name"])
            problem = leader.stop(False)
            if problem:
                raise Failure(problem)
            leader.again()
        quiet(options, leader)
        leader.pin()
        bytes_there = int(leader.figures()["table_file_bytes"])
        alone, ours, theirs = [], [], []
        for i in range(options.rounds):
            alone.append(quiet(options, leader))
            pair = [lambda: ours.append(copied(options, leader, spaces)),
                    lambda: theirs.append(copied_by_cp(options, leader))]
            for run in pair if i % 2 == 0 else reversed(pair):  # who comes second finds memory that was touched
                run()
        (took, beside), (cp_took, beside_cp) = zip(*ours), zip(*theirs)
        print("copy: %.2f GiB in %.1f s, cp and sync in %.1f: ratio %s (goal: about %.1f)" % (
            bytes_there / (1 << 30), statistics.median(took), statistics.median(cp_took),
            ratio_of_pairs(took, cp_took), COPY_GOAL))
        print("  p99 of %d increments/s: %.0f us without, %.0f beside a copy: ratio %s (goal: at most %.1f); "
              "beside cp %.0f" % (
                  options.rate, statistics.median(alone), statistics.median(beside), ratio_of_pairs(beside, alone),
                  TRAFFIC_GOAL, statistics.median(beside_cp)))
    finally:
        leader.end()


PARTS = {"worker": worker, "ack": ack, "lag": lag, "readers": readers, "copy": copy}


def main():
    parser = parser_of(PARTS)
    add = parser.add_argument
    add("--rate", type=int, default=20000, help="lag, readers: requests a second")
    add("--gib", type=int, default=2, help="copy: size of the tables")
    options = parser.parse_args()
    return run_parts(PARTS, options)


if __name__ == "__main__":
    sys.exit(main())
