#!/usr/bin/env python3
"""What a fleet's way costs: ratios of one run, for a quiet machine with two cores or more.

    tests/bench/fleet.py incr        increments a second by twemproxy, two shards behind it, and null servers
    tests/bench/fleet.py page        likewise pages of 20 records
    tests/bench/fleet.py shards      pages a second that two shards can answer, and one, to clients that hash

$ROLLCALLD and $ROLLCALL name the programs (else build/); the null server is beside them (`make
tests/bench/null_server`), twemproxy is Debian's nutcracker with conf/fleet/twemproxy.yaml. Each part prints its
figure and its goal. Nothing is judged: exit 1 only if something does not run. What is compared takes turns, --rounds
times; the median of the pairs' ratios counts. twemproxy has the last core; all others share the first, whose
processor time is said too: where that is used up, twemproxy's limit was not reached. `shards` counts the processor
time of a shard's worker, as the generator needs cores of its own: a page of 20 ids is one request to one shard, or one
of half of them to each of two, which work at one time. What a request costs beside its ids is halved by nobody, and
less of it falls to each where more are sent together (--pipeline).
"""
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "repl"))
from data import (CONNECTIONS, IDS, Pinned, Server, Failure, one_space, protocol, ratio_of_pairs,  # noqa: E402
                  parser_of, rollcall, run_parts)
from ports import free_port  # noqa: E402

PROXY_GOAL, SHARDS_GOAL = 0.9, 1.8
PAGE_IDS, SHARDS = 20, 2
START_S = 20
KEY = "feed:{id}."  # the record, as the tags of twemproxy.yaml want it
SAMPLE = os.path.join(protocol.TOP, "conf", "fleet", "twemproxy.yaml")
WAYS = {"incr": ("--workload", "incr"), "page": ("--workload", "page", "--page-ids", PAGE_IDS, "--key", KEY)}
NULL_MODES = {"incr": ("--mode", "incr"), "page": ("--mode", "page", "--each")}


class Process:
    """A program, all its threads on one core."""

    def __init__(self, command, core):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        preexec_fn=lambda: os.sched_setaffinity(0, {core}))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Null(Process):
    def __init__(self, mode, core):
        program = os.path.join(os.path.dirname(rollcall()), "tests", "bench", "null_server")
        super().__init__([program, *NULL_MODES[mode]], core)
        self.address = "127.0.0.1", int(self.process.stdout.readline())


class Proxy(Process):
    """twemproxy in front of two servers; clients write to its address."""

    def __init__(self, options, servers, core):
        program = shutil.which("nutcracker") or shutil.which("/usr/sbin/nutcracker")
        if program is None:
            raise Failure("twemproxy is not installed (Debian: nutcracker)")
        self.address = "127.0.0.1", free_port()
        self.file = tempfile.NamedTemporaryFile("w", dir=options.directory, suffix=".yaml")
        self.file.write(self.configuration([server.address[1] for server in servers]))
        self.file.flush()
        super().__init__([program, "-c", self.file.name, "-a", "127.0.0.1", "-s", str(free_port())], core)
        until = time.monotonic() + START_S
        while not self.answers():
            if time.monotonic() > until or self.process.poll() is not None:
                raise Failure("twemproxy does not start")
            time.sleep(0.01)

    def configuration(self, ports):
        with open(SAMPLE, encoding="ascii") as file:
            text = file.read()
        for pool, port in (("writes", self.address[1]), ("reads", free_port())):
            text = re.sub(r"(%s:\n  listen: )\S+" % pool, r"\g<1>127.0.0.1:%d" % port, text)
        for shard, port in enumerate(ports):
            text = re.sub(r"- \S+:1 shard-%d\n" % shard, "- 127.0.0.1:%d:1 shard-%d\n" % (port, shard), text)
        return text

    def answers(self):
        try:
            socket.create_connection(self.address, START_S).close()
            return True
        except OSError:
            return False

    def worked_ns(self):
        """twemproxy has one thread that works."""
        with open("/proc/%d/schedstat" % self.process.pid, encoding="ascii") as file:
            return int(file.read().split()[0])

    bench, report_of = Server.bench, Server.report_of

    def end(self):
        super().end()
        self.file.close()


