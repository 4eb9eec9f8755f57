"""Random operations of the three dialects, for run.py.

An operation is what a client would send at once about one key, or a multi-get, or something
malformed. Its bytes are the same for both servers but for one token, which each is sent its own.
What changes by a token is led by a read of the key: run.py must know what was there.
"""

import base64
import random
import struct

HEADER = struct.Struct(">BBHBBHIIQ")
KEY_MAX = 250
MOST = (1 << 64) - 1
NEVER = 0xFFFFFFFF
SLOTS = (b"repost", b"comment", b"like", b"read")
IDS = 200
PLAIN_KEYS = 500
SHARE_MALFORMED = 0.02
SHARE_QUIET = 0.2
SHARE_ALONE = 0.1
FRESH = 24  # keys a batch: read at its end, changed by their token when the next begins
# No M and no minus: no value looks like an answered mn, or to memcached like a negative number.
LETTERS = b"abcdefgh 0123456789\r\n\t\0\xff"


class Operation:
    """pieces: its bytes; two of them: the token goes between. mute: nothing is said in text.
    refused: it is malformed, and what is behind its line may be read as a command by some.
    last: a packet that no row of opcodes is for; the connection need not live on behind it.
    led: its first answer is what was there. counts: it may change a number, which memcached pads or not."""

    __slots__ = ("batch", "keys", "pieces", "value", "mute", "refused", "last", "led", "counts")

    def __init__(self, keys, pieces, value=None, mute=False, refused=False, led=False):
        self.batch, self.keys, self.pieces, self.value = 0, keys, pieces, value
        self.mute, self.refused, self.last, self.led = mute, refused, False, led
        self.counts = False


