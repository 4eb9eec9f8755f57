"""generator.py: runs of `load bench` (tests/load), and rounds of them: A B C A B C ..., medians over the rounds.

Only within a round is the machine as fast for one as for the other, so ratios are taken there.
"""
import json
import statistics
import subprocess

from servers import Failure

RUN_S = 900  # the longest a load may take
WARM_REQUESTS = 20000


class Generator:
    """The load generator; what goes wrong in any run is kept in `wrong`."""

    def __init__(self, program, cores, shape, per_second):
        self.program, self.cores = program, cores
        self.words = ["--shape", shape]
        if shape == "seconds":
            self.words += ["--per-second", per_second]
        self.wrong = []

    def run(self, server, words, cores=None, missing=False):
        """The report of a run. `missing`: keys that are not there are no fault."""
        pinned = ",".join(map(str, cores or self.cores))
        command = [self.program, "bench", "--json", "--pid", server.pid, "--cpus", pinned]
        command += self.words + list(words) + ["127.0.0.1:%d" % server.port]
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=RUN_S)
        try:
            report = json.loads(done.stdout)
        except ValueError:
            raise Failure("%s\n%s%s" % (" ".join(map(str, command)), done.stdout,
                                        done.stderr)) from None
        part = report.get("run") or report["load"]
        if done.returncode != 0 or (part["misses"] and not missing):
            self.wrong.append("%s: exit %d, %d misses, %d errors, %d mismatches %s %s" % (
                " ".join(map(str, command[1:])), done.returncode, part["misses"], part["errors"],
                part["mismatches"], part["error_lines"], part["first_mismatch"]))
        return part

    def load(self, server, ids, words):
        return self.run(server, ["--load", "--requests", 0, "--ids", ids] + list(words))


class Entry:
    """Something to be measured again and again."""

    def __init__(self, server, name, process, words, cores=None, missing=False, note=""):
        self.server, self.name, self.note = server, name, note
        self.process, self.words = process, list(words)
        self.cores, self.missing = cores, missing
        self.samples = []

    def column(self, figure):
        return [figure(sample) for sample in self.samples]

    def median(self, figure):
        return statistics.median(self.column(figure))


# Figures of a run
def cpu_us(run):
    return run["server_cpu_us"]["total"]


def rate(run):
    return run["requests_per_s"]


def p50(run):
    return run["latency_us"]["p50"]


def p99(run):
    return run["latency_us"]["p99"]


def busy(run):
    """Cores the server had."""
    return run["server_cpu_us"]["total"] * run["requests_per_s"] / 1e6


def client_us(run):
    return run["client_cpu_us"]


def ratio(mine, other, figure=cpu_us):
    """mine / other, the median of the rounds' own ratios."""
    return statistics.median(a / b for a, b in zip(mine.column(figure), other.column(figure)))


def measure(generator, entries, rounds, seconds, say):
    """Each entry once warm, then in turn, `rounds` times `seconds` each."""
    for entry in entries:
        generator.run(entry.process, entry.words + ["--requests", WARM_REQUESTS], entry.cores,
                      entry.missing)
    for number in range(rounds):
        for entry in entries:
            words = entry.words + ["--seconds", seconds, "--seed", number + 2]
            entry.samples.append(generator.run(entry.process, words, entry.cores, entry.missing))
        say("  round %d of %d: %s" % (number + 1, rounds, ", ".join(
            "%.2f" % cpu_us(entry.samples[-1]) for entry in entries)))
