#!/usr/bin/env python3
"""Caches in layers over a store, as a feed service has them: L1, Main and HA of role cache.

An application reads L1, Main and HA, and asks the store for what none of them has; what it then
knows it writes back to them by add, set or cas. What it changes it changes in the store, and then
in each layer in one of the ways there are: by the same command, by set, or by delete. Slots,
several slots and records are mixed, the clients too (pymemcache; libmemcached in text and binary;
meta). Ids grow, so that tables are recycled, dumped and written below; now and then a layer
forgets something or is started anew.

Keys of several slots, and fields by their names, come by like all else. What is refused for want
of a table or of the disk is tried again.

A step is stale if what it read is not what the store has been told (what is unset is 0). None may
be, and in the end the store has all of it.

    run.py [--steps N] [--seed N]   default: 20,000 steps times ROLLCALL_TEST_SCALE per cent;
                                    $ROLLCALLD names the daemon, $ROLLCALL_BUILD the folder of the
                                    build, $ROLLCALL_TEST_SEED the seed, or says random

Without libmemcached or pymemcache the others do its part. Exit 77: neither is there.
"""
import argparse
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recovery"))
import clients  # noqa: E402
import victim  # noqa: E402

STEPS = 20000
STALE_SHOWN = 5
SLOTS = ("repost", "comment", "like", "read")
EVERY = (1 << len(SLOTS)) - 1
L1, MAIN, HA, STORE = range(4)
LAYERS = (L1, MAIN, HA)
NAMES = ("L1", "Main", "HA", "the store")
HOT = 40         # ids that most steps are about
POSTS = 200      # new ids at a time …
POSTS_EVERY = 80  # … in so many steps
RESTART_EVERY = 3000
PAGE = 20
LARGE = (1 << 20) - 2  # the smallest number that a slot has no room for

# A row a daemon: its role and tables. The caches roll, drop tables and are written below them.
ROWS = (
    ("cache", "table-size: 64KiB, tables: 2"),
    ("cache", "table-size: 64KiB, tables: 3"),
    ("cache", "table-size: 64KiB, tables: 2, dumps-max: 2"),
    ("store", "table-size: 2MiB, tables: 2"),
)
FIGURES = ("hits", "misses_incomplete", "misses_unset", "misses_below", "below_hits",
           "recycled_tables")
KEPT = (HA, STORE)  # have a directory
CONFIG = """threads: 2
memory: 256MiB
flush-all: yes
%sspaces:
  feed: {kind: counter, slots: {repost: 20, comment: 20, like: 20, read: 20}, role: %s,
         %s}
"""
DATA = """data: %s
journal: {segment: 1MiB, buffer: 256KiB}
checkpoint: {every: 1s}
"""


