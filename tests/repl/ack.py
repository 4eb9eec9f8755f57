#!/usr/bin/env python3
"""ack: replica: a write is answered when the named follower has it, refused while that one is away.

    tests/repl/ack.py [--directory DIR] [--seed N]

$ROLLCALLD names the daemon.
"""
import argparse
import os
import random
import socket
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from feed import World  # noqa: E402
from follower import ANSWER_S, Over, Wrong, words_at_records  # noqa: E402
from victim import Failure, seed_of_run  # noqa: E402

ACK = "ack: replica, ack-by: two, ack-timeout: 1s"
ROUNDS = 4
REFUSED = b"SERVER_ERROR no replica\r\n"
QUIET_S = 0.3
CALLERS_TYPES = 16  # JOURNAL_TYPES_RESERVED


class Client:
    def __init__(self, world):
        self.socket = socket.create_connection(world.daemon.address, ANSWER_S)

    def say(self, text):
        self.socket.sendall(text)

    def hear(self, seconds=ANSWER_S):
        """What comes; None: nothing, b"": closed."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1 << 16)
        except socket.timeout:
            return None
        except OSError:
            return b""

    def ask(self, text, expected):
        self.say(text)
        said = self.hear()
        if said != expected:
            raise Failure("%r: answered %r, not %r" % (text, said, expected))


def refused(world):
    """Nothing is changed without the follower, whatever the verb; reads go on."""
    client = Client(world)
    for text in (b"set feed:1.like 0 0 1\r\n5\r\n", b"incr feed:1.like 1\r\n",
                 b"set liked:1:u1 0 0 1\r\n1\r\n"):
        client.ask(text, REFUSED)
    client.ask(b"get feed:1.like\r\n", b"END\r\n")
    client.ask(b"get liked:1:u1\r\n", b"END\r\n")


def in_sync(world, follower):
    """It follows and has caught up: a write is taken."""
    if follower.follow()[0] != "STREAM":
        raise Failure("no stream")
    follower.take_until(lambda: "which is in sync" in world.daemon.output())



def waits(world):
    """The answer leaves with the word of the follower named, and of no other."""
    follower, other = world.follower(), world.follower("three")
    in_sync(world, follower)
    if other.follow()[0] != "STREAM":
        raise Failure("no stream for another")
    client = Client(world)
    before = int(world.stats()["written"])
    follower.acknowledges = False
    client.say(b"set feed:1.like 0 0 1\r\n5\r\n")
    for one in (other, follower):
        one.take_until(lambda: one.end() > before)
    if client.hear(QUIET_S) is not None:
        raise Failure("answered without the follower's word")
    follower.acknowledges = True
    follower.acknowledge()
    said = client.hear()
    if said != b"STORED\r\n":
        raise Failure("not answered, but %r" % said)
    other.close()

    follower.acknowledges = False  # it lives, but the word for this one does not come
    has = follower.end()
    client.say(b"incr feed:1.like 1\r\n")
    began = time.monotonic()
    while (said := client.hear(0.1)) is None and time.monotonic() < began + 4:
        follower.say("A %d %d %d" % (has, has, has))
    if said != b"" or not 0.9 < time.monotonic() - began < 3.5:
        raise Failure("after %.1f s: %r" % (time.monotonic() - began, said))
    follower.close()
    until = time.monotonic() + ANSWER_S
    while "they wait for is gone" not in world.daemon.output():
        if time.monotonic() > until:
            raise Failure("it is not missed")
        time.sleep(0.01)
    Client(world).ask(b"incr feed:1.like 1\r\n", REFUSED)


def durable(options, rng):
    """What is on the disk before it is answered is so there, too."""
    world = World(options, rng, sync="always")
    try:
        configure(world)
        world.serve()
        follower = world.follower()
        in_sync(world, follower)
        before = follower.end()
        follower.acknowledges = False
        client = Client(world)
        client.say(b"set feed:1.like 0 0 1\r\n5\r\n")
        follower.take_until(lambda: follower.end() > before)
        follower.say("A %d %d %d" % (follower.end(), before, before))
        if client.hear(QUIET_S) is not None:
            raise Failure("answered when the follower had it, and not on its disk")
        follower.say("A %d %d %d" % (follower.end(), follower.end(), before))
        said = client.hear()
        if said != b"STORED\r\n":
            raise Failure("not answered, but %r" % said)
    finally:
        world.end()


class Writer(threading.Thread):
    def __init__(self, world):
        super().__init__(daemon=True)
        self.client, self.answered = Client(world), 0
        self.start()

    def run(self):
        try:
            while True:
                self.client.say(b"incr feed:2.read 1\r\n" * 10)
                lines = 0
                while lines < 10:
                    said = self.client.hear()
                    if not said:
                        return
                    lines += said.count(b"\r\n")
                    self.answered += sum(line.isdigit() for line in said.split(b"\r\n"))
        except OSError:
            return


def killed(options, rng):
    """What was answered the follower has, whenever the leader is killed."""
    world = World(options, rng)
    world.values["more"] = ""
    answered = 0
    try:
        configure(world)
        world.serve()
        follower = world.follower()
        in_sync(world, follower)
        Client(world).say(b"set feed:2 0 0 3\r\n0,0\r\n")
        for _ in range(ROUNDS):
            writers = [Writer(world) for _ in range(4)]
            threading.Timer(rng.uniform(0.1, 0.6), world.daemon.kill_now).start()
            try:
                follower.take_until(lambda: False)
            except Over:
                pass
            for writer in writers:
                writer.join(ANSWER_S)
                answered += writer.answered
            has = sum(word >> 32 & 0xff >= CALLERS_TYPES for word in
                      words_at_records(follower.data))
            if has < answered:
                raise Failure("%d were answered, the follower has %d records" % (answered, has))
            world.serve()
            follower.connect(world.daemon.address)
            in_sync(world, follower)
        if answered < 100:
            raise Failure("only %d were answered" % answered)
        return answered
    finally:
        world.end()


def configure(world):
    world.values["rate"] = "0, " + ACK


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(seed_of_run(options.seed))
    world = World(options, rng)
    try:
        configure(world)
        world.serve()
        refused(world)
        waits(world)
    finally:
        world.end()
    durable(options, rng)
    print("%d increments answered, all are with the follower" % killed(options, rng))


if __name__ == "__main__":
    try:
        main()
    except (Failure, Wrong, Over) as problem:
        print("FAILED: %s" % problem)
        sys.exit(1)
