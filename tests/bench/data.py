#!/usr/bin/env python3
"""What a data directory costs: figures of whole daemons, for a quiet machine with two cores or more.

    tests/bench/data.py everysec       increments a second with journal.sync: everysec, without data
    tests/bench/data.py start          seconds from the start to the first answer: 1 GiB of tables
    tests/bench/data.py replay         records of the journal replayed in a second
    tests/bench/data.py cold           p99 of reads in memory while 5 % of all are from a slow disk
    tests/bench/data.py late           the same while ids come late to dumped tables

$ROLLCALLD and $ROLLCALL name the programs (else build/); `cold` also tests/load/load beside
$ROLLCALL (`make tests/load/load`), and it needs a daemon that was configured
with --enable-points: its reads of the disk are made to take --delay ms. Several may be named; each
prints its figure and its goal. Nothing is judged: exit 1 only if something does not run.

The server's worker has the last core, all its other threads and the load generator the first.
In `late` ids in memory are incremented as often, too; worker and reader go before all else on their
cores (SCHED_FIFO), so that the daemon is measured and not the want of more cores.
`everysec` runs both daemons at once and loads them in turn, twice --rounds times each, in the order
AB BA AB, because a machine's speed changes within seconds; the median of the pairs' ratios counts.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recovery"))
from victim import Failure, Folder, Victim, judge, protocol  # noqa: E402

EVERYSEC_GOAL, START_GOAL_S, REPLAY_GOAL, LATE_GOAL = 0.95, 1.5, 5e6, 1.5
CONNECTIONS, PIPELINE = 50, 50
RUN_S = 600  # the longest a load may take
IDS = 1000000
COLD_IDS = 2000000
COLD_THREADS = 64
LATE_FIRST, LATE_SHIFT, LATE_A_SECOND = 1 << 32, 22, 1000  # the shape `seconds` of bench
LATE_HOT = 50000  # ids that are read
SPACES = 4  # of `start`, each of one table in memory
SLOTS = "{repost: 20, comment: 20, like: 20, read: 20}"

TOP = """threads: %(threads)d
memory: %(memory)s
%(data)sspaces:
"""
DATA = """data: %(directory)s
journal: {sync: everysec}
checkpoint: {every: 1h, journal: 64GiB}
"""
SPACE = """  %(name)s:
    kind: counter
    slots: %(slots)s
    role: store
    oldest: %(oldest)s
    table-size: %(table_size)s
    tables: %(tables)d
