#!/usr/bin/env python3
"""A node that leads by an agent's word: until when, for whom it waits, and what it refuses.

    tests/repl/lease.py [--directory DIR]

The words are said by hand, without an agent. $ROLLCALLD names the daemon.
"""
import argparse
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import pair  # noqa: E402
from victim import Failure  # noqa: E402

LONG_MS = 60000  # longer than the test takes
STALE_MS = 1000
INCR = b"incr feed:1001.like 1"
NOT_LEADER = b"SERVER_ERROR not the leader\r\n"
NO_REPLICA = b"SERVER_ERROR no replica\r\n"


def soon(ms):
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000) + ms


def expect(node, line, said):
    answer = node.ask(line)
    if answer != said:
        raise Failure("%s: %r is answered %r, not %r" % (node.name, line, answer, said))


def refused(node, line, words):
    answer = node.ask(line)
    if not answer.startswith(b"SERVER_ERROR ") or words not in answer:
        raise Failure("%s: %r is answered %r, without %r" % (node.name, line, answer, words))


def lead(node, epoch, until, waits):
    """What it says after OK: how far it is, and those it waits for."""
    answer = node.ask(b"lead 1 %d %d %s" % (epoch, until, waits))
    if not answer.startswith(b"OK "):
        raise Failure("lead is answered %r" % answer)
    return [int(word) for word in answer.split()[1:]]


def first(one, two):
    """It follows nobody until it is told, takes no changes before its agent's word, nor after."""
    expect(one, INCR, NOT_LEADER)
    expect(one, b"get feed:1001.like", b"SERVER_ERROR stale\r\n")
    each = one.ask(b"mg feed:1001.like v q\r\nmg feed:1002.like v q\r\nmn", b"MN\r\n")
    if each != b"SERVER_ERROR stale\r\n" * 2 + b"MN\r\n":
        raise Failure("two gets of meta are answered %r" % each)
    refused(one, b"lead 1 5 %d -" % soon(LONG_MS), b"this node follows")
    expect(one, b"promote 1 5 force", b"OK 5 0\r\n")
    state = one.stats()
    if [state[name] for name in ("role", "state", "reign", "epoch", "lease_us")] != ["leader", "leader-fenced", "5", "5", "0"]:
        raise Failure("a promoted node is %s" % state)
    expect(one, INCR, NOT_LEADER)
    until = soon(400)
    lead(one, 5, until, b"-")
    expect(one, b"set feed:1001.like 0 0 1\r\n1", b"STORED\r\n")
    pair.wait_for("fenced", lambda: one.ask(b"touch feed:1002 0") == NOT_LEADER)
    if soon(0) < until:
        raise Failure("it is fenced too soon")
    expect(one, b"get feed:1001.read", b"END\r\n")
    for line, words in ((b"lead 1 4 %d -" % soon(LONG_MS), b"in epoch 5, not 4"),
                        (b"lead 1 5 %d -" % (until - 1), b"an older word"),
                        (b"lead 1 5 %d -" % soon(3600000), b"CLOCK_BOOTTIME"),
                        (b"lead 1 5 x -", b"no number"), (b"lead 1 0 1 -", b"no number"),
                        (b"lead 1 5 %d a,b,c" % soon(LONG_MS), b"is no node"),
                        (b"lead 1 5 %d b,b" % soon(LONG_MS), b"is no node"),
                        (b"lead 1 5 %d A" % soon(LONG_MS), b"is no node"),
                        (b"lead 1 5 1 - force", b"it is: promote"), (b"lead 2 5 1 -", b"it is: promote"),
                        (b"promote 1 7 force", b"leads already"), (b"follow-to 1 -", b"this node leads")):
        refused(one, line, words)
    expect(one, INCR, NOT_LEADER)
    expect(two, b"follow-to 1 127.0.0.1:%d" % one.port, b"OK\r\n")
    expect(two, INCR, b"SERVER_ERROR not the leader; it is 127.0.0.1:%d\r\n" % one.port)
    refused(two, b"follow-to 1 nowhere", b"no HOST:PORT")


