"""layers.py: an application over the fleet of cluster.py, by clients that others wrote: it reads from L1, then
Main, then HA, and asks its database for what none of them has; it writes to whoever leads.

Which shard has an id the application decides by itself. An id that was stored must never be missed: not while
an L1 is killed and comes back with an empty disk, nor while Main is gone.
"""
import os
import random
import shutil
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "layers"))
import agents  # noqa: E402
import clients  # noqa: E402
import pair  # noqa: E402
from victim import Failure  # noqa: E402

LEADER, L1, MAIN, HA = range(4)
NAMES = ("HAProxy", "L1", "Main", "HA")
POSTS = 400
PAGE = 20
CHANGES = 200  # whose way to L1 is measured
PACE_S = 0.002
LATE_S = 0.05 * agents.PATIENCE  # a median: a change that waits for the next beat of the stream takes 0.1 s
FIRST = 5000000


def kinds():
    """How to make a client of ports, for each that can be had here."""
    found, missing = [], []
    try:
        clients.Pymemcache([])
        found.append(clients.Pymemcache)
    except ImportError:
        missing.append("pymemcache")
    if os.path.exists(clients.Libmemcached.program()):
        found.append(lambda ports: clients.Libmemcached(ports, "text"))
    else:
        missing.append("libmemcached")
    return found, missing


class Application:
    """One thread's clients, and what it saw: answers of each layer, and of the database."""

    def __init__(self, cluster, kind):
        self.shards, self.answers, self.failed, self.database = cluster.shards, [0] * 4, [0] * 4, set()
        ports = []
        for shard in self.shards:
            main, ha, l1 = (node.port for node in shard.nodes)
            ports += [shard.writes, l1, main, ha]
        self.client = kind(ports)

    def place(self, number, layer):
        return 4 * (number % len(self.shards)) + layer

    def read(self, ids):
        """{id: text}, and in .database what no layer had."""
        found = {}
        for layer in (L1, MAIN, HA):
            for shard in range(len(self.shards)):
                keys = ["feed:%d.like" % i for i in ids if i not in found and i % len(self.shards) == shard]
                if keys:
                    found.update(self.ask(self.place(shard, layer), layer, keys))
        self.database.update(set(ids) - set(found))
        return found

    def ask(self, at, layer, keys):
        try:
            values = self.client.get(at, keys)
        except Exception:  # each client has its own: gone, stale, not connected
            self.failed[layer] += 1
            return {}
        self.answers[layer] += len(values)
        return {int(key[5:-5]): value for key, (value, _) in values.items()}

    def change(self, verb, number, what):
        """The answer; None: nobody knows, or it was refused."""
        call = self.client.count if verb == "incr" else self.client.store
        try:
            return call(self.place(number, LEADER), verb, "feed:%d.like" % number, what)
        except Exception:
            self.failed[LEADER] += 1
            return None

    def close(self):
        self.client.close()


class Posts:
    """What was stored, how often each was raised, and how often that was answered."""

    def __init__(self):
        self.stored, self.sent, self.acked = [], {}, {}

    def store(self, application, number):
        self.sent[number] = self.acked[number] = 0
        if application.change("set", number, "0"):
            self.stored.append(number)
            return True
        return False

    def raise_one(self, application, number):
        self.sent[number] += 1
        if application.change("incr", number, 1) is not None:
            self.acked[number] += 1


class Load(threading.Thread):
    def __init__(self, application, posts, seed, writes):
        super().__init__(daemon=True)
        self.application, self.posts, self.writes = application, posts, writes
        self.rng, self.ended, self.trouble = random.Random(seed), False, None
        self.start()

    def run(self):
        try:
            while not self.ended:
                self.step()
                time.sleep(PACE_S)
        except Exception as problem:
            self.trouble = repr(problem)
        self.application.close()

    def step(self):
        posts, recent = self.posts, self.posts.stored[-POSTS:]
        if self.writes and self.rng.random() < 0.2:
            posts.store(self.application, max(posts.sent) + 1)
        elif self.writes:
            posts.raise_one(self.application, self.rng.choice(recent))
        else:
            self.application.read(self.rng.sample(recent, PAGE))