class Shard(Server):
    def __init__(self, options):
        super().__init__(options, [one_space("refuse", "64MiB", 2)], data=False)
        self.serve()

    def stay_on(self, core):
        for thread in os.listdir("/proc/%d/task" % self.process.pid):
            os.sched_setaffinity(int(thread), {core})


class All:
    """What was started, and ends together."""

    def __init__(self):
        self.started = []

    def start(self, one):
        self.started.append(one)
        return one

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.started[::-1]:
            one.end()


def load(server, options, *how):
    """Its report; the generator has the first core."""
    with Pinned():
        return server.bench(*how, "--verify", "form" if isinstance(server, Shard) else "off", "--connections",
                            CONNECTIONS, "--ids", IDS, "--seconds", options.seconds)["run"]["requests_per_s"]


def proxied(mode, options):
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    with All() as every:
        shards = [every.start(Shard(options)) for _ in range(SHARDS)]
        nulls = [every.start(Null(mode, first)) for _ in range(SHARDS)]
        proxies = [every.start(Proxy(options, servers, last)) for servers in (shards, nulls)]
        proxies[0].bench("--load", "--requests", 0, "--ids", IDS, "--key", KEY)
        for shard in shards:
            shard.stay_on(first)
        rates, costs, shares = [[], []], [[], []], [[], []]
        for number in range(2 * options.rounds):
            for i in (0, 1) if number % 2 == 0 else (1, 0):
                before, began = proxies[i].worked_ns(), time.monotonic()
                rates[i].append(load(proxies[i], options, *WAYS[mode], "--pipeline", options.pipeline))
                worked = proxies[i].worked_ns() - before
                costs[i].append(worked / (rates[i][-1] * options.seconds))
                shares[i].append(worked / 1e9 / (time.monotonic() - began))
        middle = [statistics.median(rate) for rate in rates]
        print("%s: %.0f a second by twemproxy over %d shards, %.0f over null servers: ratio %s (goal: at least %.1f)" % (
            mode, middle[0], SHARDS, middle[1], ratio_of_pairs(rates[0], rates[1]), PROXY_GOAL))
        print("  twemproxy, a request: %.0f ns, %.0f: ratio %s; it had its core for %.0f %% of the time, %.0f %%" % (
            *map(statistics.median, costs), ratio_of_pairs(costs[0], costs[1]),
            *(100 * statistics.median(share) for share in shares)))


def shards(options):
    with All() as every:
        alone = every.start(Shard(options))
        two = [every.start(Shard(options)) for _ in range(SHARDS)]
        for shard in (alone, *two):
            shard.bench("--load", "--requests", 0, "--ids", IDS)
            shard.pin()
        costs = [[], []]
        for number in range(2 * options.rounds):
            both = [(0, alone, PAGE_IDS), *((1, shard, PAGE_IDS // SHARDS) for shard in two)]
            of_round = [[], []]
            for i, shard, ids in both if number % 2 == 0 else both[::-1]:
                before = shard.worked_ns()
                rate = load(shard, options, "--workload", "page", "--page-ids", ids, "--pipeline", options.pipeline)
                of_round[i].append((shard.worked_ns() - before) / (rate * options.seconds))
            costs[0].append(of_round[0][0])
            costs[1].append(statistics.mean(of_round[1]))
        middle = [statistics.median(cost) for cost in costs]
        print("shards: %.0f ns of one shard's worker a page, %.0f of each of %d: %s times its pages (goal: at least %.1f)"
              % (middle[0], middle[1], SHARDS, ratio_of_pairs(costs[0], costs[1]), SHARDS_GOAL))


PARTS = {"incr": lambda options: proxied("incr", options), "page": lambda options: proxied("page", options),
         "shards": shards}


def main():
    parser = parser_of(PARTS)
    add = parser.add_argument
    add("--pipeline", type=int, default=16, help="requests together on a connection")
    options = parser.parse_args()
    return run_parts(PARTS, options)


if __name__ == "__main__":
    sys.exit(main())
