#!/usr/bin/env python3
"""Runs the protocol scripts of run.py through the meta and the binary dialect.

A script's text commands are asked in the other dialect wherever it has them, and what comes back is
put into the words text would have said; the script's own `expect` lines judge it. So a command
means the same in every dialect, or its script fails. The figures (`stat`) must be the same, too.

    get gets             binary: every get opcode in turn, loud and quiet;  meta: mg
    gat gats touch       binary: their opcodes, loud and quiet;             meta: mg with T
    set add replace append prepend cas                                      meta: ms
    incr decr            binary: creates as the space's role says;          meta: ma
    delete               delete;                                            meta: md
    version flush_all mn their opcodes;                                     meta: mn alone

One key of a get that fails is, as in text, the whole answer.

What a dialect cannot say is asked in text, on a connection of its own, when all before it has been
answered: noreply, stats, records of deltas, what is negative in binary. From a line that is no
well-formed command on, the rest of a `send` is asked in text as it is: who can say where its
commands end? A script of which nothing can be asked in the dialect is left out.
"""

import argparse
import collections
import functools
import gc
import itertools
import os
import random
import re
import struct
import sys
import time

import run

HEADER = struct.Struct(">BBHBBHIIQ")
KEY_MAX = 250
VALUE_MAX = 4096
INT32_MAX = (1 << 31) - 1
NEVER = 0xFFFFFFFF
STORES = (b"set", b"add", b"replace", b"append", b"prepend", b"cas")
READS = (b"get", b"gets", b"gat", b"gats")
DELTAS = (b"incr", b"decr")
NUMBER = re.compile(rb"-?\d{1,20}")
CACHED = 256  # lines of a script


class Command:
    """A well-formed text command: its words, and its data."""

    def __init__(self, raw, words, data=None):
        self.raw, self.words, self.data = raw, words, data
        self.verb = words[0]
        self.noreply = words[-1] == b"noreply" and self.verb not in READS

    def keys(self):
        if self.verb in READS:
            return self.words[2 if self.verb.startswith(b"gat") else 1 :]
        return self.words[1:2]


def is_number(word, least, most):
    return NUMBER.fullmatch(word) is not None and least <= int(word) <= most


def well_formed(words):
    """Do the words of a line make a command whose end and answer are certain?"""
    verb, count = words[0], len(words)
    if verb in (b"get", b"gets"):
        return count > 1
    if verb in (b"gat", b"gats"):
        return count > 2 and is_number(words[1], -INT32_MAX, INT32_MAX)
    if verb in STORES:
        count -= words[-1] == b"noreply"
        return (
            count == 5 + (verb == b"cas")
            and is_number(words[2], 0, NEVER)
            and is_number(words[3], -INT32_MAX, INT32_MAX)
            and is_number(words[4], 0, VALUE_MAX)
            and (verb != b"cas" or is_number(words[5], 0, (1 << 64) - 1))
        )
    count -= words[-1] == b"noreply" and count > 1
    if verb in DELTAS:
        return count == 3
    if verb == b"touch":
        return count == 3 and is_number(words[2], -INT32_MAX, INT32_MAX)
    if verb == b"delete":
        return count == 2
    if verb == b"flush_all":
        return count == 1 or (count == 2 and is_number(words[1], 0, INT32_MAX))
    return verb in (b"version", b"verbosity", b"mn", b"stats") and count <= 2


def read_command(data, at):
    """The command at data[at], or None if there is no whole, well-formed one."""
    end = data.find(b"\n", at)
    if end < 0:
        return None
    words = data[at:end].rstrip(b"\r").split()
    if not words or data[at : at + 1] == b" " or not well_formed(words):
        return None
    end += 1
    block = None
    if words[0] in STORES:
        block = data[end : end + int(words[4])]
        end += len(block) + 2
        if len(data) < end or data[end - 2 : end] != b"\r\n":
            return None
    command = Command(data[at:end], words, block)
    return command if max(map(len, command.keys()), default=0) <= KEY_MAX else None


@functools.lru_cache(maxsize=CACHED)
def read_commands(data):
    """(commands, the bytes behind the last of them). The next dialect reads the same script."""
    commands, at = [], 0
    while at < len(data):
        command = read_command(data, at)
        if command is None:
            break
        commands.append(command)
        at += len(command.raw)
    return commands, data[at:]


