"""checks.py: what every client must see, said once for all of them.

A check is a method of Checks named after its column; it asks the client (peer.Peer.ask) and compares.
Every check has keys of its own. `way` is text, binary or twemproxy; through twemproxy the ids stand in
braces, its hash tag, and keys of one post thus go to one shard.
"""

VERSION = "1.6.45"
LARGE = 100_000
MISSING = ("false", "none")


class Wrong(Exception):
    """The client did not get what it must."""


class Unsupported(Exception):
    """The library has no such call, or the proxy does not pass it."""


# What twemproxy does not pass, whatever stands behind it.
NOT_PROXIED = ("stats", "flush", "gat")


class Checks:
    def __init__(self, peer, way, number):
        """`number` makes the keys of this client and way unlike those of others."""
        self.peer, self.way, self.number = peer, way, number
        self.column = None

    def id(self, nth):
        text = "%d%02d" % (self.number, nth)
        return "{%s}" % text if self.way == "twemproxy" else text

    def key(self, nth=0):
        return "plain:%s:%s:%d" % (self.id(0), self.column.replace(" ", "-"), nth)

    def ask(self, *words):
        answer = self.peer.ask(*words)
        if answer[0] == "unsupported":
            raise Unsupported
        return answer

    def expect(self, wanted, *words):
        """`wanted`: the words that must come back."""
        answer = self.ask(*words)
        if answer != list(wanted):
            raise Wrong("%s: %s, not %s" % (shown(words), shown(answer), shown(wanted)))

    def true(self, *words):
        self.expect(("true",), *words)

    def false(self, *words):
        """Not done: clients that keep the reason to themselves say none."""
        answer = self.ask(*words)
        if answer[0] not in MISSING:
            raise Wrong("%s: %s, not false" % (shown(words), shown(answer)))

    def value(self, wanted, *words):
        self.expect(("value", wanted), *words)

    def none(self, *words):
        self.expect(("none",), *words)

    def many(self, wanted, *keys):
        answer = self.ask("many", *keys)
        found = dict(zip(answer[1::2], answer[2::2]))
        if answer[0] != "many" or found != wanted:
            raise Wrong("%s: %s, not %s" % (shown(("many", *keys)), shown(answer), wanted))

    def make(self, key, value):
        self.true("set", key, value)

    # Keys of the plain space.

    def set(self):
        self.make(self.key(), "one")
        self.make(self.key(), "two")
        self.value("two", "get", self.key())

    def get(self):
        self.none("get", self.key())
        self.make(self.key(), "some words")
        self.value("some words", "get", self.key())

    def get_many(self):
        keys = [self.key(nth) for nth in range(20)]
        for key in keys[::3]:
            self.make(key, "of " + key)
        self.many({key: "of " + key for key in keys[::3]}, *keys)

    def large(self):
        self.make(self.key(), "x" * LARGE)
        self.value("x" * LARGE, "get", self.key())

    def add(self):
        self.true("add", self.key(), "1")
        self.false("add", self.key(), "2")
        self.value("1", "get", self.key())

    def replace(self):
        self.false("replace", self.key(), "1")
        self.make(self.key(), "1")
        self.true("replace", self.key(), "2")
        self.value("2", "get", self.key())

    def cas(self):
        self.make(self.key(), "1")
        self.value("1", "gets", self.key())
        self.true("cas", self.key(), "2")
        self.value("2", "gets", self.key())
        self.make(self.key(), "3")
        self.false("cas", self.key(), "4")
        self.value("3", "get", self.key())

    def append(self):
        self.false("append", self.key(), "b")
        self.make(self.key(), "a")
        self.true("append", self.key(), "b")
        self.value("ab", "get", self.key())

    def prepend(self):
        self.false("prepend", self.key(), "b")
        self.make(self.key(), "a")
        self.true("prepend", self.key(), "b")
        self.value("ba", "get", self.key())

    def incr(self):
        self.none("incr", self.key(), "5")
        self.make(self.key(), "10")
        self.value("15", "incr", self.key(), "5")

    def decr(self):
        self.none("decr", self.key(), "5")
        self.make(self.key(), "10")
        self.value("9", "decr", self.key(), "1")
        self.value("0", "decr", self.key(), "100")

    def delete(self):
        self.false("delete", self.key())
        self.make(self.key(), "1")
        self.true("delete", self.key())
        self.none("get", self.key())

    def touch(self):
        self.false("touch", self.key())
        self.make(self.key(), "1")
        self.true("touch", self.key())
        self.value("1", "get", self.key())

    def gat(self):
        self.none("gat", self.key())
        self.make(self.key(), "1")
        self.value("1", "gat", self.key())

    def version(self):
        self.value(VERSION, "version")

    def stats(self):
        self.value(VERSION, "stats")

    # Counters: one slot of an id.

    def slot(self, nth):
        return "feed:%s.like" % self.id(nth)

    def slot_set(self):
        self.none("get", self.slot(1))
        self.make(self.slot(1), "12")
        self.make(self.slot(1), "1048574")
        self.value("1048574", "get", self.slot(1))

    def slot_add(self):
        self.true("add", self.slot(2), "1")
        self.false("add", self.slot(2), "2")
        self.true("replace", self.slot(2), "3")
        self.value("3", "get", self.slot(2))

    def slot_cas(self):
        self.make(self.slot(3), "1")
        self.value("1", "gets", self.slot(3))
        self.true("cas", self.slot(3), "2")
        self.value("2", "gets", self.slot(3))
        self.make(self.slot(3), "9")
        self.false("cas", self.slot(3), "4")

    def slot_incr(self):
        """The text incr makes what is missing; the binary one asks whether it may."""
        key = self.slot(4)
        if self.way == "binary":
            self.none("incr", key, "3")
            self.create(key)
        else:
            self.value("3", "incr", key, "3")
        self.value("7", "incr", key, "4")
        self.value("7", "get", key)

    def create(self, key):
        try:
            self.value("3", "create", key, "1", "3")
        except Unsupported:
            self.make(key, "3")

    def slot_decr(self):
        self.make(self.slot(5), "10")
        self.value("9", "decr", self.slot(5), "1")
        self.value("0", "decr", self.slot(5), "100")
        self.value("0", "get", self.slot(5))

    def slot_many(self):
        keys = [self.slot(nth) for nth in range(6, 16)]
        for key in keys[::3]:
            self.make(key, "5")
        self.many({key: "5" for key in keys[::3]}, *keys)

    def slot_delete(self):
        self.false("delete", self.slot(16))
        self.make(self.slot(16), "1")
        self.true("delete", self.slot(16))
        self.none("get", self.slot(16))

    def slot_refused(self):
        """What is no number is refused, and the connection goes on."""
        self.make(self.slot(17), "1")
        if self.ask("set", self.slot(17), "many")[0] == "true":
            raise Wrong("a slot took what is no number")
        self.value("1", "get", self.slot(17))

    # All slots of an id at once.

    def record(self, nth):
        return "feed:%s" % self.id(nth)

    def record_set(self):
        self.make(self.record(20), "1,2,,4")
        self.value("1,2,,4", "get", self.record(20))
        self.none("get", self.slot(20))
        self.value("2", "get", self.record(20) + ".comment")

    def record_get(self):
        self.none("get", self.record(21))
        self.make(self.slot(21), "5")
        self.value(",,5,", "get", self.record(21))
        self.value(",,5,", "get", self.record(21) + ".")

    def record_many(self):
        keys = [self.record(nth) for nth in range(22, 32)]
        for key in keys[::3]:
            self.make(key, "1,,,7")
        self.many({key: "1,,,7" for key in keys[::3]}, *keys)

    def several_get(self):
        key = self.slot(33) + "+read+repost"
        self.none("get", key)
        self.make(self.record(33), "1,2,3,4")
        self.value("3,4,1", "get", key)
        self.many({key: "3,4,1", self.slot(33): "3"}, key, self.slot(33))

    def several_set(self):
        self.make(self.slot(34) + "+repost", "3,1")
        self.make(self.record(34), "read=9,repost=2")
        self.value("2,,3,9", "get", self.record(34))

    def several_incr(self):
        """All of them by one number; the answer is the first one's."""
        key = self.slot(35) + "+read"
        self.make(key, "5,70")
        self.value("6", "incr", key, "1")
        self.value("5", "decr", key, "1")
        self.value("7", "incr", key, "2")
        self.value("72,7", "get", self.record(35) + ".read+like")

    def record_delete(self):
        self.make(self.record(32), "1,2,3,4")
        self.true("delete", self.record(32))
        self.none("get", self.slot(32))

    # Existence: whether a member was at an id.

    def member(self, nth):
        return "liked:%s:u9" % self.id(nth)

    def member_add(self):
        self.true("add", self.member(1), "1")
        self.false("add", self.member(1), "1")

    def member_get(self):
        self.none("get", self.member(2))
        self.make(self.member(2), "1")
        self.value("1", "get", self.member(2))

    def member_many(self):
        keys = [self.member(nth) for nth in range(3, 13)]
        for key in keys[::3]:
            self.true("add", key, "1")
        self.many({key: "1" for key in keys[::3]}, *keys)

    def member_delete(self):
        self.true("add", self.member(13), "1")
        self.true("delete", self.member(13))
        self.none("get", self.member(13))
        self.true("add", self.member(13), "1")

    def flush(self):
        """Last: everything goes."""
        self.make(self.key(), "1")
        self.make(self.slot(40), "1")
        self.true("flush")
        self.none("get", self.key())
        self.none("get", self.slot(40))

    def run(self, column):
        """One check, by the name of its column: `ok`, `-` when there is no such call, else why not."""
        self.column = column
        if self.way == "twemproxy" and column in NOT_PROXIED:
            return "-"
        try:
            getattr(self, column.replace(" ", "_"))()
        except Unsupported:
            return "-"
        except Wrong as problem:
            return str(problem)
        return "ok"


def shown(words):
    text = " ".join(words)
    return text if len(text) <= 160 else text[:160] + "..."


# The columns, a table each. flush is the last check of all.
TABLES = (
    ("Ordinary keys", (
        "set", "get", "get many", "large", "add", "replace", "cas", "append", "prepend", "incr",
        "decr", "delete", "touch", "gat", "version", "stats")),
    ("Counters, records, existence keys", (
        "slot set", "slot add", "slot cas", "slot incr", "slot decr", "slot many", "slot delete",
        "slot refused", "record set", "record get", "record many", "record delete", "several get",
        "several set", "several incr", "member add", "member get", "member many", "member delete", "flush")),
)