class Stack:
    """The four daemons, and the clients of them."""

    def __init__(self):
        self.folders = [victim.Folder() for _ in ROWS]
        self.daemons = []
        self.figures = [dict.fromkeys(FIGURES, 0) for _ in ROWS]
        self.clients = []
        self.lines = None
        for at, (role, row) in enumerate(ROWS):
            data = DATA % self.folders[at].data if at in KEPT else ""
            with open(self.folders[at].config, "w", encoding="ascii") as file:
                file.write(CONFIG % (data, role, row))
            self.daemons.append(self.start(at))
        self.connect()

    def start(self, at):
        options = argparse.Namespace(connect=None, config=self.folders[at].config)
        return victim.protocol.Daemon(options, [])

    def connect(self):
        for client in self.clients:
            client.close()
        ports = [daemon.address[1] for daemon in self.daemons]
        self.clients = [clients.Meta(ports)]
        self.lines = clients.Patient(clients.Lines(ports))
        if os.path.exists(clients.Libmemcached.program()):
            self.clients += [clients.Libmemcached(ports, "text"),
                             clients.Libmemcached(ports, "binary")]
        try:
            self.clients.append(clients.Pymemcache(ports))
        except ImportError:
            pass
        if len(self.clients) == 1:
            print("SKIP: neither libmemcached-dev nor python3-pymemcache is installed")
            sys.exit(77)
        self.clients = [clients.Patient(client) for client in self.clients] + [self.lines]

    def callers(self):
        return self.clients[:-1]

    def restart(self, at):
        """Killed: a cache without a directory has nothing then, another one all."""
        self.note(at)
        self.daemons[at].kill()
        self.daemons[at] = self.start(at)
        self.connect()

    def note(self, at):
        """Adds up what shows that a run came by where it was to come by."""
        self.lines.client.peers[at].sendall(b"stats spaces\r\n")
        while True:
            words = self.lines.client.line(at).split()
            if words[0] == "END":
                return
            name = words[1][len("feed:") :]
            if name in FIGURES:
                self.figures[at][name] += int(words[2])

    def stop(self):
        for client in self.clients:
            client.close()
        problems = [daemon.stop(False) for daemon in self.daemons]
        return [problem for problem in problems if problem]

    def remove(self):
        for daemon in self.daemons:
            daemon.kill()
        for folder in self.folders:
            folder.remove()


def named(mask):
    return [name for i, name in enumerate(SLOTS) if mask >> i & 1]


def key_of(post, mask):
    """mask: the slots, all of them a record."""
    return "feed:%d" % post if mask == EVERY else "feed:%d.%s" % (post, "+".join(named(mask)))


def fields(text):
    """The numbers of a value; None: an empty field."""
    return [int(field) if field else None for field in text.split(",")]


def joined(numbers):
    return ",".join("" if number is None else "%d" % number for number in numbers)


