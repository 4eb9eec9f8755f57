#!/usr/bin/env python3
"""Whether requests take longer while somebody scrapes /metrics: for a quiet machine with two cores or more.

    tests/bench/scrape.py [--rounds N] [--seconds S] [--rate R] [--spaces N] [--tables N]

One daemon, whose spaces together have as many tables as /metrics is meant for; gets of single slots come at a fixed
rate (as fast as they are answered, the load itself would say how many are late). Windows with a scraper, one request
a second, and without one come in turn, AB BA AB, because a machine's speed changes within minutes. Prints p50 and p99
of each, the medians, their ratio beside the goal, and what a scrape takes and costs. Exit 1 only if something does
not run: nothing is judged.

The worker has the last core. The scraper and the daemon's other threads have the first, and the load another one; of
two cores it shares the worker's, since on the first it would be late itself while a scrape is made. $ROLLCALLD and
$ROLLCALL name the programs (else build/).
"""
import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DAEMON = os.environ.get("ROLLCALLD", os.path.join(TOP, "build", "rollcalld"))
TOOL = os.environ.get("ROLLCALL", os.path.join(TOP, "build", "rollcall"))
GOAL, GOAL_S = 1.05, 0.1
START_S, ANSWER_S = 60, 600
SLOTS = ", ".join("s%d: 64" % slot for slot in range(8))  # few records fill a table
OF_A_TABLE = 640  # new ids open the next one, of 64 KiB
AT_ONCE = 2000
IDS = 100000  # that are asked for
EVERY_S = 1
CONFIG = """threads: 1
memory: %(memory)dMiB
admin: 127.0.0.1:0
spaces:
  feed: {kind: counter, slots: {repost: 20, comment: 20, like: 20, read: 20}, table-size: 4MiB, tables: 4}
"""
SPACE = "  s%d: {kind: counter, slots: {%s}, table-size: 64KiB, tables: %d, oldest: refuse}\n"


class Daemon:
    def __init__(self, folder, options):
        each = options.tables // options.spaces
        path = os.path.join(folder, "config.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(CONFIG % {"memory": 512 + options.tables // 4} +
                       "".join(SPACE % (number, SLOTS, each + 2) for number in range(options.spaces)))
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        user = ["-u", "root"] if os.getuid() == 0 else []
        self.process = subprocess.Popen([DAEMON, "--config", path, "-l", "127.0.0.1:0"] + user, stdout=self.log,
                                        stderr=self.log)
        self.port = int(self.said(r"listening on 127\.0\.0\.1:(\d+)"))
        self.url = "http://127.0.0.1:%s/metrics" % self.said(r"status page on http://127\.0\.0\.1:(\d+)/")
        for number in range(options.spaces):
            self.fill(number, each)

    def said(self, pattern):
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            self.log.seek(0)
            found = re.search(pattern, self.log.read())
            if found:
                return found.group(1)
            time.sleep(0.05)
        self.log.seek(0)
        raise SystemExit("it did not start:\n" + self.log.read()[-2000:])

    def fill(self, space, tables):
        with socket.create_connection(("127.0.0.1", self.port), ANSWER_S) as client:
            for first in range(0, tables * OF_A_TABLE, AT_ONCE):
                client.sendall(b"".join(b"incr s%d:%d.s0 1 noreply\r\n" % (space, number)
                                        for number in range(first, first + AT_ONCE)) + b"mn\r\n")
                while not client.recv(65536).endswith(b"MN\r\n"):
                    pass

    def place(self):
        """Puts its threads, and this, where the top of this file says. Returns the core of the load."""
        cores = sorted(os.sched_getaffinity(0))
        for task in os.listdir("/proc/%d/task" % self.process.pid):
            with open("/proc/%d/task/%s/comm" % (self.process.pid, task), encoding="ascii") as file:
                worker = file.read().startswith("worker")
            os.sched_setaffinity(int(task), cores[-1:] if worker else cores[:1])
        os.sched_setaffinity(0, cores[:1])
        return cores[-2:-1] if len(cores) > 2 else cores[-1:]

    def admin_cpu_s(self):
        for task in os.listdir("/proc/%d/task" % self.process.pid):
            with open("/proc/%d/task/%s/comm" % (self.process.pid, task), encoding="ascii") as file:
                if file.read().strip() == "admin":
                    with open("/proc/%d/task/%s/schedstat" % (self.process.pid, task), encoding="ascii") as times:
                        return int(times.read().split()[0]) / 1e9
        raise SystemExit("it has no thread of that name: admin")

    def scrape(self):
        """(seconds, bytes)"""
        began = time.monotonic()
        with urllib.request.urlopen(self.url, timeout=ANSWER_S) as answer:
            length = len(answer.read())
        return time.monotonic() - began, length

    def end(self):
        self.process.terminate()
        self.process.wait(START_S)


