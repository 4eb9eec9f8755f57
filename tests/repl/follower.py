"""follower.py: the follower's side of src/repl/wire.h, with nothing behind it but bytes.

What it receives is compared by others; what can be told from the lines alone it checks itself: D
lines follow one another, whole records each, T and V lines are true.
"""
import socket
import struct
import time

ANSWER_S = 20
TICK_S = 0.2
MASK = (1 << 64) - 1


class Wrong(Exception):
    """The other side said what it must not."""


class Over(Exception):
    """The other side closed."""


def words_at_records(data):
    """The first word of each record; they must fill the data."""
    check_records(data)
    at = 0
    while at < len(data):
        yield struct.unpack_from("<Q", data, at)[0]
        at += data[at + 5] * 8


def check_records(data):
    """Whole records fill the data: the sixth byte of each is its length in words."""
    at, size = 0, len(data)
    while at < size:
        length = data[at + 5] * 8 if at + 8 <= size else 0
        if length == 0 or at + length > size:
            raise Wrong("no whole record at %d of %d bytes" % (at, size))
        at += length


def running_sum(data):
    """journal_sum of store/journal_format.h, of whole records"""
    value, at = 0, 0
    if len(data) % 8 != 0:
        raise Wrong("%d bytes are no whole records" % len(data))
    with memoryview(data) as view, view.cast("Q") as words:
        while at < len(words):
            word = words[at]
            length = word >> 40 & 0xff
            if length == 0:
                raise Wrong("no whole record at %d of %d bytes" % (8 * at, len(data)))
            at += length
            value ^= word
            value = ((value << 29 | value >> 35) & MASK) * 0xbf58476d1ce4e5b9 & MASK
        if at != len(words):
            raise Wrong("no whole record at the end of %d bytes" % len(data))
    return value


class Follower:
    """A connection. `begin` and `data`: the stream as it has it, over all connections."""

    def __init__(self, name="two", group="rollcall"):
        self.name, self.group = name, group
        self.socket, self.buffer = None, bytearray()
        self.begin, self.data = 0, bytearray()
        self.stream, self.epoch = "-", 0
        self.written = self.durable = 0  # of the leader, by its last T
        self.times = self.sums = self.sums_checked = 0
        self.acknowledges = True

    def end(self):
        return self.begin + len(self.data)

    def connect(self, address, wrap=None, user=None):
        self.close()
        self.socket = socket.create_connection(address, ANSWER_S)
        if wrap:
            self.socket = wrap(self.socket)
        self.buffer = bytearray()
        if user:
            self.say("set auth 0 0 %d\r\n%s" % (len(user), user))
            if self.line() != "STORED":
                raise Wrong("no login")
        return self

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = None

    # ---- bytes ----

    def say(self, line):
        try:
            self.socket.sendall(line.encode("ascii") + b"\r\n")
        except OSError as problem:
            raise Over(str(problem)) from problem

    def more(self):
        try:
            piece = self.socket.recv(1 << 18)
        except socket.timeout:
            raise
        except OSError as problem:
            raise Over(str(problem)) from problem
        if not piece:
            raise Over("closed")
        self.buffer += piece

    def line(self):
        while b"\r\n" not in self.buffer:
            if len(self.buffer) > 320:
                raise Wrong("a line without an end")
            self.more()
        end = self.buffer.index(b"\r\n")
        line = self.buffer[:end].decode("ascii")
        del self.buffer[:end + 2]
        return line

    def bytes(self, count):
        while len(self.buffer) < count:
            self.more()
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    # ---- lines ----

    def ask(self, line):
        self.say(line)
        return self.line()

    def follow(self, stream=None, epoch=None, lsn=None):
        """The answer's words."""
        stream = self.stream if stream is None else stream
        epoch = self.epoch if epoch is None else epoch
        lsn = self.end() if lsn is None else lsn
        answer = self.ask("follow 1 %s %s %s %d %d" % (self.group, self.name, stream, epoch, lsn))
        words = answer.split(" ")
        if words[0] == "STREAM":
            if len(words) != 4 or int(words[3]) != lsn or len(words[1]) != 32:
                raise Wrong(answer)
            if stream not in ("-", words[1]):
                raise Wrong("another stream: " + answer)
            self.stream = words[1]
            self.epoch = int(words[2])
        return words

    def acknowledge(self):
        if self.acknowledges:
            self.say("A %d %d %d" % (self.end(), self.end(), self.end()))

    def take(self):
        """One line of the stream and what belongs to it; its words."""
        words = self.line().split(" ")
        if words[0] == "D":
            lsn, count = map(int, words[1:])
            if lsn != self.end() or not 8 <= count <= 1 << 20:
                raise Wrong("D %d %d after %d" % (lsn, count, self.end()))
            data = self.bytes(count)
            check_records(data)
            self.data += data
            self.acknowledge()
        elif words[0] == "T":
            written, durable = int(words[1]), int(words[2])
            if written < self.written or durable < self.durable or durable > written or \
                    abs(int(words[4]) / 1e6 - time.time()) > ANSWER_S:
                raise Wrong(" ".join(words))
            self.written, self.durable = written, durable
            self.times += 1
            self.acknowledge()
        elif words[0] == "V":
            self.check_sum(int(words[1]), int(words[2]), int(words[3], 16))
        elif words[0] not in ("COPY", "SERVER_ERROR"):
            raise Wrong(" ".join(words))
        return words

    def check_sum(self, first, last, value):
        if last != self.end():
            raise Wrong("V of %d after %d" % (last, self.end()))
        self.sums += 1
        if first >= self.begin:
            self.sums_checked += 1
            if running_sum(self.data[first - self.begin:last - self.begin]) != value:
                raise Wrong("the sum from %d to %d" % (first, last))

    def take_until(self, done, seconds=60):
        """Lines, until done() says true. Wrong: the stream was ended by a word, or takes too long."""
        until = time.monotonic() + seconds
        while not done():
            words = self.take()
            if words[0] in ("COPY", "SERVER_ERROR"):
                raise Wrong(" ".join(words))
            if time.monotonic() > until:
                raise Wrong("no end after %d s at %d of %d" % (seconds, self.end(), self.written))

    # ---- a copy ----

    def copy(self):
        """The manifest's text; Wrong: it was refused."""
        words = self.ask("copy 1 %s %s" % (self.group, self.name)).split(" ")
        if words[0] != "MANIFEST":
            raise Wrong(" ".join(words))
        return self.bytes(int(words[1]))

    def file(self, name, offset):
        """Asks for it; the answer is to be read by file_bytes."""
        self.say("file %s %d" % (name, offset))

    def file_begin(self, name, offset):
        words = self.line().split(" ")
        if words[:3] != ["FILE", name, str(offset)]:
            raise Wrong(" ".join(words))
        return int(words[3])