def lateness(application, posts):
    """Seconds from the answer to a change until L1 shows it."""
    found = []
    for number in (posts.stored * 2)[:CHANGES]:
        posts.raise_one(application, number)
        began = time.monotonic()
        at = application.place(number, L1)
        while application.ask(at, L1, ["feed:%d.like" % number]).get(number) != str(posts.acked[number]):
            if time.monotonic() > began + pair.LEVEL_S:
                raise Failure("L1 never shows a change")
        found.append(time.monotonic() - began)
    return found


def refill(shard):
    """L1 is killed, and comes back with nothing."""
    node = shard.nodes[2]
    node.kill()
    time.sleep(0.5)
    shutil.rmtree(node.folder.data)
    node.folder.own(node.folder.data)
    node.start()
    pair.wait_for(lambda: "L1 is not filled:\n" + shard.outputs(), lambda: node.stats().get("caught_up") == "1")
    before = int(node.stats(b"")["get_hits"])
    pair.wait_for("L1 is read again", lambda: int(node.stats(b"")["get_hits"]) > before + PAGE)


def check_values(cluster, kind, posts):
    """acknowledged <= value <= sent, at L1."""
    for shard in cluster.shards:
        shard.await_whole()
        leader = shard.leader()
        for node in shard.nodes:
            if node is not leader:
                pair.level(leader, node)
    application = Application(cluster, kind)
    for number in posts.stored:
        value = int(application.ask(application.place(number, L1), L1, ["feed:%d.like" % number])[number])
        if not posts.acked[number] <= value <= posts.sent[number]:
            raise Failure("feed:%d is %d, acknowledged are %d of %d" % (
                number, value, posts.acked[number], posts.sent[number]))
    application.close()


def fill(application, posts):
    for number in range(FIRST, FIRST + POSTS):
        pair.wait_for("a post is stored", lambda: posts.store(application, number))
    pair.wait_for("L1 has all of them", lambda: all(
        application.ask(application.place(number, L1), L1, ["feed:%d.like" % number]) for number in posts.stored))


def run(cluster):
    """Lines that say what was seen."""
    found, missing = kinds()
    if not found:
        raise Failure("neither pymemcache nor libmemcached is there")
    posts, loads, said = Posts(), [], []
    first = Application(cluster, found[0])
    fill(first, posts)
    late = sorted(lateness(first, posts))
    said.append("L1 shows a change %.1f ms after its answer (median of %d; 99%%: %.1f ms)" % (
        statistics.median(late) * 1000, len(late), late[len(late) * 99 // 100] * 1000))
    try:
        for number in range(4):
            kind = found[number % len(found)]
            loads.append(Load(Application(cluster, kind), posts, cluster.rng.random(), number == 0))
        for shard in cluster.shards:
            refill(shard)
        cluster.shards[0].nodes[2].kill()
        leader = cluster.shards[0].leader()
        leader.kill()
        cluster.await_writes(cluster.shards[0])
        time.sleep(agents.TTL_S)
        leader.start()
        cluster.shards[0].nodes[2].start()
    finally:
        for load in loads:
            load.ended = True
            load.join(pair.ANSWER_S)
    judge(loads)
    check_values(cluster, found[0], posts)
    if statistics.median(late) > LATE_S:
        raise Failure(said[0])
    answers = [sum(load.application.answers[layer] for load in loads) for layer in range(4)]
    said.append("%d posts, %d raised; read from L1 %d, Main %d, HA %d, the database 0%s" % (
        len(posts.stored), sum(posts.acked.values()), *answers[1:],
        "" if not missing else "; not here: " + " ".join(missing)))
    return said


def judge(loads):
    for load in loads:
        if load.trouble:
            raise Failure("a client: " + load.trouble)
        if load.application.database:
            raise Failure("the database was asked for %s" % sorted(load.application.database)[:5])
    for layer in (L1, MAIN, HA):
        if not any(load.application.answers[layer] for load in loads):
            raise Failure("%s answered nothing" % NAMES[layer])