def waits(one, two):
    """For one, for both, for somebody who is not named, for nobody."""
    pair.level(one, two)
    written, acked = lead(one, 5, soon(LONG_MS), b"two")
    if acked != written:
        raise Failure("two has %d of %d" % (acked, written))
    if one.stats()["waits_for"] != "two" or one.stats()["in_sync"] != "1":
        raise Failure("it waits for %s" % one.stats()["waits_for"])
    expect(one, INCR, b"2\r\n")
    if lead(one, 5, soon(LONG_MS), b"two,three")[2] != 0:
        raise Failure("three has acknowledged something")
    expect(one, INCR, NO_REPLICA)
    lead(one, 5, soon(LONG_MS), b"three,two")
    expect(one, INCR, NO_REPLICA)
    lead(one, 5, soon(LONG_MS), b"*")
    expect(one, INCR, NO_REPLICA)
    lead(one, 5, soon(LONG_MS), b"-")
    expect(one, INCR, b"3\r\n")
    lead(one, 5, soon(LONG_MS), b"two")
    expect(one, INCR, b"4\r\n")
    two.kill()
    pair.wait_for("no replica", lambda: one.stats()["in_sync"] == "0")
    expect(one, INCR, NO_REPLICA)
    lead(one, 5, soon(LONG_MS), b"-")
    expect(one, INCR, b"5\r\n")
    two.start()
    if two.stats()["caught_up"] != "0":
        raise Failure("it says that it has caught up with nobody")
    expect(two, b"follow-to 1 127.0.0.1:%d" % one.port, b"OK\r\n")
    pair.level(one, two)
    if two.stats()["caught_up"] != "1" or two.stats()["reign"] != "5":
        raise Failure("it does not say that it has caught up: %s" % two.stats())


def handed_over(one, two):
    """The old leader takes nothing more, and goes back to where the new one's history leaves its own."""
    expect(two, b"promote 1 6 force", b"OK 6 %d\r\n" % int(two.stats()["written"]))
    lead(two, 6, soon(LONG_MS), b"-")
    expect(one, INCR, b"6\r\n")  # nobody has told it
    expect(one, b"follow-to 1 - force", b"OK\r\n")
    pair.wait_for("one follows", lambda: follows(one))
    expect(one, INCR, NOT_LEADER)
    expect(one, b"follow-to 1 127.0.0.1:%d" % two.port, b"OK\r\n")
    pair.wait_for("one is cut", lambda: "the journal was cut" in one.output() and follows(one))
    expect(one, b"follow-to 1 127.0.0.1:%d" % two.port, b"OK\r\n")
    pair.level(two, one)
    if one.stats()["fetched_copies"] != "0":
        raise Failure("it needed a copy")
    lead(two, 6, soon(LONG_MS), b"one")
    expect(two, INCR, b"6\r\n")
    pair.level(two, one)
    if one.export("feed") != two.export("feed"):
        raise Failure("exports differ")


def stale(three):
    """stale-after: a leader whose agent's word has ended for so long answers no reads either."""
    get, told = b"get feed:1001.like", b"SERVER_ERROR stale\r\n"
    expect(three, b"promote 1 5 force", b"OK 5 0\r\n")
    until = soon(300)
    lead(three, 5, until, b"-")
    pair.wait_for("stale", lambda: three.ask(get) == told)
    if soon(0) < until + STALE_MS:
        raise Failure("it is stale too soon")
    if three.stats()["stale"] != "1":
        raise Failure("it does not say that it is stale")
    lead(three, 5, soon(LONG_MS), b"-")
    expect(three, get, b"END\r\n")
    if three.stats()["stale"] != "0":
        raise Failure("it says that it is stale, and is not")


def follows(node):
    try:
        return node.stats()["role"] == "follower"
    except (OSError, Failure):
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    options = parser.parse_args()
    one, two, three = [pair.Node(options.directory, name) for name in ("one", "two", "three")]
    try:
        for node in (one, two, three):
            node.configure(agent=True, keep="64MiB, stale-after: %ds" % (STALE_MS // 1000) if node is three else "64MiB")
            node.start()
        for part in (first, waits, handed_over):
            part(one, two)
            print("%s: passed" % part.__name__)
        stale(three)
        print("stale: passed")
        three.stop()
        two.stop()
        one.stop()
    finally:
        for node in (one, two, three):
            if node.process.poll() is None:
                node.kill()
            node.folder.remove()


if __name__ == "__main__":
    try:
        main()
    except Failure as problem:
        print("FAILED: %s" % problem)
        sys.exit(1)