class Numbers:
    """Keys and values of a counter space: slots of ids; canonical numbers; nothing expires."""

    counts = True

    def __init__(self, rng, first_id):
        self.rng = rng
        ids = range(first_id, first_id + IDS)
        self.keys = [b"feed:%d.%s" % (number, slot) for number in ids for slot in SLOTS]
        self.any_keys = self.keys
        self.near = (0, 1, 9, 10, 99, 1 << 20, 1 << 32, 1 << 63, MOST)

    def number(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            return rng.randrange(1200)
        if kind < 0.8:
            return min(MOST, max(0, rng.choice(self.near) + rng.randrange(-3, 4)))
        return rng.getrandbits(rng.randrange(1, 65))

    def delta(self):
        return self.number()

    def value(self):
        return b"%d" % self.number()

    def flags(self):
        return self.rng.getrandbits(32) if self.rng.random() < 0.1 else 0

    def exptime(self):
        return 0


class Anything(Numbers):
    """Keys and values of a plain space."""

    counts = False

    def __init__(self, rng, first_id):
        super().__init__(rng, first_id)
        self.keys = [b"any%d" % (first_id + i) for i in range(PLAIN_KEYS - 2)]
        self.keys += [b"%0249d%d" % (first_id + 1, i) for i in range(2)]  # as long as may be
        wild = [b"any\t\xff\0%d" % (first_id + i) for i in range(50)]
        self.any_keys = self.keys + wild  # where a key may be any bytes

    def number(self):
        """None gets to 2^63, where memcached may take it for no number: see run.py."""
        return super().number() >> 2

    def delta(self):
        return super().number() >> 24

    def value(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            return super().value()
        if kind < 0.55:
            return super().value() + b" " * rng.randrange(1, 4)
        most = 30 if kind < 0.95 else 3000 if kind < 0.995 else 60000
        piece = bytes(rng.choices(LETTERS, k=rng.randrange(30))) + b"x"
        # not empty, no white space first: memcached looks for a number after such a value's end
        return (piece * (most // 15))[: rng.randrange(1, most)].lstrip() or b"x"

    def stored(self):
        """As value(), or nearly as large as may be."""
        return b"z" * 120000 if self.rng.random() < 0.0005 else self.value()

    def flags(self):
        return self.rng.choice((0, 1, 77, 1 << 31, NEVER))

    def exptime(self):
        kind = self.rng.random()
        if kind < 0.8:
            return 0
        return self.rng.choice((1000, 100000, 2000000000, 1000000000, -1))


def store_value(pool):
    return pool.value() if pool.counts else pool.stored()


class Generator:
    """Batches of operations; a dialect says how each kind is made. counter: the kind that counts."""

    def __init__(self, rng, pool):
        self.rng, self.pool = rng, pool
        self.fresh = []
        self.counter = type(self).count
        kinds = self.kinds if pool.counts else self.kinds + self.kinds_plain
        self.makers = [maker for maker, _ in kinds]
        self.weights = [weight for _, weight in kinds]

    def key(self):
        return self.rng.choice(self.pool.keys)

    def quiet(self):
        return self.rng.random() < SHARE_QUIET

    def batch(self, number, size):
        rng = self.rng
        made = [self.change_by_token(key) for key in self.fresh]
        for operation in made:
            operation.counts = True  # some of them do
        for maker in rng.choices(self.makers, self.weights, k=max(0, size - 2 * FRESH)):
            if rng.random() < SHARE_MALFORMED:
                made.append(self.malformed())
            else:
                made.append(self.apart(maker, made[-3:]))
        self.fresh = [self.key() for _ in range(FRESH)]
        made += [self.read_token(key) for key in self.fresh]
        self.fresh += self.fresh[: FRESH // 4]  # twice: the second token is old
        rng.shuffle(self.fresh)
        self.end(made)
        for operation in made:
            operation.batch = number
        return made

    def apart(self, maker, before):
        """In a plain space no change right behind a read of its key: memcached pads the number that
        it counts to with spaces, but not while an answer still holds the item."""
        while True:
            made = maker(self)
            made.counts = maker is self.counter
            if self.pool.counts or not any(set(made.keys) & set(one.keys) for one in before):
                return made

    def end(self, made):
        """What is done to a whole batch."""

    def alone(self):
        """What is sent as a batch of its own behind one batch of ten."""
        return []


class Text(Generator):
    """The classic commands."""

    nobody = ([], [], [], [b"feed:x"], [b"nobody:1"], [b"feed:1.what"])  # never there

    def line(self, key, quiet, text, value=None):
        tail = b" noreply\r\n" if quiet else b"\r\n"
        data = b"" if value is None else value + b"\r\n"
        return Operation((key,), (text + tail + data,), value, quiet)

    def get(self):
        key = self.key()
        return Operation((key,), (b"get " + key + b"\r\n",))

    def get_many(self):
        rng = self.rng
        keys = tuple(rng.choices(self.pool.keys, k=rng.randrange(2, 30)) + rng.choice(self.nobody))
        verb = rng.choice((b"get ", b"gets ", b"gat 0 ", b"gats 0 "))
        return Operation(keys, (verb + b" ".join(keys) + b"\r\n",))

    def gat(self):
        key = self.key()
        verb = self.rng.choice((b"gat", b"gats"))
        return Operation((key,), (b"%s %d %s\r\n" % (verb, self.pool.exptime(), key),))

    def read_token(self, key):
        return Operation((key,), (b"gets " + key + b"\r\n",))

    def gets(self):
        return self.read_token(self.key())

    def store(self, verb, value):
        key, pool = self.key(), self.pool
        head = b"%s %s %d %d %d" % (verb, key, pool.flags(), pool.exptime(), len(value))
        return self.line(key, self.quiet(), head, value)

    def set(self):
        return self.store(b"set", store_value(self.pool))

    def add(self):
        return self.store(b"add", store_value(self.pool))

    def replace(self):
        return self.store(b"replace", store_value(self.pool))

    def extend(self):
        return self.store(self.rng.choice((b"append", b"prepend")), self.pool.value()[:200])

    def change_by_token(self, key):
        pool, value, quiet = self.pool, store_value(self.pool), self.quiet()
        look = b"get %s\r\n" % key if pool.counts else b""
        head = b"%scas %s %d %d %d " % (look, key, pool.flags(), pool.exptime(), len(value))
        tail = (b" noreply\r\n" if quiet else b"\r\n") + value + b"\r\n"
        return self.look_behind(Operation((key,), (head, tail), value, quiet, led=pool.counts))

    @staticmethod
    def look_behind(operation):
        """Where noreply hides whether a change was made, its value is read again."""
        if operation.mute and operation.led:
            look = b"get " + operation.keys[0] + b"\r\n"
            operation.pieces = operation.pieces[:-1] + (operation.pieces[-1] + look,)
        return operation

    def cas(self):
        return self.change_by_token(self.key())

    def count(self):
        key = self.key()
        verb = self.rng.choice((b"incr", b"incr", b"decr"))
        look = b"get %s\r\n" % key if self.pool.counts else b""
        text = b"%s%s %s %d" % (look, verb, key, self.pool.delta())
        operation = self.line(key, self.quiet(), text)
        operation.led = self.pool.counts
        return self.look_behind(operation)

    def delete(self):
        key = self.key()
        return self.line(key, self.quiet(), b"delete " + key)

    def touch(self):
        key = self.key()
        return self.line(key, self.quiet(), b"touch %s %d" % (key, self.pool.exptime()))

    def malformed(self):
        key = self.key()
        text = self.rng.choice(self.wrong)
        words = {b"k": key, b"long": b"k" * (KEY_MAX + 1), b"big": self.big}
        return Operation((key,), (text % words,), refused=True)

    big = b"z" * 1200000
    wrong = [line.encode() + b"\r\n" for line in (
        "get", "gets", "gat", "gat x %(k)s", "get %(long)s", "gets %(k)s %(long)s",
        "set %(k)s 0 0", "set %(k)s x 0 1\r\n5", "set %(k)s 0 x 1\r\n5", "set %(k)s 0 0 x",
        "set %(k)s 0 0 -1", "set %(k)s -1 0 1\r\n5",
        "set %(k)s 0 0 1\r\n123", "add %(k)s 0 0 2\r\n12345", "set %(long)s 0 0 1\r\n5", "set",
        "add %(k)s", "replace %(k)s 0",
        "replace %(k)s 0 0 1200000\r\n%(big)s", "cas %(k)s 0 0", "cas %(k)s 0 0 1 x\r\n5",
        "cas %(k)s 0 0 1 -1\r\n5", "cas %(long)s 0 0 1 1\r\n5",
        "incr", "incr %(k)s", "incr %(k)s x", "incr %(k)s -1", "incr %(k)s 1x", "decr %(k)s 1.0",
        "incr %(k)s 18446744073709551616", "decr %(k)s 99999999999999999999999", "decr %(k)s",
        "incr %(long)s 1", "decr %(k)s 1 2 3", "delete", "delete %(k)s 0", "delete %(k)s a b c d", "delete %(long)s", "touch", "touch %(k)s", "touch %(k)s x",
        "touch %(long)s 0", "", " ", "what", "GET %(k)s", "SET %(k)s 0 0 1", "getx %(k)s",
        "incr %(k)s x noreply", "set %(k)s 0 x 1 noreply\r\n5")]

    kinds = ((get, 15), (get_many, 5), (gat, 4), (gets, 6), (set, 14), (add, 9), (replace, 7),
             (cas, 5), (count, 22), (delete, 7), (touch, 3))
    kinds_plain = ((extend, 10),)


class Meta(Generator):
    """The meta commands, their flags in any order."""

    def line(self, verb, key, size, flags, value=None, token=False):
        """A command about a key; the token stands behind its C."""
        rng = self.rng
        flags = list(flags)
        sent = key
        if key not in self.printable or (rng.random() < 0.1 and len(key) < KEY_MAX // 2):
            sent = base64.b64encode(key)
            flags.append(b"b")
        if rng.random() < 0.2:
            flags.append(b"O%d" % rng.getrandbits(rng.randrange(1, 100)))
        if rng.random() < 0.2:
            flags.append(b"k")
        # memcached before 1.6.45 answers a quiet ma that creates
        if rng.random() < SHARE_QUIET and not any(flag[:1] == b"N" for flag in flags):
            flags.append(b"q")
        rng.shuffle(flags)
        head = b" ".join([verb, sent] + size + flags)
        tail = b"\r\n" if value is None else b"\r\n" + value + b"\r\n"
        led = self.pool.counts and (token or verb == b"ma")
        if led:
            head = b"mg %s v%s\r\n" % (sent, b"" if sent is key else b" b") + head
        if token:
            return Operation((key,), (head + b" C", tail), value, led=led)
        return Operation((key,), (head + tail,), value, led=led)

    def __init__(self, rng, pool):
        super().__init__(rng, pool)
        self.printable = frozenset(pool.keys)

    def some(self, *flags):
        return [flag for flag in flags if self.rng.random() < 0.25]

    def any_key(self):
        return self.rng.choice(self.pool.any_keys)

    def get(self):
        flags = self.some(b"v", b"v", b"s", b"f", b"c", b"t")
        if self.rng.random() < 0.1:
            flags.append(b"T%d" % self.pool.exptime())
        if not self.pool.counts:
            flags += self.some(b"h", b"u", b"N%d" % max(0, self.pool.exptime()),
                               b"R%d" % self.rng.choice((0, 10, 2000, 200000)))
            flags += self.ignored(b"I", b"F7", b"MS", b"J1", b"D5", b"C5")
        return self.line(b"mg", self.any_key(), [], dict.fromkeys(flags))

    def ignored(self, *flags):
        """What memcached takes with a command and does not look at."""
        return [flag for flag in flags if self.rng.random() < 0.02]

    def read_token(self, key):
        return self.line(b"mg", key, [], [b"v", b"c"])

    def gets(self):
        return self.read_token(self.any_key())

    def store_flags(self, modes):
        flags = self.some(b"c", b"F%d" % self.pool.flags())
        if self.rng.random() < 0.3:
            flags.append(b"T%d" % self.pool.exptime())
        if not self.pool.counts:
            flags += self.ignored(b"I", b"t", b"v", b"h", b"R5", b"J1")
        mode = self.rng.choice(modes)
        return flags + ([b"M" + mode] if mode else [])

    def set(self):
        value = store_value(self.pool)
        flags = self.store_flags((b"", b"", b"S", b"set", b"E", b"e", b"R", b"r", b"s"))
        return self.line(b"ms", self.any_key(), [b"%d" % len(value)], flags, value)

    def extend(self):
        value = self.pool.value()[:200]
        flags = self.store_flags((b"A", b"P", b"a", b"p"))
        return self.line(b"ms", self.any_key(), [b"%d" % len(value)], flags, value)

    def count_flags(self):
        rng, pool = self.rng, self.pool
        flags = self.some(b"v", b"v", b"c", b"t", b"D%d" % pool.delta(), b"D%d" % pool.delta())
        flags = [flag for i, flag in enumerate(flags)
                 if flag[:1] not in [other[:1] for other in flags[:i]]]
        if rng.random() < 0.3:
            flags.append(b"N%d" % max(0, pool.exptime()))
        flags += self.some(b"J%d" % pool.number())
        if pool.counts and rng.random() < 0.05:  # memcached forgets T when the number gets longer
            flags.append(b"T%d" % pool.exptime())
        mode = rng.choice((b"", b"", b"I", b"+", b"D", b"-", b"i", b"incr", b"d", b"decr"))
        return flags + ([b"M" + mode] if mode else [])

    def count(self):
        return self.line(b"ma", self.any_key(), [], self.count_flags())

    def delete_flags(self):
        if self.pool.counts:
            return []
        flags = [b"I"] if self.rng.random() < 0.5 else []
        return flags + self.some(b"T%d" % self.pool.exptime()) + self.ignored(b"v", b"N5", b"F3")

    def delete(self):
        return self.line(b"md", self.any_key(), [], self.delete_flags())

    def change_by_token(self, key):
        kind = self.rng.random()
        if kind < 0.15:
            return self.line(b"md", key, [], self.delete_flags(), token=True)
        if kind < 0.4:
            return self.line(b"ma", key, [], self.count_flags(), token=True)
        value = store_value(self.pool)
        flags = self.store_flags((b"", b"", b"S", b"R"))
        if not self.pool.counts and b"I" not in flags and self.rng.random() < 0.5:
            flags.append(b"I")
        return self.line(b"ms", key, [b"%d" % len(value)], flags, value, token=True)

    def cas(self):
        return self.change_by_token(self.any_key())

    def malformed(self):
        key = self.key()
        text = self.rng.choice(self.wrong)
        words = {b"k": key, b"long": b"k" * (KEY_MAX + 1), b"opaque": b"O" * 34}
        return Operation((key,), (text % words,), refused=True)

    wrong = [line.encode() + b"\r\n" for line in (
        "mg", "ms", "md", "ma", "mg %(long)s v", "md %(long)s", "ma %(long)s q",
        "ms %(long)s 1\r\n1", "ms %(k)s", "ms %(k)s x", "ms %(k)s -1", "ms %(k)s 1\r\n123",
        "ms %(k)s 1 MZ\r\n1", "ms %(k)s 1 Tx\r\n1", "ms %(k)s 1 Cx\r\n1",
        "ms %(k)s 1 Fx\r\n1", "ms %(k)s 1 k k\r\n1",
        "mg %(k)s Z", "mg %(k)s v v", "md %(k)s %(opaque)s", "ms %(k)s 1 %(opaque)s\r\n1",
        "md %(k)s q q", "ma %(k)s MZ", "ma %(k)s Dx", "ma %(k)s D-1", "ma %(k)s J-1", "ma %(k)s Nx",
        "ma %(k)s v q Dx", "mg !!!! b", "md Y b", "ma Y b", "mg %(k)s Tx", "mg %(k)s q Z",
        "mx %(k)s", "MG %(k)s", "mg %(k)s v k s f c t q k k k k k k k k k k k k k k k")]

    kinds = ((get, 25), (gets, 6), (set, 26), (cas, 5), (count, 22), (delete, 7))
    kinds_plain = ((extend, 10),)


class Binary(Generator):
    """Packets. Opaques are given by batch: see end()."""

    QUIETS = {0x00: 0x09, 0x0C: 0x0D, 0x01: 0x11, 0x02: 0x12, 0x03: 0x13, 0x04: 0x14, 0x05: 0x15,
              0x06: 0x16, 0x0E: 0x19, 0x0F: 0x1A, 0x1D: 0x1E, 0x23: 0x24, 0x1C: 0x1C}
    COUNTS = (0x05, 0x06, 0x15, 0x16)
    GET_KEY = 0x0C

    def packet(self, opcode, key, extras=b"", value=b"", token=False, known=None):
        if self.quiet():
            opcode = self.QUIETS[opcode]
        body = extras + key + value
        head = HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, len(body), 0, 0)
        led = self.pool.counts and (token or opcode in self.COUNTS)
        look = b""
        if led:
            look = HEADER.pack(0x80, self.GET_KEY, len(key), 0, 0, 0, len(key), 0, 0) + key
        if token:
            return Operation((key,), (look + head[:16], body), known, led=led)
        return Operation((key,), (look + head + body,), known, led=led)

    def any_key(self):
        return self.rng.choice(self.pool.any_keys)

    def expiry(self):
        return self.pool.exptime() & NEVER

    def get(self):
        return self.packet(self.rng.choice((0x00, 0x0C)), self.any_key())

    def gat(self):
        opcode = self.rng.choice((0x1C, 0x1D, 0x23))
        return self.packet(opcode, self.any_key(), struct.pack(">I", self.expiry()))

    def read_token(self, key):
        return self.packet(self.GET_KEY, key)

    def store(self, opcodes, key, token=False):
        value = store_value(self.pool)
        extras = struct.pack(">II", self.pool.flags(), self.expiry())
        return self.packet(self.rng.choice(opcodes), key, extras, value, token, value)

    def set(self):
        return self.store((0x01, 0x01, 0x02, 0x03), self.any_key())

    def extend(self, key=None, token=False):
        opcode = self.rng.choice((0x0E, 0x0F))
        return self.packet(opcode, key or self.any_key(), b"", self.pool.value()[:200], token)

    def count(self, key=None, token=False):
        rng, pool = self.rng, self.pool
        expiry = NEVER if rng.random() < 0.6 else max(0, pool.exptime())
        extras = struct.pack(">QQI", pool.delta(), pool.number(), expiry)
        opcode = rng.choice((0x05, 0x05, 0x06))
        return self.packet(opcode, key or self.any_key(), extras, token=token)

    def delete(self):
        return self.packet(0x04, self.any_key())

    def change_by_token(self, key):
        kind = self.rng.random()
        if kind < 0.15:
            return self.packet(0x04, key, token=True)
        if kind < 0.4:
            return self.count(key, True)
        if kind < 0.5 and not self.pool.counts:
            return self.extend(key, True)
        return self.store((0x01, 0x01, 0x03), key, True)

    def cas(self):
        return self.change_by_token(self.any_key())

    def malformed(self):
        return self.get()  # those are of the end

    def end(self, made):
        for number, operation in enumerate(made):
            self.number(operation, number)

    def alone(self):
        """A packet of a wrong shape. What came before has been read: who closes may lose it."""
        opcode, key, extras, body = self.rng.choice(self.wrong)
        head = HEADER.pack(0x80, opcode, key, extras, 0, 0, len(body), 0, 0)
        operation = Operation((b"k",), (head + body,), refused=True)
        operation.last = True
        return [operation]

    @staticmethod
    def number(operation, number):
        """Writes the opaque into its packets: 2 n, and 2 n + 1 of the second."""
        first, at = bytearray(operation.pieces[0]), 0
        for opaque in (2 * number, 2 * number + 1):
            if at < len(first):
                first[at + 12 : at + 16] = struct.pack(">I", opaque)
                at += HEADER.size + int.from_bytes(first[at + 8 : at + 12], "big")
        operation.pieces = (bytes(first),) + operation.pieces[1:]

    wrong = (  # opcode, key length, extras length, body
        (0x00, 0, 0, b""), (0x00, 1, 4, b"\0\0\0\0k"), (0x01, 1, 0, b"k5"),
        (0x01, 0, 8, b"\0" * 8 + b"5"), (0x02, 1, 4, b"\0\0\0\0k5"), (0x04, 1, 4, b"\0\0\0\0k"),
        (0x04, 0, 0, b""), (0x05, 1, 8, b"\0" * 8 + b"k"), (0x06, 0, 20, b"\0" * 20),
        (0x0E, 1, 8, b"\0" * 8 + b"k5"), (0x1C, 1, 0, b"k"), (0x1D, 1, 8, b"\0" * 8 + b"k"),
        (0x00, 251, 0, b"k" * 251), (0x01, 251, 8, b"\0" * 8 + b"k" * 251 + b"5"))

    kinds = ((get, 25), (gat, 6), (set, 26), (cas, 6), (count, 22), (delete, 7))
    kinds_plain = ((extend, 10),)


DIALECTS = {"text": Text, "meta": Meta, "binary": Binary}
POOLS = {"numbers": Numbers, "anything": Anything}


def batches(dialect, pool, seed, count, size, first_id):
    """Yields lists of operations, `count` operations altogether."""
    rng = random.Random("%s %s %s" % (dialect, pool, seed))
    generator = DIALECTS[dialect](rng, POOLS[pool](rng, first_id))
    for number, begin in enumerate(range(0, count, size)):
        yield generator.batch(number, min(size, count - begin))
        lone = generator.alone() if rng.random() < SHARE_ALONE else []
        if lone:
            lone[0].batch = number + 0.5
            yield lone
