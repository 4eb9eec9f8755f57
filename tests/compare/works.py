"""works.py: the works of plan.py, each server in each way, the null servers beside them, and memory an id.

A server with the data of one layout and one population is started and loaded when it is first needed
and stays until no work to come needs it: idle ones cost nothing.
"""
import plan
from generator import WARM_REQUESTS, Entry, cpu_us, measure, ratio
from servers import TABLE_MIN, Failure, Shape, Skip, memory_available, power_of_two

LARGE_SPARE = 1 << 30  # bytes of memory that stay free
MEMORY_TABLES = 16  # of so many a population fills nearly all
FEED_TABLES = 4  # at capacity
LIKED_TABLES = 64  # so many that the first, in which a space learns how dense its ids are, counts little


class Fleet:
    """Loaded servers by (server, layout, ids)."""

    def __init__(self, places, generator, spacing, core):
        self.places, self.generator = places, generator
        self.spacing, self.core = spacing, core
        self.running, self.skipped = {}, {}

    def start(self, server, ids, shape=None):
        if server == "rollcalld":
            return self.places.start_rollcalld(shape or Shape(ids, self.spacing), [self.core])
        if server == "memcached":
            return self.places.start_memcached([self.core])
        if server in self.places.peers:
            return self.places.start_peer(server, [self.core])
        return self.places.start_redis([self.core])

    def check(self, server, layout, ids):
        needed = plan.BYTES_ABOUT[server, layout] * ids * 5 // 4 + LARGE_SPARE
        if memory_available() < needed:
            raise Skip("%s, %s, %s ids: needs %.1f GiB of memory, %.1f are there" % (
                server, plan.LAYOUT_TEXT[server, layout], number(ids), needed / 2**30,
                memory_available() / 2**30))

    def load(self, process, server, layout, ids):
        for words in plan.LOADS[server, layout]:
            self.generator.load(process, ids, words)

    def get(self, server, layout, ids):
        key = (server, layout, ids)
        if key not in self.running:
            self.check(*key)
            self.running[key] = self.start(server, ids)
            self.load(self.running[key], *key)
        return self.running[key]

    def keep(self, keys):
        """Ends all servers but these."""
        for key in set(self.running) - set(keys):
            self.running.pop(key).stop()


def number(count):
    return "{:,}".format(count)


def keys_of(work, sizes):
    keys = {(way.server, way.layout, sizes[work.size]) for way in work.ways}
    return keys | ({("rollcalld", "both", sizes[plan.SMALL])} if work.own else set())


def null_words(work, reply_bytes):
    """A reply as long as rollcalld's: as many VALUEs, their keys stretched to fit."""
    if not work.keys:
        return ["--mode", "incr", "--value-bytes", max(1, round(reply_bytes) - 2)]
    around = len("VALUE  0 \r\n\r\n") + len(str(work.value)) + work.value
    key_bytes = max(1, round((reply_bytes - len("END\r\n")) / work.keys) - around)
    return ["--mode", "page", "--keys", work.keys, "--key-bytes", key_bytes, "--value-bytes",
            work.value]


def reply_bytes(generator, entry):
    run = generator.run(entry.process, entry.words + ["--requests", WARM_REQUESTS], None,
                        entry.missing)
    return run["bytes_received"] / run["requests"]


def way_entries(work, fleet, sizes, skipped):
    base = list(work.words) + ["--connections", plan.CONNECTIONS]
    # Of existence checks the generator itself knows which must be found.
    missing = "exist" in work.words
    ways = list(work.ways)
    if work.own:
        ways.insert(1, ways[0]._replace(name=plan.OWN_SMALL))
    for way in ways:
        ids = sizes[plan.SMALL if way.name == plan.OWN_SMALL else work.size]
        try:
            process = fleet.get(way.server, way.layout, ids)
        except Skip as why:
            skipped.append(str(why))
            continue
        words = base + ["--ids", ids, "--verify", work.verify] + list(way.words)
        yield Entry(way.server, way.name, process, words, missing=missing)


def null_entries(work, fleet, first, ids, started):
    size = reply_bytes(fleet.generator, first)
    words = list(work.words) + ["--connections", plan.CONNECTIONS, "--ids", ids, "--verify", "off"]
    for name, bare in ((plan.LIBEVENT, []), (plan.BARE, ["--bare"])):
        process = fleet.places.start_null(null_words(work, size) + bare, [fleet.core])
        started.append(process)
        yield Entry("null", name, process, words, missing=True,
                    note="%.0f bytes a reply" % size)


def run_work(work, fleet, sizes, options, say):
    """(entries, what was skipped)."""
    started, skipped = [], []
    fleet.keep(keys_of(work, sizes))
    try:
        entries = list(way_entries(work, fleet, sizes, skipped))
        if not entries or entries[0].server != "rollcalld":
            raise Failure("rollcalld could not be loaded: %s" % skipped)
        entries += null_entries(work, fleet, entries[0], sizes[work.size], started)
        measure(fleet.generator, entries, options.rounds, options.seconds, say)
        return entries, skipped
    finally:
        for process in started:
            process.stop()