class Scraper(threading.Thread):
    """Asks once a second, until it is told to stop."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon_asked, self.stop, self.took = daemon, threading.Event(), []
        self.start()

    def run(self):
        while not self.stop.wait(EVERY_S):
            self.took.append(self.daemon_asked.scrape()[0])

    def end(self):
        self.stop.set()
        self.join()
        return self.took


def bench(daemon, core, *words):
    done = subprocess.run(["taskset", "-c", str(core), TOOL, "bench", "--json", "--ids", str(IDS), "--workload",
                           "slot", *words, "127.0.0.1:%d" % daemon.port], check=False, stdout=subprocess.PIPE,
                          timeout=ANSWER_S)
    if done.returncode != 0:
        raise SystemExit("rollcall bench %s: exit %d" % (" ".join(words), done.returncode))
    return json.loads(done.stdout.decode().splitlines()[-1])


def window(daemon, core, options, scraped):
    """(p50, p99) in microseconds, and the seconds of each scrape."""
    scraper = Scraper(daemon) if scraped else None
    said = bench(daemon, core, "--rate", str(options.rate), "--seconds", str(options.seconds), "--connections", "20")
    times = said["run"]["latency_us"]
    return times["p50"], times["p99"], scraper.end() if scraped else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value, words in (("rounds", 10, "pairs of windows"), ("seconds", 10, "of a window"),
                               ("rate", 20000, "requests a second"), ("spaces", 63, "beside the one that is asked"),
                               ("tables", 10000, "of all of them together")):
        parser.add_argument("--" + name, type=int, default=value, help="%s (%d)" % (words, value))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rollcall-scrape-") as folder:
        daemon = Daemon(folder, options)
        try:
            core = daemon.place()[0]
            bench(daemon, core, "--load", "--requests", "0")
            seen, scrapes = {False: [], True: []}, []
            before_s = daemon.admin_cpu_s()
            for number in range(2 * options.rounds):
                scraped = number % 4 in (1, 2)
                p50, p99, took = window(daemon, core, options, scraped)
                seen[scraped].append((p50, p99))
                scrapes += took
                print("%-15s p50 %6.0f us  p99 %6.0f us" % ("with a scraper" if scraped else "without one", p50, p99),
                      flush=True)
            cpu_s = daemon.admin_cpu_s() - before_s
            length = daemon.scrape()[1]
        finally:
            daemon.end()
    medians = {scraped: [statistics.median(column) for column in zip(*pairs)] for scraped, pairs in seen.items()}
    for at, name in enumerate(("p50", "p99")):
        print("%s: with %.0f us, without %.0f us: %.3f x%s" % (
            name, medians[True][at], medians[False][at], medians[True][at] / medians[False][at],
            ", goal at most %.2f x" % GOAL if name == "p99" else ""))
    print("a scrape: %d bytes, %.0f ms (goal below %.0f ms), at most %.0f ms; at most %.0f ms of the processor" % (
        length, 1000 * statistics.median(scrapes), 1000 * GOAL_S, 1000 * max(scrapes), 1000 * cpu_s / len(scrapes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