class Application:
    """Makes the steps and knows what the store was told."""

    def __init__(self, stack, seed):
        self.stack = stack
        self.rng = random.Random(seed)
        self.truth = {}     # by post: numbers, None where unset
        self.touched = set()
        self.newest = 1000
        self.stale = 0
        self.steps = 0
        self.client = None

    # ---- what is asked for ----

    def post(self):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.8:
            post = self.newest - rng.randrange(HOT)
        elif kind < 0.9:
            post = 1 + rng.randrange(HOT)  # the oldest: not in the tables of L1 for long
        else:
            post = 1 + rng.randrange(self.newest)
        self.touched.add(post)
        return post

    def mask(self):
        kind = self.rng.random()
        if kind < 0.2:
            return self.rng.randrange(1, EVERY)
        return EVERY if kind < 0.6 else 1 << self.rng.randrange(len(SLOTS))

    def number(self):
        kind = self.rng.random()
        if kind < 0.9:
            return self.rng.randrange(200)
        return LARGE - 2 + self.rng.randrange(100000)

    def told(self, post, mask):
        numbers = self.truth.get(post, [None] * len(SLOTS))
        return [number for i, number in enumerate(numbers) if mask >> i & 1]

    def tell(self, post, mask, numbers):
        """numbers: of the slots of the mask in their order."""
        told = self.truth.setdefault(post, [None] * len(SLOTS))
        left = list(numbers)
        for i in range(len(SLOTS)):
            if mask >> i & 1:
                told[i] = left.pop(0)

    # ---- judging ----

    def judge(self, at, post, mask, text):
        """Whether a value is what the store was told."""
        numbers = fields(text)
        told = self.told(post, mask)
        right = [number or 0 for number in numbers] == [number or 0 for number in told]
        if not right:
            self.complain("%s of %s is %s, the store was told %s" % (
                key_of(post, mask), NAMES[at], text, joined(told)))
            for layer in LAYERS:
                self.client.delete(layer, "feed:%d" % post)
        return right

    def complain(self, text):
        self.stale += 1
        if self.stale <= STALE_SHOWN:
            print("step %d, %s: %s" % (self.steps, self.client.name, text))

    # ---- reading ----

    def look(self, at, post, mask):
        """(value, token) of one key of one daemon, judged; None: it is not there, or wrong."""
        key = key_of(post, mask)
        found = self.client.get(at, [key]).get(key)
        return found if found and self.judge(at, post, mask, found[0]) else None

    def write_back(self, at, post, mask, text):
        """What the store said, to a layer that did not have it. Whether that took it."""
        key, how = key_of(post, mask), self.rng.choice(("add", "set", "cas", "nothing"))
        if how == "cas":
            found = self.client.get(at, [key]).get(key)
            if found:
                return self.client.cas(at, key, found[1], text) == "stored"
            how = "add"
        return how == "nothing" or self.client.store(at, how, key, text)

    def read(self):
        post, mask = self.post(), self.mask()
        missed = []
        for at in self.rng.choice((LAYERS, (MAIN, HA), (L1, HA))):
            found = self.look(at, post, mask)
            if found:
                break
            missed.append(at)
        else:
            found = self.look(STORE, post, mask)
            if not found and any(number is not None for number in self.told(post, mask)):
                self.complain("the store does not have " + key_of(post, mask))
        if found:
            for at in missed:
                if not self.write_back(at, post, mask, found[0]):
                    self.complain("%s, which has just said that it does not have %s, does not take "
                                  "it" % (NAMES[at], key_of(post, mask)))

    def read_page(self):
        """Many keys of one layer; one that is not there is asked for in the next. A record that is
        written back may bring a slot with it, which is then there."""
        asked = {}
        for _ in range(PAGE):
            post, mask = self.post(), self.mask()
            asked[key_of(post, mask)] = (post, mask)
        missed = dict(asked)
        for at in (*LAYERS, STORE):
            found = self.client.get(at, list(missed)) if missed else {}
            for key, (text, _) in found.items():
                post, mask = missed.pop(key)
                if self.judge(at, post, mask, text) and at == STORE:
                    self.write_back(self.rng.choice(LAYERS), post, mask, text)

    def read_back(self):
        """What a layer or the store itself says is written to the store, as after a loss."""
        post, mask = self.post(), self.mask()
        key = key_of(post, mask)
        found = self.look(self.rng.choice((L1, MAIN, HA, STORE)), post, mask)
        if not found:
            return
        if self.rng.random() < 0.5:
            self.client.store(STORE, "set", key, found[0])
        else:
            there = self.look(STORE, post, mask)
            if there:
                self.client.cas(STORE, key, there[1], found[0])

    # ---- changing ----

    def everywhere(self, change):
        """Layers come in any order."""
        for at in self.rng.sample(LAYERS, len(LAYERS)):
            change(at)

    def count(self):
        """One slot, or several by one number: it is the first one's that is answered."""
        rng, post = self.rng, self.post()
        mask = rng.randrange(1, EVERY) if rng.random() < 0.3 else 1 << rng.randrange(len(SLOTS))
        key, verb, delta = key_of(post, mask), rng.choice(("incr", "incr", "decr")), \
            rng.randrange(5)
        number = self.client.count(STORE, verb, key, delta)
        if number is None:
            return  # a client that never creates
        self.tell(post, mask, [(was or 0) + delta if verb == "incr" else max(0, (was or 0) - delta)
                               for was in self.told(post, mask)])
        if number != self.told(post, mask)[0]:
            self.complain("%s %s is %d in the store" % (verb, key, number))
        self.everywhere(lambda at: self.counted(at, key, number,
                                                self.client.count(at, verb, key, delta)))

    def counted(self, at, key, wanted, number):
        if number is not None and number != wanted:
            self.complain("counting of %s at %d answered %d, not %d" % (key, at, number, wanted))

    def count_record(self):
        """Some slots of a record in one command."""
        post = self.post()
        verb = self.rng.choice(("incr", "decr"))
        deltas = [self.rng.choice((None, self.rng.randrange(5))) for _ in SLOTS]
        if not any(delta is not None for delta in deltas):
            return
        line = "%s feed:%d %s" % (verb, post, joined(deltas))
        lines = self.stack.lines
        sign = 1 if verb == "incr" else -1
        self.tell(post, EVERY, [was if delta is None else max(0, (was or 0) + sign * delta)
                                for was, delta in zip(self.told(post, EVERY), deltas)])
        self.judge(STORE, post, EVERY, lines.ask(STORE, line))

        def change(at):
            answer = lines.ask(at, line)
            if answer != "NOT_FOUND":
                self.judge(at, post, EVERY, answer)

        self.everywhere(change)

    def change_store(self, post, mask, text):
        """By a random verb. (verb, whether it was stored, the token of before)"""
        key = key_of(post, mask)
        verb = self.rng.choice(("set", "set", "add", "replace", "cas"))
        token = None
        if verb == "cas":
            found = self.look(STORE, post, mask)
            token = found and found[1]
            stored = bool(found) and self.client.cas(STORE, key, token, text) == "stored"
            if found and not stored:
                self.complain("cas of %s does not find what was just read" % key)
        else:
            stored = self.client.store(STORE, verb, key, text)
        if verb == "set" and not stored:
            self.complain("set of %s is not stored" % key)
        return verb, stored, token

    def change_layer(self, at, post, mask, text, verb, token):
        """What a layer is told of a change that the store has taken."""
        key = key_of(post, mask)
        how = self.rng.choice((verb, "set", "replace", "cas", "delete"))
        if how == "add":
            how = "set"  # what is there may be a 0 where the store had nothing
        if how == "cas" and token and self.rng.random() < 0.5:
            if self.client.cas(at, key, token, text) == "exists":
                self.client.delete(at, key)  # it had something else: 0 for what is unset
        elif how == "cas":
            found = self.client.get(at, [key]).get(key)
            if not found:
                self.client.store(at, "add", key, text)
            elif self.client.cas(at, key, found[1], text) != "stored":
                self.complain("cas of %s does not find what was just read" % key)
        elif how == "delete":
            self.client.delete(at, key)
        else:
            self.client.store(at, how, key, text)

    def change(self):
        """A slot, or a whole record."""
        post, mask = self.post(), self.mask()
        numbers = [self.number() for _ in range(bin(mask).count("1"))]
        verb, stored, token = self.change_store(post, mask, joined(numbers))
        if stored:
            self.tell(post, mask, numbers)
            self.everywhere(lambda at: self.change_layer(at, post, mask, joined(numbers), verb,
                                                         token))

    def change_some(self):
        """A record with empty fields, which the store leaves as they are; a cache cannot."""
        post, told = self.post(), None
        numbers = [self.rng.choice((None, self.number())) for _ in SLOTS]
        _, stored, _ = self.change_store(post, EVERY, joined(numbers))
        if stored:
            told = self.told(post, EVERY)
            self.tell(post, EVERY, [was if number is None else number
                                    for was, number in zip(told, numbers)])
            self.everywhere(lambda at: self.client.delete(at, key_of(post, EVERY)))

    def change_named(self):
        """Some fields by their names: the same command for the store and the caches."""
        post, mask = self.post(), self.rng.randrange(1, EVERY)
        numbers = [self.number() for _ in named(mask)]
        text = ",".join("%s=%d" % field for field in zip(named(mask), numbers))
        _, stored, _ = self.change_store(post, EVERY, text)
        if stored:
            self.tell(post, mask, numbers)
            verb = self.rng.choice(("set", "replace"))
            self.everywhere(lambda at: self.client.store(at, verb, key_of(post, EVERY), text))

    def delete(self):
        post, mask = self.post(), self.mask()
        key, how = key_of(post, mask), self.rng.choice(("delete", "touch", "gat"))

        def change(at):
            if how == "delete":
                self.client.delete(at, key)
            elif how == "touch":
                self.client.touch(at, key, 1000000000)
            else:
                self.stack.lines.read(at, "gat -1 " + key)

        change(STORE)
        self.tell(post, mask, [None] * len(SLOTS))
        self.everywhere(change)

    def touch(self):
        self.client.touch(self.rng.randrange(4), key_of(self.post(), self.mask()), 0)

    def forget(self):
        """One layer loses something."""
        self.client.delete(self.rng.choice(LAYERS), key_of(self.post(), self.mask()))

    # ---- now and then ----

    def publish(self):
        """New posts: the store has them, and some layers."""
        values = {}
        for _ in range(POSTS):
            self.newest += 1
            numbers = [self.rng.choice((None, 0, self.rng.randrange(3))) for _ in SLOTS]
            if numbers != [None] * len(SLOTS):
                values[key_of(self.newest, EVERY)] = joined(numbers)
                self.tell(self.newest, EVERY, numbers)
        self.stack.lines.set_many(STORE, values)
        for at in LAYERS:
            part = [key for key in values if self.rng.random() < 0.7]
            self.stack.lines.set_many(at, {key: values[key] for key in part})

    KINDS = ((read, 40), (read_page, 4), (read_back, 8), (count, 22), (count_record, 8),
             (change, 14), (change_some, 4), (change_named, 6), (delete, 4), (touch, 2), (forget, 6))

    def step(self):
        self.steps += 1
        self.client = self.rng.choice(self.stack.callers())
        if self.steps % POSTS_EVERY == 0:
            self.publish()
        if self.steps % RESTART_EVERY == 0:
            self.stack.restart(self.rng.choice(LAYERS))
            self.client = self.stack.callers()[0]
        kinds, weights = zip(*self.KINDS)
        self.rng.choices(kinds, weights)[0](self)

    def judge_all(self):
        """Every record in every daemon, and the slots of those that steps were about."""
        self.client = self.stack.callers()[0]
        keys = {key_of(post, EVERY): (post, EVERY) for post in self.truth}
        for post in self.touched:
            keys.update({key_of(post, 1 << i): (post, 1 << i) for i in range(len(SLOTS))})
        for at in (*LAYERS, STORE):
            left = set(keys)
            for first in range(0, len(keys), 1000):
                part = list(keys)[first : first + 1000]
                for key, (text, _) in self.client.get(at, part).items():
                    self.judge(at, *keys[key], text)
                    left.discard(key)
            for key in left if at == STORE else ():
                if any(number is not None for number in self.told(*keys[key])):
                    self.complain("the store does not have " + key)


def main():
    parser = argparse.ArgumentParser(description="Caches in layers; see the top of this file.")
    scale = int(os.environ.get("ROLLCALL_TEST_SCALE") or 100)
    parser.add_argument("--steps", type=int, default=STEPS * scale // 100)
    parser.add_argument("--seed", type=int, default=0, help="0: as $ROLLCALL_TEST_SEED says")
    options = parser.parse_args()
    seed = victim.seed_of_run(options.seed)
    stack = Stack()
    try:
        application = Application(stack, seed)
        application.client = stack.callers()[0]
        while application.newest < 1000 + HOT:
            application.publish()
        while application.steps < options.steps:
            application.step()
        application.judge_all()
        for at in LAYERS:
            stack.note(at)
        problems = stack.stop()
    finally:
        stack.remove()
    for at in LAYERS:
        print(NAMES[at] + "".join(", %s %d" % figure for figure in stack.figures[at].items()))
        if not stack.figures[at]["misses_incomplete"]:
            problems.append("no record was incomplete in " + NAMES[at])
    print("%d of %d steps stale" % (application.stale, application.steps))
    for problem in problems:
        print("FAIL " + problem)
    return 1 if application.stale or problems else 0


if __name__ == "__main__":
    sys.exit(main())