"""


def rollcall():
    return os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))


class Server(Victim):
    """A daemon with a folder of its own."""

    def __init__(self, options, spaces, data=True, memory="4GiB", threads=1, more=""):
        self.folder = Folder(options.directory)
        values = {"threads": threads, "memory": memory, "data": ""}
        if data:
            values["data"] = DATA % {"directory": self.folder.data}
        text = more + TOP % values + "".join(SPACE % dict(space, slots=SLOTS) for space in spaces)
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(text)
        super().__init__(self.folder)

    def thread_times(self):
        """By the names of threads: ns on a processor, and waited for one."""
        times = {}
        folder = "/proc/%d/task" % self.process.pid
        for thread in os.listdir(folder):
            with open("%s/%s/comm" % (folder, thread), encoding="ascii") as file:
                name = file.read().strip().rstrip("0123456789")
            with open("%s/%s/schedstat" % (folder, thread), encoding="ascii") as file:
                worked, waited = map(int, file.read().split()[:2])
            one = "worker" if int(thread) == self.worker else name
            before = times.get(one, (0, 0))
            times[one] = (before[0] + worked, before[1] + waited)
        return times

    def again(self):
        """Started once more; seconds until it serves."""
        super().__init__(self.folder)
        return self.serve()

    def end(self):
        self.kill()
        self.folder.remove()

    def figures(self):
        client = self.connect()
        try:
            return client.stats(b"")
        finally:
            client.socket.close()

    def bench(self, *words):
        """Runs `rollcall bench` against it; its report."""
        return self.report_of([rollcall(), "bench"], words)

    def cold(self, *words):
        """Runs `load cold` against it; its report."""
        program = os.path.join(os.path.dirname(rollcall()), "tests", "load", "load")
        return self.report_of([program, "cold"], words)

    def report_of(self, command, words):
        command += ["--json", *map(str, words), "127.0.0.1:%d" % self.address[1]]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False,
                              timeout=RUN_S)
        if done.returncode != 0:
            raise Failure("%s: exit %d" % (" ".join(command), done.returncode))
        return json.loads(done.stdout)

    def pin(self):
        """After a load: the worker is the thread that has worked most."""
        cores = sorted(os.sched_getaffinity(0))
        folder = "/proc/%d/task" % self.process.pid
        worked = {}
        for thread in os.listdir(folder):
            with open("%s/%s/stat" % (folder, thread), encoding="ascii", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            worked[int(thread)] = int(fields[11]) + int(fields[12])  # user, system
        self.worker = max(worked, key=worked.get)
        for thread in worked:
            os.sched_setaffinity(thread, {cores[-1] if thread == self.worker else cores[0]})

    def worked_ns(self):
        """On a processor, the worker."""
        path = "/proc/%d/task/%d/schedstat" % (self.process.pid, self.worker)
        with open(path, encoding="ascii") as file:
            return int(file.read().split()[0])


def one_space(oldest, table_size, tables, name="feed"):
    return {"name": name, "oldest": oldest, "table_size": table_size, "tables": tables}


class Pinned:
    """This thread and the children it starts on the first core, or on the last (max), and back."""

    def __init__(self, which=min):
        self.which = which

    def __enter__(self):
        self.cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.which(self.cores)})

    def __exit__(self, *_):
        os.sched_setaffinity(0, self.cores)


# ---- figures ----


def increments(server, options):
    with Pinned():
        return server.bench("--workload", "incr", "--verify", "form", "--connections", CONNECTIONS,
                            "--pipeline", PIPELINE, "--seconds", options.seconds, "--ids",
                            IDS)["run"]["requests_per_s"]


def ratio_of_pairs(ones, others):
    """Its median, and the quarters around it."""
    low, middle, high = statistics.quantiles([a / b for a, b in zip(ones, others)], n=4)
    return "%.3f (%.3f to %.3f)" % (middle, low, high)


def everysec(options):
    names = ("without data", "everysec")
    servers, rates, costs = [], {name: [] for name in names}, {name: [] for name in names}
    try:
        for name in names:
            server = Server(options, [one_space("refuse", "64MiB", 4)], data=name == "everysec")
            servers.append(server)
            server.serve()
            server.bench("--load", "--requests", 0, "--ids", IDS)
            server.pin()
        for number in range(2 * options.rounds):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            for i in order:
                before = servers[i].worked_ns()
                rate = increments(servers[i], options)
                rates[names[i]].append(rate)
                costs[names[i]].append((servers[i].worked_ns() - before) / (rate * options.seconds))
            print("  pair %d: %s" % (number + 1, ", ".join(
                "%.0f %s" % (rates[name][-1], name) for name in names)))
            sys.stdout.flush()
    finally:
        for server in servers:
            server.end()
    middle = [statistics.median(rates[name]) for name in names]
    print("everysec: %.0f increments/s, %.0f without data: ratio %s (goal: at least %.2f)" % (
        middle[1], middle[0], ratio_of_pairs(rates[names[1]], rates[names[0]]), EVERYSEC_GOAL))
    cost = [statistics.median(costs[name]) for name in names]
    print("  the worker alone: %.0f ns an increment, %.0f without data: %s of the rate where it has "
          "a core, and the others have one each" % (
              cost[1], cost[0], ratio_of_pairs(costs[names[0]], costs[names[1]])))


def start(options):
    spaces = [one_space("refuse", options.table_size, 1, "feed%d" % i) for i in range(SPACES)]
    server = Server(options, spaces, threads=len(os.sched_getaffinity(0)), memory="2GiB")
    try:
        server.serve()
        for space in spaces:
            server.bench("--load", "--requests", 0, "--ids", IDS, "--space", space["name"])
        problem = server.stop(False)
        if problem:
            raise Failure(problem)
        took, recovery = [], []
        for number in range(options.rounds):
            if number > 0:
                server.stop(False)
            took.append(server.again())
            figures = server.figures()
            recovery.append(int(figures["recovery_us"]) / 1e6)
        print("start: %.2f s to serve (%s), of %s bytes of tables in %s files; recovery alone %.2f s "
              "(goal: at most %.1f s for 1 GiB)" % (
                  statistics.median(took), ", ".join("%.2f" % one for one in took),
                  figures["table_file_bytes"], figures["table_files"],
                  statistics.median(recovery), START_GOAL_S))
        server.stop(False)
    finally:
        server.end()


def replay(options):
    server = Server(options, [one_space("refuse", "64MiB", 4)])
    try:
        server.serve()
        server.bench("--load", "--requests", 0, "--ids", IDS)
        increments(server, options)
        rates = []
        for _ in range(options.rounds):
            server.kill_now()
            server.again()
            figures = server.figures()
            records, took = int(figures["recovered_records"]), int(figures["recovery_us"]) / 1e6
            rates.append(records / took)
            print("  %d records in %.2f s" % (records, took))
            if records == 0:
                raise Failure("nothing was replayed: a checkpoint came in between")
        print("replay: %.0f records/s (goal: at least %.0f)" % (
            statistics.median(rates), REPLAY_GOAL))
        server.stop(False)
    finally:
        server.end()


def cold(options):
    os.environ["ROLLCALL_POINT_DELAY"] = "cold read=%dms" % options.delay
    server = Server(options, [one_space("dump", "4MiB", 3)],
                    more="cold: {cache: 0, threads: %d}\n" % COLD_THREADS)
    try:
        server.serve()
        server.bench("--load", "--requests", 0, "--ids", COLD_IDS)
        server.pin()
        with Pinned():
            report = server.cold("--ids", COLD_IDS, "--rounds", options.rounds, "--seconds",
                                 options.seconds, "--rate", options.rate, "--connections",
                                 CONNECTIONS * 2)
        if report["old_p50_us"] < options.delay * 1000:
            raise Failure("reads of the disk are not slow: $ROLLCALLD must be configured with "
                          "--enable-points")
        print("cold: %.1f %% of the requests are old ids, p50 %.0f us; new ids: p99 %.1f us without, "
              "%.1f us with them: ratio %.3f (goal: at most %.1f)" % (
                  report["old_percent"], report["old_p50_us"], report["p99_without_us"],
                  report["p99_with_us"], report["ratio"], report["goal"]))
    finally:
        server.end()


def late_id(number, one):
    """Ids of second `number` from its `one`-th on."""
    return LATE_FIRST + (number << LATE_SHIFT) + one


def late_ids(first, ids, per_second=LATE_A_SECOND):
    return ["--shape", "seconds", "--first", first, "--ids", ids, "--per-second", per_second]


class Beside:
    """Increments of some ids at a fixed rate, until they are ended; None: of none."""

    def __init__(self, server, ids, options):
        self.server, self.seconds = server, options.seconds
        self.command = ids and [rollcall(), "bench", "--json", "--workload", "incr", "--verify", "off", *ids,
                                "--connections", 8, "--pipeline", 8, "--rate", options.late_rate, "--seconds",
                                RUN_S, "127.0.0.1:%d" % server.address[1]]

    def __enter__(self):
        self.process = self.command and subprocess.Popen([str(word) for word in self.command],
                                                         stdout=subprocess.DEVNULL)
        self.began, self.figures, self.times = (
            time.monotonic(), self.server.figures(), self.server.thread_times())
        return self

    def __exit__(self, *_):
        took = time.monotonic() - self.began
        figures, times = self.server.figures(), self.server.thread_times()
        if self.process:
            self.process.terminate()
            self.process.wait()
        grown = {name: int(figures[name]) - int(self.figures[name])
                 for name in ("incr_hits", "incr_misses", "dump_merges")}
        self.rate = (grown["incr_hits"] + grown["incr_misses"]) / took
        self.said = "%d merges; busy, and waiting for a core, %%: %s" % (grown["dump_merges"], " ".join(
            "%s %.0f+%.0f" % (name, *((now - then) / took / 1e7 for then, now in zip(self.times.get(
                name, (0, 0)), pair))) for name, pair in sorted(times.items()) if sum(pair) > 0))


def read_hot(server, options):
    """p50, p99 and p99.9 in us of the newest ids' records."""
    report = server.report_of(["chrt", "-f", "1", rollcall(), "bench"], [
        "--workload", "record", "--connections", 16, "--rate", options.rate, "--seconds", options.seconds,
        "--verify", "form", *late_ids(late_id((COLD_IDS - LATE_HOT) // LATE_A_SECOND, 0), LATE_HOT)])["run"]
    if report["misses"] + report["errors"] + report["mismatches"] > 0:
        raise Failure("an id in memory was not read")
    return [report["latency_us"][name] for name in ("p50", "p99", "p99_9")]


def late(options):
    names = ("alone", "beside ids in memory", "beside late ids")
    figures = {name: [] for name in names}
    seconds = COLD_IDS // LATE_A_SECOND
    hot = late_ids(late_id(seconds - LATE_HOT // LATE_A_SECOND, 0), LATE_HOT)
    server = Server(options, [one_space("dump", "4MiB", 3)])
    try:
        server.serve()
        server.bench("--load", "--requests", 0, *late_ids(LATE_FIRST, COLD_IDS))
        server.pin()
        os.sched_setscheduler(server.worker, os.SCHED_FIFO, os.sched_param(1))
        for number in range(options.rounds):  # others each time, of tables that are all in files
            new = late_ids(late_id(seconds // 8, LATE_A_SECOND * (2 + number) // 2), LATE_A_SECOND // 2 *
                           (seconds // 2 - seconds // 8), LATE_A_SECOND // 2)
            for name, ids in zip(names, (None, hot, new)):
                with Pinned(), Beside(server, ids, options) as beside:
                    one = read_hot(server, options)
                figures[name].append(one + [beside.rate])
                print("  %-20s p50 %.0f us, p99 %.0f, p99.9 %.0f; %.0f/s, %s" % (
                    name, *one, beside.rate, beside.said))
                sys.stdout.flush()
    finally:
        server.end()
    middle = {name: [statistics.median(column) for column in zip(*figures[name])] for name in names}
    for name in names:
        print("late: p50 %.0f us, p99 %.0f us %s: %.2f times that alone (goal: at most %.1f)" % (
            *middle[name][:2], name, middle[name][1] / middle["alone"][1], LATE_GOAL))


def parser_of(parts):
    """What every file of such parts is told; the rest is its own."""
    parser = argparse.ArgumentParser(description="See the top of this file.")
    add = parser.add_argument
    add("parts", nargs="+", choices=list(parts))
    add("--rounds", type=int, default=7)
    add("--seconds", type=int, default=3, help="of load in a round")
    add("--directory", help="where directories of data and configurations are made (default: TMPDIR)")
    return parser


def run_parts(parts, options):
    """Those that were asked for, one after the other. Returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    for part in options.parts:
        began = time.monotonic()
        try:
            parts[part](options)
        except (Failure, judge.Lost, protocol.Mismatch, OSError, subprocess.SubprocessError) as problem:
            print("FAIL %s: %s" % (part, problem))
            return 1
        print("  (%.0f s)" % (time.monotonic() - began))
        sys.stdout.flush()
    return 0


PARTS = {"everysec": everysec, "start": start, "replay": replay, "cold": cold, "late": late}


def main():
    parser = parser_of(PARTS)
    add = parser.add_argument
    add("--table-size", default="256MiB", help="start: of each of %d tables" % SPACES)
    add("--delay", type=int, default=100, help="cold: ms a read of the disk takes")
    add("--rate", type=int, default=8000, help="cold, late: requests a second")
    add("--late-rate", type=int, default=50000, help="late: ids a second")
    options = parser.parse_args()
    return run_parts(PARTS, options)


if __name__ == "__main__":
    sys.exit(main())