def value_block(command, key, flags, value, token):
    token = b" %d" % token if command.verb in (b"gets", b"gats") else b""
    return b"VALUE %s %d %d%s\r\n%s\r\n" % (key, flags, len(value), token, value)


class Reader:
    """Takes lines and bytes off a connection, waiting for them."""

    def __init__(self, connection):
        self.connection = connection

    def more(self):
        if self.connection.ended:
            raise run.Mismatch("closed")
        self.connection.step(b"", time.monotonic() + run.ANSWER_S)

    def bytes(self, length):
        while len(self.connection.came) < length:
            self.more()
        taken = bytes(self.connection.came[:length])
        del self.connection.came[:length]
        return taken

    def line(self):
        while b"\r\n" not in self.connection.came:
            self.more()
        return self.bytes(self.connection.came.index(b"\r\n") + 2)


class Text:
    """Asks in text: for what the other dialects do not have."""

    @staticmethod
    def ask(command):
        return command.raw + b"mn\r\n"

    @staticmethod
    def answer(command, reader):
        said = b""
        while not said.endswith(b"MN\r\n"):
            said += reader.line()
        return said[: -len(b"MN\r\n")] + (b"MN\r\n" if command.verb == b"mn" else b"")


class Meta:
    """One text command as meta lines. `ask` gives their bytes, `answer` what text would say."""

    MODES = dict(set=b"S", add=b"E", replace=b"R", append=b"A", prepend=b"P", cas=b"S")
    WORDS = {b"HD": b"STORED", b"NS": b"NOT_STORED", b"EX": b"EXISTS", b"NF": b"NOT_FOUND"}

    def __init__(self, stores):
        self.stores = stores
        self.turns = itertools.count()
        self.written = None  # not of this dialect

    def speaks(self, command):
        if command.verb in DELTAS and not is_number(command.words[2], 0, (1 << 64) - 1):
            return False
        return not command.noreply and command.verb not in (
            b"stats", b"version", b"verbosity", b"flush_all")

    def ask(self, command):
        if command.verb in READS:
            return self.ask_read(command)
        if command.verb == b"mn":
            return b"mn\r\n"
        words = command.words
        key = words[1]
        if command.verb in STORES:
            token = b" C" + words[5] if command.verb == b"cas" else b""
            mode = self.MODES[command.verb.decode()]
            line = b"ms %s %s T%s F%s M%s%s\r\n" % (key, words[4], words[3], words[2], mode, token)
            return line + command.data + b"\r\n"
        if command.verb in DELTAS:
            return self.ask_delta(command)
        if command.verb == b"touch":
            return b"mg %s T%s\r\n" % (key, words[2])
        return b"md %s\r\n" % key

    def ask_read(self, command):
        """Quiet every other time: then only hits are answered."""
        touch = b" T" + command.words[1] if command.verb.startswith(b"gat") else b""
        quiet = b" q" if next(self.turns) % 2 else b""
        lines = [
            b"mg %s O%d v k f c%s%s\r\n" % (key, i, touch, quiet)
            for i, key in enumerate(command.keys())]
        return b"".join(lines) + b"mn\r\n"

    def ask_delta(self, command):
        words = command.words
        mode = b"MI" if command.verb == b"incr" else b"MD"
        create = b""
        if self.stores(words[1]):
            create = b" N0 J" + (words[2] if command.verb == b"incr" else b"0")
        return b"ma %s %s D%s v%s\r\n" % (words[1], mode, words[2], create)

    def answer(self, command, reader):
        if command.verb in READS:
            return self.answer_read(command, reader)
        line = reader.line()
        word = line.split()[0]
        if word in (b"CLIENT_ERROR", b"SERVER_ERROR", b"ERROR", b"MN"):
            return line
        if command.verb in DELTAS and word == b"VA":
            return reader.bytes(int(line.split()[1]) + 2)
        if command.verb == b"touch" and word in (b"HD", b"EN"):
            return b"TOUCHED\r\n" if word == b"HD" else b"NOT_FOUND\r\n"
        if command.verb == b"delete" and word == b"HD":
            return b"DELETED\r\n"
        if word not in self.WORDS or line != word + b"\r\n":
            raise run.Mismatch("meta answers " + run.shown(line))
        return self.WORDS[word] + b"\r\n"

    @staticmethod
    def answer_read(command, reader):
        said, error, keys, last = b"", b"", command.keys(), -1
        while True:
            line = reader.line()
            words = line.split()
            if words[0] == b"MN":
                return error or said + b"END\r\n"
            if words[0] == b"EN":
                continue
            if words[0] != b"VA":
                error = error or line
                continue
            number, name = int(words[2][1:]), words[3][1:]
            if number <= last or keys[number] != name:
                raise run.Mismatch("out of order: " + run.shown(line))
            last = number
            value = reader.bytes(int(words[1]) + 2)[:-2]
            said += value_block(command, name, int(words[4][1:]), value, int(words[5][1:]))


