"""plan.py: what is compared: each server's ways to do each work, and the goals.

A goal is a ratio of server time: what a request costs the server's core. As long as that core is busy,
the inverse is the ratio of the rates.
"""
from collections import namedtuple

# A way to do a work: which data it needs, and the words that make the load generator go that way.
Way = namedtuple("Way", "server layout name words")
# `keys` and `value`: VALUEs in rollcalld's reply and bytes of each, for the null server (0: a number).
Work = namedtuple("Work", "name title words verify ids_each keys value ways size own")
# kind "cost": ours / other is at most the limit; "gain": other / ours is at least the limit.
Goal = namedtuple("Goal", "work kind limit server name text")

PAGE = 20
HITS = 10  # per cent of the existence checks
ONE_IN = 1000  # wrong answers to existence checks that rollcalld plans
CONNECTIONS = 50
PIPELINE = 16
PER_SECOND = 1000  # ids born in a second, where ids are seconds << 22
SPACING = {"seconds": (1 << 22) // PER_SECOND, "dense": 1}
SMALL, LARGE = "small", "large"  # populations

REDIS = ("--protocol", "redis", "--layout")
BINARY = ("--protocol", "binary")
SLOTS = ("--layout", "slots")
# How the data of a layout is loaded; the first words choose it in `load bench --load`.
LOADS = {
    ("rollcalld", "both"): ((), ("--workload", "exist")),
    ("memcached", "records"): ((),),
    ("memcached", "slots"): (SLOTS,),
    ("memcached", "pairs"): (("--workload", "exist"),),
    ("redis", "records"): (REDIS + ("records",),),
    ("redis", "slots"): (REDIS + ("slots",),),
    ("redis", "hash"): (REDIS + ("hash",),),
    ("redis", "pairs"): (REDIS + ("records", "--workload", "exist"),),
    ("redis", "sets"): (REDIS + ("sets", "--workload", "exist"),),
}
LAYOUT_TEXT = {
    ("rollcalld", "both"): "a record an id",
    ("memcached", "records"): "a packed value an id",
    ("memcached", "slots"): "a key a counter",
    ("memcached", "pairs"): "a key a pair",
    ("redis", "records"): "a packed value an id",
    ("redis", "slots"): "a key a counter",
    ("redis", "hash"): "a hash an id",
    ("redis", "pairs"): "a key a pair",
    ("redis", "sets"): "a set an id",
}
# About the bytes an id takes: to know beforehand whether memory is enough.
BYTES_ABOUT = {
    ("rollcalld", "both"): 24, ("memcached", "records"): 115, ("memcached", "slots"): 430,
    ("memcached", "pairs"): 120, ("redis", "records"): 125, ("redis", "slots"): 400,
    ("redis", "hash"): 140, ("redis", "pairs"): 120, ("redis", "sets"): 250,
}

READ_WAYS = (
    Way("rollcalld", "both", "text", ()),
    Way("memcached", "records", "packed", ()),
    Way("redis", "records", "packed, %(get)s", REDIS + ("records",)),
    Way("redis", "hash", "HMGET", REDIS + ("hash",)),
    Way("redis", "hash", "HGETALL", REDIS + ("hash-all",)),
    Way("memcached", "slots", "a key a counter", SLOTS),
    Way("redis", "slots", "MGET, a key a counter", REDIS + ("slots",)),
)
INCR_WAYS = (
    Way("rollcalld", "both", "text", ()),
    Way("rollcalld", "both", "binary", BINARY),
    Way("memcached", "slots", "text", SLOTS),
    Way("memcached", "slots", "binary", BINARY + SLOTS),
    Way("redis", "slots", "INCR", REDIS + ("slots",)),
    Way("redis", "hash", "HINCRBY", REDIS + ("hash",)),
)
EXIST_WAYS = (
    Way("rollcalld", "both", "text", ()),
    Way("memcached", "pairs", "a key a pair", ()),
    Way("redis", "pairs", "MGET, a key a pair", REDIS + ("records",)),
    Way("redis", "sets", "SISMEMBER, a set an id", REDIS + ("sets",)),
)


def named(ways, get):
    return tuple(way._replace(name=way.name % {"get": get}) for way in ways)


# In the order they are run: increments last, because reads are checked against what was loaded.
WORKS = (
    Work("record", "4 counters of one id", ("--workload", "record"), "values", 1, 1, 15,
         named(READ_WAYS, "GET"), SMALL, False),
    Work("page", "feed page: 4 counters of %d ids" % PAGE,
         ("--workload", "page", "--page-ids", PAGE), "values", PAGE, PAGE, 15,
         named(READ_WAYS, "MGET"), SMALL, False),
    Work("page-large", "feed page in the large population",
         ("--workload", "page", "--page-ids", PAGE), "values", PAGE, PAGE, 15,
         named(READ_WAYS, "MGET"), LARGE, True),
    Work("exist", "%d existence checks, %d %% hits" % (PAGE, HITS),
         ("--workload", "exist", "--page-ids", PAGE, "--hits", HITS, "--one-in", ONE_IN), "values",
         PAGE, PAGE * HITS // 100, 1, EXIST_WAYS, SMALL, False),
    Work("incr", "incr, one at a time", ("--workload", "incr"), "form", 1, 0, 0, INCR_WAYS, SMALL,
         False),
    Work("incr-16", "incr, %d pipelined" % PIPELINE,
         ("--workload", "incr", "--pipeline", PIPELINE), "form", 1, 0, 0, INCR_WAYS, SMALL, False),
)
OWN_SMALL = "text, in the small population"  # the way of a work with `own`
LIBEVENT, BARE = "on libevent", "bare epoll"


def null_goals(work, libevent, bare):
    return tuple(Goal(work, "cost", limit, "null", name, "at most %.2f x null (%s)" % (limit, name))
                 for name, limit in ((LIBEVENT, libevent), (BARE, bare)))


# `name` None: the best way of that server.
GOALS = (
    null_goals("incr", 1.15, 1.05)
    + null_goals("incr-16", 1.6, 1.6)
    + (Goal("incr-16", "gain", 2.0, "memcached", None, "2 x memcached's rate"),)
    + null_goals("record", 1.2, 1.2)
    + null_goals("page", 1.6, 1.25)
    + (Goal("page", "gain", 6.0, "memcached", "a key a counter", "6 x memcached, a key a counter"),
       Goal("page", "gain", 2.0, "memcached", "packed", "2 x memcached, packed"),
       Goal("page", "gain", 3.0, "redis", "HMGET", "3 x Redis HMGET"),
       Goal("page-large", "cost", 1.25, "rollcalld", OWN_SMALL,
            "at most 1.25 x its own cost in the small population"))
    + null_goals("exist", 1.5, 1.2)
    + (Goal("exist", "gain", 1.8, "memcached", None, "1.8 x memcached's rate"),)
)

# What is given must be from the one to the other; without, a figure is shown and not judged.
MEMORY_GOALS = {
    "table": (0, 15.0, "tables: at most 15 bytes an id"),
    "resident": (0, 16.0, "resident: at most 16 bytes an id"),
    "told": (0.98, 1.02, "resident: within 2 % of what stats tells"),
    "pair": (0, 2.0, "filters: at most 2 bytes a pair"),
    "pair resident": (None, None, "resident bytes a pair"),
}
WORKERS_GOAL = 1.7  # ids a second of two workers / of one
HOT_GOAL = 0.8  # rate on one id / on spread ids
IDLE_GOAL = 1024  # bytes of an idle connection beyond a null server's


# ---- servers that somebody brings ----

PEER_GAINS = {"page": 2.8, "exist": 2.2}  # wanted over the best way of each
LIKE = "memcached"  # the server whose ways in text a peer goes, with the same data


def with_peer(works, goals, name):
    """The works and goals with a peer of that name; its data is known here from now on."""
    for known in (LOADS, LAYOUT_TEXT, BYTES_ABOUT):
        known.update({(name, layout): of for (server, layout), of in list(known.items())
                      if server == LIKE})
    works = tuple(work._replace(ways=work.ways + tuple(
        way._replace(server=name) for way in work.ways
        if way.server == LIKE and way.words[:2] != BINARY)) for work in works)
    goals += tuple(Goal(work, "gain", limit, name, None, "%g x %s's best way" % (limit, name))
                   for work, limit in PEER_GAINS.items())
    return works, goals
