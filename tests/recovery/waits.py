#!/usr/bin/env python3
"""Requests of a daemon whose disk does not do its part: is each answered in time?

    tests/recovery/waits.py [NAME ...]

$ROLLCALLD as in crash.py. Each case takes something from a running daemon with `oldest: dump` and
adds ids all the while: none may wait longer than ANSWER_S, what cannot be taken must be refused with
`no table free`, and once the case gives it back all ids are taken again and none that was
acknowledged is lost. Lines are `ok`, `FAIL` with the reason; exit 1 if one failed.
"""
import os
import re
import sys
import time

import judge
from victim import Failure, Folder, Victim, protocol

VALUES = {"memory": "512MiB", "oldest": "dump", "table_size": "64KiB", "tables": 4,
          "dicts": "64KiB", "sync": "always", "segment": "1MiB", "buffer": "1MiB", "every": "1s",
          "journal": "4MiB"}
ANSWER_S = 10  # a wait for a table ends after 5 s; the rest is for a slow machine
FELT_S = 30  # until writes are refused
AGAIN_S = 30  # until they are taken again: a round that failed is tried again after 10 s
BLOCK = 500  # ids at once
REFUSED = b"SERVER_ERROR no table free"


class Writer:
    """Adds ids in order; knows which were taken."""

    def __init__(self, daemon):
        self.client = daemon.connect()
        self.client.socket.settimeout(ANSWER_S)
        self.next = 1
        self.taken = []

    def add(self):
        """The answers to a block of new ids that were not taken."""
        block = range(self.next, self.next + BLOCK)
        self.next = block.stop
        self.client.socket.sendall(b"".join(b"incr feed:%d.like %d\r\n" % (one, one) for one in block))
        lines = [self.line() for _ in block]
        self.taken += [one for one, line in zip(block, lines) if line == b"%d" % one]
        return {line for one, line in zip(block, lines) if line != b"%d" % one}

    def line(self):
        socket, came = self.client.socket, b""
        while not came.endswith(b"\r\n"):
            try:
                piece = socket.recv(1)
            except TimeoutError:
                raise Failure("no answer in %d s" % ANSWER_S) from None
            if not piece:
                raise Failure("the connection ended")
            came += piece
        return came[:-2]

    def until(self, refused, seconds):
        """Adds until ids are refused, or all of a block are taken."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            others = self.add()
            if others - {REFUSED}:
                raise Failure("refused otherwise: %s" % others)
            if bool(others) == refused:
                return
        raise Failure("after %d s new ids are still %s" % (seconds, "taken" if refused else "refused"))


def obstruct(folder):
    """The manifest cannot be stored: where its next one is written there is a directory."""
    os.mkdir(os.path.join(folder.data, "MANIFEST.tmp"))


def clear(folder):
    os.rmdir(os.path.join(folder.data, "MANIFEST.tmp"))


def check(daemon, ids):
    client = daemon.connect()
    found = client.counters(ids)
    client.socket.close()
    lost = [one for one in ids if found.get(one) != (-1, -1, one, -1)]
    if lost:
        raise Failure("%d of %d ids are lost, the first: %d" % (len(lost), len(ids), lost[0]))


def manifest_cannot_be_stored(folder, daemon):
    writer = Writer(daemon)
    writer.until(False, FELT_S)
    obstruct(folder)
    try:
        writer.until(True, FELT_S)
        for _ in range(3):  # refused at once, not one by one after a wait
            writer.add()
    finally:
        clear(folder)
    if not re.search(r"MANIFEST.*it is tried again", daemon.output()):
        raise Failure("the log does not say why:\n%s" % daemon.output())
    writer.until(False, AGAIN_S)
    return writer.taken


CASES = (manifest_cannot_be_stored,)


def run(case):
    """Prints how it went; false: it failed."""
    name = case.__name__.replace("_", " ")
    folder = Folder()
    daemon = None
    try:
        folder.configure(VALUES)
        daemon = Victim(folder)
        daemon.serve()
        taken = case(folder, daemon)
        check(daemon, taken)
        daemon.kill_now()
        daemon = Victim(folder)
        daemon.serve()
        check(daemon, taken)
        problem = daemon.stop(False)
        if problem:
            raise Failure(problem)
        print("ok   " + name)
    except (Failure, judge.Lost, protocol.Mismatch, OSError) as problem:
        folder.keep()
        print("FAIL %s: %s\n    kept: %s" % (name, problem, folder.path))
        return False
    finally:
        if daemon is not None:
            daemon.kill()
        sys.stdout.flush()
        folder.remove()
    return True


def main():
    wanted = sys.argv[1:]
    cases = [case for case in CASES if not wanted or case.__name__ in wanted]
    failed = [case for case in cases if not run(case)]
    print("%d cases, %d failed" % (len(cases), len(failed)))
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