Packet = collections.namedtuple("Packet", "opcode status opaque cas extras key value")


class Binary:
    """One text command as packets. What is read behind a write has the token the write answered."""

    STORE = dict(set=0x01, add=0x02, replace=0x03, append=0x0E, prepend=0x0F, cas=0x01)
    GETS = (0x00, 0x09, 0x0C, 0x0D, 0x48, 0x49)
    GATS = (0x1D, 0x1E, 0x23, 0x24)
    QUIET = (0x09, 0x0D, 0x49, 0x1E, 0x24)
    WITH_KEY = (0x0C, 0x0D, 0x23, 0x24)
    NOOP = 0x0A
    EXPTIMES = {b"touch": 2, b"gat": 1, b"gats": 1, **{verb: 3 for verb in STORES}}
    CLIENT_ERRORS = (0x04, 0x20)
    SERVER_ERRORS = (0x82, 0x84, 0x85)

    def __init__(self, stores):
        self.stores = stores
        self.turns = itertools.count()
        self.reads = collections.deque()  # opcodes of those not answered yet
        self.written = None  # (key, token) of the last command but reads, if it stored

    def speaks(self, command):
        words = command.words
        if command.verb in DELTAS and not is_number(words[2], 0, (1 << 64) - 1):
            return False
        if command.verb == b"cas" and int(words[5]) == 0:
            return False
        if command.verb in self.EXPTIMES and int(words[self.EXPTIMES[command.verb]]) < 0:
            return False
        if command.verb in (b"version", b"mn"):
            return True
        return not command.noreply and command.verb not in (b"stats", b"verbosity")

    @staticmethod
    def packet(opcode, key=b"", extras=b"", value=b"", cas=0, opaque=0):
        body = extras + key + value
        return HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, len(body), opaque, cas) + body

    def ask(self, command):
        words, verb = command.words, command.verb
        if verb in READS:
            return self.ask_read(command)
        if verb in STORES:
            extras = b""
            if verb not in (b"append", b"prepend"):
                extras = struct.pack(">II", int(words[2]), int(words[3]))
            token = int(words[5]) if verb == b"cas" else 0
            return self.packet(self.STORE[verb.decode()], words[1], extras, command.data, token)
        if verb in DELTAS:
            incr = verb == b"incr"
            initial = int(words[2]) if incr else 0
            expiration = 0 if self.stores(words[1]) else NEVER
            extras = struct.pack(">QQI", int(words[2]), initial, expiration)
            return self.packet(0x05 if incr else 0x06, words[1], extras)
        if verb == b"touch":
            return self.packet(0x1C, words[1], struct.pack(">I", int(words[2])))
        if verb == b"flush_all":
            extras = struct.pack(">I", int(words[1])) if len(words) > 1 else b""
            return self.packet(0x08, b"", extras)
        if verb == b"delete":
            return self.packet(0x04, words[1])
        return self.packet(0x0B if verb == b"version" else self.NOOP)

    def ask_read(self, command):
        gat = command.verb.startswith(b"gat")
        opcodes = self.GATS if gat else self.GETS
        opcode = opcodes[next(self.turns) % len(opcodes)]
        self.reads.append(opcode)
        extras = struct.pack(">I", int(command.words[1])) if gat else b""
        packets = [
            self.packet(opcode, key, extras, opaque=i + 1) for i, key in enumerate(command.keys())]
        return b"".join(packets) + self.packet(self.NOOP)

    @staticmethod
    def take(reader):
        """The next answer."""
        fields = HEADER.unpack(reader.bytes(HEADER.size))
        magic, opcode, key_length, extras_length, kind, status, length, opaque, cas = fields
        key_end = extras_length + key_length
        if magic != 0x81 or kind != 0 or key_end > length:
            raise run.Mismatch("not an answer: " + str(fields))
        body = reader.bytes(length)
        parts = body[:extras_length], body[extras_length:key_end], body[key_end:]
        return Packet(opcode, status, opaque, cas, *parts)

    def error(self, packet):
        if packet.status == 0x06:  # in memcached's words for binary
            return b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
        if packet.status in self.CLIENT_ERRORS:
            return b"CLIENT_ERROR " + packet.value + b"\r\n"
        if packet.status in self.SERVER_ERRORS:
            return b"SERVER_ERROR " + packet.value + b"\r\n"
        raise run.Mismatch("status %d: %s" % (packet.status, run.shown(packet.value)))

    def answer(self, command, reader):
        verb = command.verb
        if verb in READS:
            return self.answer_read(command, reader)
        packet = self.take(reader)
        if packet.opcode != self.ask(command)[1] or packet.opaque != 0 or packet.key:
            raise run.Mismatch("an answer to another request")
        self.written = None
        if packet.status == 0:
            self.written = (command.words[1], packet.cas) if verb in STORES + DELTAS else None
            return self.success(verb, packet)
        words = {
            1: b"NOT_STORED" if verb == b"replace" else b"NOT_FOUND",
            2: b"NOT_STORED" if verb == b"add" else b"EXISTS",
            5: b"NOT_STORED",
        }
        if packet.status in words:
            return words[packet.status] + b"\r\n"
        return self.error(packet)

    @staticmethod
    def success(verb, packet):
        if (verb == b"touch") != (len(packet.extras) == 4):
            raise run.Mismatch("extras of %d bytes" % len(packet.extras))
        if verb in DELTAS:
            return b"%d\r\n" % struct.unpack(">Q", packet.value)
        if verb == b"version":
            return b"VERSION " + packet.value + b"\r\n"
        words = dict(delete=b"DELETED", touch=b"TOUCHED", flush_all=b"OK", mn=b"MN")
        return words.get(verb.decode(), b"STORED") + b"\r\n"

    def answer_read(self, command, reader):
        said, error, keys, last = b"", b"", command.keys(), 0
        opcode = self.reads.popleft()
        loud = opcode not in self.QUIET
        while True:
            packet = self.take(reader)
            if packet.opcode == self.NOOP:
                if loud and last < len(keys):
                    raise run.Mismatch("a loud get was not answered")
                return error or said + b"END\r\n"
            furthest = last + 1 if loud else len(keys)
            if packet.opcode != opcode or not last < packet.opaque <= furthest:
                raise run.Mismatch("out of order")
            last = packet.opaque
            key = keys[last - 1]
            if packet.key != (key if opcode in self.WITH_KEY and packet.status < 2 else b""):
                raise run.Mismatch("another key: " + run.shown(packet.key))
            if packet.status == 0:
                if self.written and self.written[0] == key and self.written[1] != packet.cas:
                    raise run.Mismatch("another token than its write answered")
                flags, = struct.unpack(">I", packet.extras)
                said += value_block(command, key, flags, packet.value, packet.cas)
            elif packet.status != 1 or not loud:
                error = error or self.error(packet)


