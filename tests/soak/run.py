#!/usr/bin/env python3
"""Mixed feed traffic for a long time on small tables that roll: is memory flat, is every answer right?

Starts a daemon of its own (soak.yaml) and `load bench --workload mix` beside it for
SOAK_SECONDS (600), and looks at the daemon's resident memory each second. Fails when

- an answer was wrong, or an error came that the load does not expect,
- resident memory was ever above `memory`,
- its largest value in the last third is more than TOLERANCE above that in the first third; thirds
  of the time since both rows first recycled a table,
- nothing was recycled in a minute or more,
- the daemon did not end cleanly at SIGTERM.

What was reached is printed: operations a second (the aim is a million), latencies, resident memory,
tables recycled. $ROLLCALLD names the daemon, $ROLLCALL_BUILD the folder of the build, where
tests/load/load is.
"""
import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "protocol"))
import run as protocol  # noqa: E402

SECONDS = 600
MEMORY = 64 << 20  # as in soak.yaml
TOLERANCE = 1 << 20  # what an allocator may come and go by
OPERATIONS_AIM = 1000000
ROLL_MIN_SECONDS = 60  # a run as long as this must have recycled
SPACES = ("feed", "liked")
WINDOW = 25000
GRACE_S = 60  # for the load to end by itself
LOAD = ["--workload", "mix", "--connections", "50", "--pipeline", "4", "--window", str(WINDOW),
        "--slots", "repost,comment,like,read", "--json"]


def mib(size):
    return "%.1f MiB" % (size / (1 << 20))


def resident(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    raise protocol.Mismatch("the daemon is gone")


def recycled(control):
    """Tables recycled so far in each space."""
    figures = control.stats(b"spaces")
    name = "%s:recycled_tables"
    return [int(figures.get((name % space).encode(), b"0")) for space in SPACES]


class Samples:
    """What the daemon looked like, each second."""

    def __init__(self):
        self.memory = []  # since both rows first recycled, once they have
        self.tables = [0] * len(SPACES)
        self.smallest, self.largest = 1 << 63, 0

    def take(self, pid, control):
        size = resident(pid)
        self.smallest, self.largest = min(self.smallest, size), max(self.largest, size)
        before, self.tables = self.tables, recycled(control)
        if all(self.tables) and not all(before):
            self.memory.clear()
        self.memory.append(size)

    def mistakes(self, seconds):
        if self.largest > MEMORY:
            yield "resident memory was %s, above memory: %s" % (mib(self.largest), mib(MEMORY))
        if seconds >= ROLL_MIN_SECONDS and not all(self.tables):
            yield "nothing was recycled: %s" % self.tables
        third = len(self.memory) // 3
        if third > 0:
            early, late = max(self.memory[:third]), max(self.memory[-third:])
            print("resident memory: %s in the first third, %s in the last" % (mib(early), mib(late)))
            if late > early + TOLERANCE:
                yield "resident memory grew by more than %s" % mib(TOLERANCE)


def watch(load, pid, control, seconds):
    """Takes samples until the load ends."""
    samples = Samples()
    until = time.monotonic() + seconds + GRACE_S
    while load.poll() is None:
        if time.monotonic() > until:
            raise protocol.Mismatch("the load does not end")
        samples.take(pid, control)
        try:
            load.wait(1)
        except subprocess.TimeoutExpired:
            pass
    return samples


def tell(report, samples):
    result = report["run"]
    reached = result["operations_per_s"]
    latency = result["latency_us"]
    print("operations/s: %.0f, %s the aim of %d" % (
        reached, "below" if reached < OPERATIONS_AIM else "above", OPERATIONS_AIM))
    print("latency us: p50 %.0f, p99 %.0f, p99.9 %.0f, max %.0f" % tuple(
        latency[name] for name in ("p50", "p99", "p99_9", "max")))
    print("ids created: %d; answers verified: %d; foreign members: %d, found: %d" % (
        result["kinds"]["create"]["requests"], result["checked"], result.get("foreign", 0),
        result.get("wrongly_found", 0)))
    for line in result["error_lines"]:
        print("error: %d x %s%s" % (
            line["count"], line["text"], " (expected)" if line["expected"] else ""))
    print("resident memory: %s to %s of %s" % (
        mib(samples.smallest), mib(samples.largest), mib(MEMORY)))
    print("tables recycled: " + ", ".join(
        "%s %d" % pair for pair in zip(SPACES, samples.tables)))


def load_mistakes(code, output, samples):
    try:
        report = json.loads(output)
        tell(report, samples)
    except (ValueError, KeyError):
        yield "the load reported nothing (exit %d)" % code
        return
    result = report["run"]
    if code != 0:
        yield "the load ended with %d" % code
    if result["mismatches"]:
        yield "%d wrong answers, the first: %s" % (result["mismatches"], result["first_mismatch"])
    if result["errors"]:
        yield "%d unexpected errors" % result["errors"]
    if not result["checked"]:
        yield "no answer was verified"


def soak(daemon, seconds, allow):
    """Everything that was wrong."""
    build = os.environ.get("ROLLCALL_BUILD", os.path.join(protocol.TOP, "build"))
    program = os.path.join(build, "tests", "load", "load")
    command = [program, "bench", "--seconds", str(seconds), *LOAD, "%s:%d" % daemon.address]
    if allow:
        command += ["--allow", allow]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        try:
            samples = watch(load, daemon.process.pid, protocol.Run(daemon.address, "none", None),
                            seconds)
            output = load.stdout.read()
        finally:
            if load.poll() is None:
                load.kill()
    mistakes = list(load_mistakes(load.returncode, output, samples))
    return mistakes + list(samples.mistakes(seconds))


def main():
    parser = argparse.ArgumentParser(description="See the top of this file.")
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("SOAK_SECONDS", SECONDS)))
    parser.add_argument("--allow", metavar="TEXT", help="error lines that are known")
    options = parser.parse_args()
    config = os.path.join(HERE, "soak.yaml")
    daemon = protocol.Daemon(argparse.Namespace(connect=None, config=config), [])
    try:
        mistakes = soak(daemon, options.seconds, options.allow)
    except (OSError, protocol.Mismatch) as problem:
        mistakes = [str(problem)]
    except BaseException:
        daemon.kill()
        raise
    ended = daemon.stop(False)
    for mistake in mistakes + ([ended] if ended else []):
        print("FAIL " + mistake)
    return 1 if mistakes or ended else 0


if __name__ == "__main__":
    sys.exit(main())