def best(entries, server):
    """The way of a server that takes its core the least time."""
    of_server = [entry for entry in entries
                 if entry.server == server and entry.name != plan.OWN_SMALL]
    return min(of_server, key=lambda entry: entry.median(cpu_us), default=None)


def judge(goal, entries):
    """(ratio, met, against) of a goal; None if what it compares with was not measured."""
    if goal.name is None:
        other = best(entries, goal.server)
    else:
        other = next((entry for entry in entries
                      if (entry.server, entry.name) == (goal.server, goal.name)), None)
    if other is None:
        return None
    if goal.kind == "cost":
        # The first entry is rollcalld's text way: what a client speaks unless told otherwise.
        got = ratio(entries[0], other)
        return got, got <= goal.limit, other.name
    got = ratio(other, entries[0])
    return got, got >= goal.limit, other.name


# ---- memory ----


def peer_memory(fleet, server, layout, ids):
    """Bytes an id: what the load added."""
    fleet.check(server, layout, ids)
    process = fleet.start(server, ids)
    try:
        before = process.resident_settled()
        fleet.load(process, server, layout, ids)
        return (process.resident_settled() - before) / ids
    finally:
        process.stop()


class Feed(Shape):
    """Counters alone."""

    def __init__(self, ids, spacing, late_room="auto", tables=MEMORY_TABLES):
        super().__init__(ids, spacing, tables, late_room)
        self.liked_tables = 0

    def least(self):
        """One table, the smallest there is."""
        self.feed, self.feed_tables = TABLE_MIN, 1
        return self


class Liked(Shape):
    """Existence alone."""

    def __init__(self, ids, spacing, late_room="auto", tables=MEMORY_TABLES):
        super().__init__(ids, spacing, tables, late_room)
        self.liked = power_of_two(ids * 4 // tables)
        self.feed_tables, self.liked_tables = 0, tables

    def least(self):
        self.liked, self.liked_tables = TABLE_MIN, 1
        return self


def resident_of(fleet, shape, ids, words, full=False):
    """(resident bytes, stats of the spaces, stats of the tables) after the load."""
    process = fleet.start("rollcalld", ids, shape)
    try:
        if ids:
            words = list(words) + (["--allow", "SERVER_ERROR"] if full else [])
            fleet.generator.run(process, ["--load", "--requests", 0, "--ids", ids] + words,
                                missing=full)
        return process.resident_settled(), process.stats("spaces"), process.stats("tables")
    finally:
        process.stop()


def own_memory(fleet, ids):
    """Bytes an id with just the tables that hold so many, beyond a daemon with the smallest table."""
    shape = Feed(ids, fleet.spacing)
    shape.feed_tables = int(resident_of(fleet, shape, ids, ())[1]["feed:tables"])
    bytes_least = resident_of(fleet, Feed(ids, fleet.spacing).least(), 0, ())[0]
    return (resident_of(fleet, shape, ids, ())[0] - bytes_least) / ids


def told(tables):
    """Table memory as stats tells it: tables, and what stands beside them."""
    parts = [int(value) for name, value in tables.items()
             if name.rsplit(":", 1)[-1] in ("bytes", "extend_bytes", "aux_bytes",
                                            "exceptions_bytes")]
    return sum(parts), sum(int(value) for name, value in tables.items() if name.endswith(":bytes"))


def at_capacity(fleet, kind, ids, late_room):
    """A space filled until it refuses: records, and bytes for each."""
    words = ("--workload", "exist") if kind is Liked else ()
    shape = kind(ids, fleet.spacing, late_room, LIKED_TABLES if kind is Liked else FEED_TABLES)
    shape.feed_tables = min(shape.feed_tables, FEED_TABLES)
    # More than fits: an id takes above 8 bytes, a pair above 1.8.
    offered = shape.bytes() * 10 // (18 if kind is Liked else 80)
    resident, spaces, tables = resident_of(fleet, shape, offered, words, full=True)
    beyond = resident - resident_of(fleet, shape.least(), 0, ())[0]
    held = int(spaces["liked:members" if kind is Liked else "feed:records"])
    all_told, alone = told(tables)
    return {"records": held, "late_room": late_room, "full": held < offered,
            "table": alone / held, "resident": beyond / held, "told": beyond / all_told}


def memory(fleet, sizes, capacity_ids, say, skipped):
    """{"rows": [[server, layout, ids, bytes an id]], "feed": [...], "liked": [...]}"""
    rows = []
    for ids in sizes:
        rows.append(["rollcalld", "a record an id", ids, own_memory(fleet, ids)])
        for server, layout in plan.LOADS:
            if server == "rollcalld":
                continue
            try:
                bytes_each = peer_memory(fleet, server, layout, ids)
            except Skip as why:
                skipped.append(str(why))
                continue
            rows.append([server, plan.LAYOUT_TEXT[server, layout], ids, bytes_each])
            say("  %s, %s, %s ids: %.1f bytes" % (server, rows[-1][1], number(ids), bytes_each))
    figures = {"rows": rows}
    for name, kind in (("feed", Feed), ("liked", Liked)):
        figures[name] = [at_capacity(fleet, kind, capacity_ids, late) for late in ("0", "auto")]
    return figures