DIALECTS = {"meta": Meta, "binary": Binary}


class DialectConnection:
    """What run.py takes for its connection: is sent text, answers text, and asks in a dialect."""

    plain = run.Connection

    def __init__(self, dialect, how, asked, address):
        self.dialect, self.how, self.asked, self.address = dialect, how, asked, address
        self.rng = random.Random(how)
        self.open = {}  # the dialect, or Text -> a connection
        self.came = bytearray()
        self.raw = None  # text was asked something whose answers are not counted

    def close(self):
        for connection in self.open.values():
            connection.close()

    def connection(self, dialect):
        if dialect is Text:
            self.dialect.written = None
        if dialect not in self.open:
            self.open[dialect] = self.plain(self.address)
        return self.open[dialect]

    def send(self, pieces):
        data = b"".join(pieces)
        commands, rest = ([], data) if self.raw else read_commands(data)
        for speaks, group in itertools.groupby(commands, self.dialect.speaks):
            self.ask(self.dialect if speaks else Text, list(group))
        if rest:
            self.raw = self.connection(Text)
            self.raw.send(run.split(rest, self.how, self.rng))

    def send_more(self, pieces):
        """In text: the dialect was asked enough of them, and thousands take seconds to put into it."""
        self.raw = self.connection(Text)
        self.raw.send(pieces)

    def ask(self, dialect, commands):
        connection = self.connection(dialect)
        asked = b"".join([dialect.ask(command) for command in commands])
        connection.send(run.split(asked, self.how, self.rng))
        reader = Reader(connection)
        for command in commands:
            self.came += dialect.answer(command, reader)
        self.asked[dialect is Text] += len(commands)

    def expect(self, expectation):
        until = time.monotonic() + run.ANSWER_S
        while True:
            if self.raw:
                self.came += self.raw.came
                self.raw.came.clear()
            found = expectation.match(self.came)
            if found:
                del self.came[: found[0]]
                self.raw = None if not self.came else self.raw
                return found[1]
            if self.raw is None:
                raise run.Mismatch
            if self.raw.ended:
                raise run.Mismatch("closed")
            self.raw.step(b"", until)

    def expect_closed(self):
        if Text not in self.open or self.came:
            raise run.Mismatch
        self.open[Text].expect_closed()


