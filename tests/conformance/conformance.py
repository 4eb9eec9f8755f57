#!/usr/bin/env python3
"""conformance.py [--table FILE] --work FOLDER NAME...: runs the clients named against daemons of its own.

Called by tools/conformance, which installs what the clients need. $ROLLCALLD names the daemon. The
last line is `N passed, N failed`; exit 1 if something failed.
"""
import argparse
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "protocol"))
import programs  # noqa: E402
import run as protocol  # noqa: E402
from checks import TABLES, Checks  # noqa: E402
from peer import CLIENTS, Peer, Twemproxy  # noqa: E402

CONFIG = os.path.join(HERE, "conformance.yaml")
SHARDS = 3
SHORT = ("ok", "-", "not run")  # results that stand in the tables as they are
FIRST_NUMBER = 1001  # of the ids of the first client


def start():
    return protocol.Daemon(argparse.Namespace(connect=None, config=CONFIG), [])


class Report:
    """Counts, says what failed when it fails, and keeps the tables."""

    def __init__(self):
        self.passed = self.failed = 0
        self.rows = {}  # (client, way) -> {column: result}
        self.suites = {}  # program -> [passed, all]

    def count(self, what, result):
        if result == "ok":
            self.passed += 1
        elif result != "-":
            self.failed += 1
            print("FAILED: %s: %s" % (what, result))

    def check(self, name, way, column, result):
        self.rows.setdefault((name, way), {})[column] = result
        self.count("%s (%s): %s" % (name, way, column), result)

    def suite(self, program, test, result):
        counts = self.suites.setdefault(program, [0, 0])
        counts[0] += result == "ok"
        counts[1] += 1
        self.count("%s: %s" % (program, test), result)

    def tables(self):
        """(title, rows of cells), the first row the head."""
        for title, columns in TABLES:
            rows = [["client", "way", *columns]]
            for (name, way), results in self.rows.items():
                cells = [results.get(column, "not run") for column in columns]
                rows.append([name, way] + [cell if cell in SHORT else "FAILED" for cell in cells])
            if len(rows) > 1:
                yield title, rows
        if self.suites:
            yield "Programs", [["program", "tests passed"]] + [
                [name, "%d of %d" % tuple(counts)] for name, counts in self.suites.items()]

    def notes(self):
        """What a `-` may mean."""
        yield "-: the library has no such call, or twemproxy does not pass it."
        for name in dict.fromkeys(name for name, _ in self.rows):
            if CLIENTS[name].note:
                yield "%s: %s." % (name, CLIENTS[name].note)

    def show(self):
        """For a terminal: a line a client, so that nobody has to scroll sideways for a failure."""
        for title, rows in self.tables():
            print("\n%s" % title)
            if title == "Programs":
                for name, counts in rows[1:]:
                    print("  %-24s %s" % (name, counts))
                continue
            for row in rows[1:]:
                by_result = {}
                for column, result in zip(rows[0][2:], row[2:]):
                    by_result.setdefault(result, []).append(column)
                text = "; ".join("%s: %s" % (result, ", ".join(names)) for result, names in
                                 by_result.items())
                print("  %-24s %-10s %s" % (row[0], row[1], text))
        print("\n%s\n" % "\n".join(self.notes()))

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            for title, rows in self.tables():
                file.write("**%s**\n\n" % title)
                for nth, row in enumerate(rows):
                    file.write("| %s |\n" % " | ".join(row))
                    if nth == 0:
                        file.write("|%s\n" % ("---|" * len(row)))
                file.write("\n")
            file.writelines("%s\n\n" % note for note in self.notes())


class Bench:
    """The daemons, started when they are needed, and the clients run against them."""

    def __init__(self, work, report):
        self.work, self.report = work, report
        self.number = FIRST_NUMBER
        self.daemon, self.shards, self.proxy = start(), [], None

    def start_proxy(self):
        self.shards = [start() for _ in range(SHARDS)]
        try:
            self.proxy = Twemproxy(self.work, self.shards)
        except (RuntimeError, OSError) as problem:
            self.report.count("twemproxy", str(problem))
            return
        self.suite("twemproxy", programs.twemproxy(self.proxy.address, self.shards))

    def alive(self):
        """Nothing more is tried once a daemon ended; stop() says so."""
        return all(daemon.process.poll() is None for daemon in (self.daemon, *self.shards))

    def through(self, name, way):
        """One client, one way: every check there is."""
        address = self.proxy.address if way == "twemproxy" else self.daemon.address
        peer = Peer(name, self.work, address, "binary" if way == "binary" else "text")
        checks = Checks(peer, way, self.number)
        self.number += 1
        try:
            for column in (column for _, columns in TABLES for column in columns):
                if self.alive():
                    known = way == "twemproxy" and column in CLIENTS[name].not_proxied
                    result = "-" if known else checks.run(column)
                    self.report.check(name, way, column, result)
        finally:
            peer.stop()

    def client(self, name):
        problem = CLIENTS[name].prepare(self.work)
        if problem:
            self.report.count(name + ": build", "\n" + problem)
            return
        for way in CLIENTS[name].ways:
            self.through(name, way)
        if self.proxy and "text" in CLIENTS[name].ways:
            self.through(name, "twemproxy")

    def suite(self, name, tests):
        try:
            for test, result in tests if self.alive() else ():
                self.report.suite(name, test, result)
        except OSError as problem:
            self.report.count(name, str(problem))

    def all(self, names):
        if "twemproxy" in names:
            self.start_proxy()
        for name in names:
            if name in CLIENTS:
                self.client(name)
        for name, tests in (("memccapable", programs.memccapable),
                            ("libmemcached-tools", programs.libmemcached_tools)):
            if name in names:
                self.suite(name, tests(self.daemon.address))

    def stop(self):
        if self.proxy:
            self.proxy.stop()
        for daemon in (self.daemon, *self.shards):
            self.report.count("the daemon at the end", daemon.stop(False) or "ok")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    parser.add_argument("--table")
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what runs is ended below
    report = Report()
    bench = Bench(options.work, report)
    try:
        bench.all(options.names)
    finally:
        bench.stop()
    report.show()
    if options.table:
        report.write(options.table)
    print("%d passed, %d failed" % (report.passed, report.failed))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