def read_stores(config, arguments):
    """A function: does the space of a key create numbers (role store)?"""
    roles, name = {}, None
    with open(config, encoding="utf-8") as file:
        for line in file:
            space = re.match(r"  (\w+):\s*$", line)
            role = re.match(r"    role: (\w+)", line)
            name = space.group(1) if space else name
            if role:
                roles[name] = role.group(1)
    for argument in arguments:
        space = re.match(r"spaces\.(\w+)[.=]", argument)
        role = re.search(r"role[:=]\s*(\w+)", argument)
        if space and "kind: plain" not in argument:
            roles[space.group(1)] = role.group(1) if role else "store"

    def stores(key):
        found = re.match(r"[{]?(\w+)", key.decode("latin-1"))
        return found is not None and roles.get(found.group(1)) == "store"

    return stores


def run_script(path, name, how, options):
    """(a text if it failed, commands asked in the dialect, in text)."""
    asked = [0, 0]
    dialect = DIALECTS[name](read_stores(options.config, run.read_script(path)[1]))
    run.Connection = functools.partial(DialectConnection, dialect, how, asked)
    return run.run_script(path, how, options), asked[0], asked[1]


def speaks_any(path, name):
    """Is there anything in the script that the dialect can be asked?"""
    dialect = DIALECTS[name](None)
    lines, arguments = run.read_script(path)[:2]
    if "-Y" in arguments:  # its connections must first say who they are
        return False
    if name == "binary" and "refusals=server" in arguments:  # its errors do not say whose fault
        return False
    for _, verb, text in lines:
        if verb == b"each":
            text = text.split(None, 2)[2].partition(b" =>")[0]
        if verb in (b"send", b"each"):
            data = b"".join(value if kind == "bytes" else b"1" for kind, value in run.parts(text))
            commands = read_commands(data)[0]
            if any(command.verb != b"mn" and dialect.speaks(command) for command in commands):
                return True
    return False


def main():
    parser = argparse.ArgumentParser(description="Runs the protocol scripts in other dialects.")
    parser.add_argument("scripts", nargs="*", help="default: all *.txt beside this file")
    parser.add_argument("--dialect", choices=tuple(DIALECTS) + ("all",), default="all")
    parser.add_argument("--split", choices=run.SPLITS + ("all",), default="none")
    parser.add_argument("--seed", type=int, default=1, help="of the random splits")
    parser.add_argument("--config", default=os.path.join(run.HERE, "scripts.yaml"))
    parser.add_argument("--connect", metavar="HOST:PORT", help="a server that runs already")
    options = parser.parse_args()
    scripts = options.scripts or sorted(
        os.path.join(run.HERE, name) for name in os.listdir(run.HERE) if name.endswith(".txt"))
    names = DIALECTS if options.dialect == "all" else (options.dialect,)
    splits = run.SPLITS if options.split == "all" else (options.split,)
    passed = failed = 0
    gc.disable()  # of the many commands of a script none is garbage
    for path, name, how in itertools.product(scripts, names, splits):
        if not speaks_any(path, name):
            continue
        problem, own, text = run_script(path, name, how, options)
        what = "%s (%s, split: %s)" % (os.path.basename(path), name, how)
        if problem is None:
            print("ok   %s: %d commands, %d more in text" % (what, own, text))
        else:
            print("FAIL %s\n  %s" % (what, problem))
        sys.stdout.flush()
        passed += problem is None
        failed += problem is not None
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
