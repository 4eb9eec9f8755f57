#!/usr/bin/env python3
"""The same random operations for rollcalld and for memcached, and every answer compared.

Text, meta and binary, against counters (role cache) and against a plain space. What may differ:

    counters   flags (not kept); spaces that memcached pads a number with after decr; a change by
               a token that fails on memcached only because the value went and came back, which is
               no other value here
    plain      the spaces behind a number that was counted: memcached pads a shorter one in place, but
               not while an earlier answer still holds the item, which is a matter of time. A difference
               of a key that was counted is let pass if it is not there when the key's operations are
               asked again, one after the other's answer
    both       the numbers of tokens; the words behind the first of an error line; noreply, which
               silences errors, too; a refused data block is no command; base64 of a meta hit's key
               is as it was asked for

A failing run prints its seed and the shortest end of the operations that shows the difference.
$ROLLCALLD names the daemon, $ROLLCALL_TEST_SEED the seed (or says random), $ROLLCALL_TEST_SCALE the
operations in per cent of the usual. Skipped without memcached.
"""

import argparse
import importlib.util
import itertools
import os
import random
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROTOCOL = os.path.join(os.path.dirname(HERE), "protocol", "run.py")
sys.path.insert(0, HERE)
import answers  # noqa: E402
import operations  # noqa: E402


def load(name, path):
    """A module of a file whose name another has, too."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


protocol = load("protocol", PROTOCOL)

SKIPPED = 77
MEMCACHED = shutil.which("memcached")
OPERATIONS = {"numbers": 100000, "anything": 30000}
BATCH = 500
NO_TOKEN = (1 << 63) + 12345  # never one of memcached's, and hardly one of ours
SHRINK_EACH_MAX = 40  # so few operations are dropped one by one
SHOWN_MAX = 20
EXPIRY_SLACK_S = 3
IDS_APART = 10000
PADDED_MAX = 20  # differences of a run that may be memcached's padding
OURS, THEIRS = 0, 1


class Memcached:
    """Debian's, on a free port."""

    def __init__(self):
        self.address = ("127.0.0.1", protocol.free_port())
        command = [MEMCACHED, "-l", "127.0.0.1", "-p", str(self.address[1]), "-U", "0",
                   "-m", "1024", "-t", "2",
                   # as little as may be that still holds an item when the next command counts it
                   # (one request an event, no thread beside): what is held is not padded
                   "-R", "1", "-o", "no_lru_maintainer,no_lru_crawler"]
        if os.geteuid() == 0:
            command += ["-u", protocol.USER]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        until = time.monotonic() + protocol.START_S
        while True:
            try:
                socket.create_connection(self.address, 1).close()
                return
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    self.stop()
                    raise
            time.sleep(0.01)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Servers:
    """One of each, empty."""

    def __init__(self):
        config = os.path.join(HERE, "differential.yaml")
        self.theirs = Memcached()
        try:
            self.ours = protocol.Daemon(argparse.Namespace(connect=None, config=config), [])
        except BaseException:
            self.theirs.stop()
            raise

    def addresses(self):
        return self.ours.address, self.theirs.address

    def stop(self):
        self.theirs.stop()
        return self.ours.stop(False)


class Difference(Exception):
    """Two answers to the operation that may not differ."""

    def __init__(self, operation, why, ours, theirs):
        super().__init__(why)
        self.operation, self.why, self.answers = operation, why, (ours, theirs)


class Pair:
    """Asks both servers and judges what they say."""

    def __init__(self, servers, dialect, pool):
        self.addresses = servers.addresses()
        self.dialect, self.pool = dialect, pool
        self.reader = answers.READERS[dialect]
        self.counts = operations.POOLS[pool].counts
        self.connections = [protocol.Connection(address) for address in self.addresses]
        self.tokens = {}  # key -> (our token, their token, the value they are of)
        self.known = {}  # (key, value) -> our token: of counters it is always the same
        self.apart = set()  # keys whose values a token set apart: not compared in this batch
        self.asked = {}  # of a plain space: key -> its operations so far
        self.counted = set()  # and the keys whose numbers memcached may have padded
        self.came_back = self.too_far = self.padded = 0

    def close(self):
        for connection in self.connections:
            connection.close()

    def run(self, made):
        """Asks one batch. Difference: the first operation that is answered otherwise."""
        self.join()
        asked = []
        for side in (OURS, THEIRS):
            data = b"".join([
                self.reader.sent(operation, self.token(operation, side)) for operation in made])
            asked.append(data + getattr(self.reader, "END", b""))
        for connection, data in zip(self.connections, asked):
            connection.came.clear()
            connection.send([data])
        cut = [self.reader.cut(self.come(connection, len(made)), made)
               for connection in self.connections]
        sent = dict(self.tokens)
        for operation, ours, theirs in zip(made, *cut):
            self.compare(operation, ours, theirs, sent.get(operation.keys[0], ()))
        if made[-1].last or any(connection.ended for connection in self.connections):
            self.close()
            self.connections = [protocol.Connection(address) for address in self.addresses]

    def come(self, connection, count):
        until = time.monotonic() + protocol.ANSWER_S
        while not connection.ended and not self.reader.ended(connection.came, count):
            try:
                connection.step(b"", until)
            except protocol.Mismatch:
                break  # what has not come is missing in what is compared
        return connection.came

    def token(self, operation, side):
        if len(operation.pieces) == 1 or operation.keys[0] not in self.tokens:
            return NO_TOKEN
        return self.tokens[operation.keys[0]][side]

    def join(self):
        """The keys that were set apart get the same value again."""
        for address in self.addresses if self.apart else ():
            with socket.create_connection(address, protocol.ANSWER_S) as control:
                control.sendall(b"".join([b"set %s 0 0 1\r\n1\r\n" % key for key in self.apart]))
                said = b""
                while len(said) < len(b"STORED\r\n") * len(self.apart):
                    said += control.recv(1 << 16)
        for key in self.apart:
            self.tokens.pop(key, None)
        self.counted -= self.apart
        self.apart.clear()

    def compare(self, operation, ours, theirs, sent):
        if not self.apart.isdisjoint(operation.keys):
            return
        both = [self.replies(side, answer, operation)
                for side, answer in ((OURS, ours), (THEIRS, theirs))]
        if operation.refused:
            both[THEIRS] = without_block(*both)
        if not self.counts:
            self.note(operation)
        if same(*both):
            self.learn(operation, *both)
        elif self.value_came_back(operation, *both, sent):
            self.apart.update(operation.keys)
            self.came_back += 1
        elif self.looked_too_far(operation, *both):
            self.apart.update(operation.keys)
            self.too_far += 1
        elif self.is_padding(operation):
            self.apart.update(self.counted.intersection(operation.keys))
            self.padded += 1
        else:
            raise Difference(operation, "another answer", ours, theirs)

    def replies(self, side, answer, operation):
        replies = self.reader.replies(answer)
        if side == THEIRS and (operation.mute or b" noreply\r\n" in operation.pieces[0]):
            replies = [reply for reply in replies if not self.reader.failed(reply)]
        if self.counts:
            replies = [self.reader.without_flags(reply) for reply in replies]
            if side == THEIRS:
                replies = [without_padding(reply) for reply in replies]
        return replies

    def learn(self, operation, ours, theirs):
        for our, their in zip(ours, theirs):
            if not our.token or self.reader.failed(our) or our.word in self.reader.EXISTS:
                continue
            key = our.key or operation.keys[0]
            value = our.value or operation.value
            if self.counts and not value:
                continue
            if self.counts and self.known.setdefault((key, value), our.token) != our.token:
                raise Difference(operation, "an equal value, another token", repr(our), repr(their))
            self.tokens[key] = (our.token, their.token, value)

    def only_theirs_refused(self, operation, ours, theirs, refused):
        """Of a change behind a look at the value: `refused` says so of the last reply. Of a silent
        one a second look says it."""
        if not operation.led or not same(ours[:1], theirs[:1]):
            return False
        if operation.mute:
            values = [reply.value for reply in theirs if reply.value is not None]
            return len(values) == 2 and values[0] == values[1]
        quiet = len(ours) == 1
        done = quiet or not (ours[-1].word in self.reader.EXISTS or self.reader.failed(ours[-1]))
        return done and refused(theirs[-1])

    def value_came_back(self, operation, ours, theirs, sent):
        """Did memcached refuse an old token whose value is what is there?"""
        if not self.counts or not sent or len(operation.pieces) == 1:
            return False
        return theirs[:1] and theirs[0].value == sent[2] and self.only_theirs_refused(
            operation, ours, theirs, lambda reply: reply.word in self.reader.EXISTS)

    def note(self, operation):
        for key in operation.keys:
            self.asked.setdefault(key, []).append(operation)
        if operation.counts:
            self.counted.update(operation.keys)

    def is_padding(self, operation):
        """Is the difference gone when nothing holds an item that is counted? Then it was memcached's."""
        keys = self.counted.intersection(operation.keys)
        if not keys or self.padded == PADDED_MAX:
            return False
        return not any(trial(self.dialect, self.pool, [[one] for one in self.asked[key]])
                       for key in keys)

    def looked_too_far(self, operation, ours, theirs):
        """Did memcached see a minus sign behind a number from 2^63 on? It looks for one beyond the
        number's end, in whatever lies there, and takes it for no number."""
        value = (theirs[:1] and theirs[0].value or b"").strip()
        return value.isdigit() and int(value) >> 63 == 1 and self.only_theirs_refused(
            operation, ours, theirs, self.reader.failed)


def without_block(ours, theirs):
    """Less the errors that the lines of a refused data block were to memcached."""
    while len(theirs) > max(1, len(ours)) and theirs[-1].word == b"ERROR":
        theirs = theirs[:-1]
    return theirs


def without_padding(reply):
    """As their value is without the spaces behind it, and the length they say of it."""
    value = reply.value
    if value and value.endswith(b" "):
        short = value.rstrip(b" ")
        was, now = b"s%d" % len(value), b"s%d" % len(short)
        flags = reply.flags
        if isinstance(flags, list):
            flags = [now if flag == was else flag for flag in flags]
        return reply._replace(value=short, flags=flags)
    return reply


def same_flags(ours, theirs, valued):
    """Meta: a second may have passed; a size alone may be that of a padded number."""
    if ours == theirs or not isinstance(ours, list):
        return ours == theirs
    if len(ours) != len(theirs):
        return False
    for our, their in zip(ours, theirs):
        if our == their:
            continue
        if our[:1] != their[:1] or our[:1] not in b"ts" or b"-" in our + their:
            return False
        apart = int(their[1:]) - int(our[1:])
        passed = our == b"t0" and int(their[1:]) >> 31  # theirs runs below 0
        if our[:1] == b"t" and abs(apart) > EXPIRY_SLACK_S and not passed:
            return False
        if our[:1] == b"s" and (valued or apart < 0):
            return False
    return True


def same(ours, theirs):
    if len(ours) != len(theirs):
        return False
    for our, their in zip(ours, theirs):
        if our[:2] != their[:2] or our.value != their.value:
            return False
        if (our.token is None) != (their.token is None):
            return False
        if not same_flags(our.flags, their.flags, our.value is not None):
            return False
    return True


def by_batch(made):
    return [list(group) for _, group in itertools.groupby(made, lambda one: one.batch)]


def trial(dialect, pool, batches):
    """Runs the operations on new servers; the Difference, or None."""
    servers = Servers()
    try:
        pair = Pair(servers, dialect, pool)
        pair.padded = PADDED_MAX  # here every difference is one
        for batch in batches:
            if dialect == "binary":
                for number, operation in enumerate(batch):
                    operations.Binary.number(operation, number)
            pair.run(batch)
        pair.close()
    except Difference as difference:
        return difference
    finally:
        servers.stop()
    return None


def shrink(dialect, pool, made, difference):
    """A short list of operations that still shows a difference, and that difference."""
    made = made[: made.index(difference.operation) + 1]
    keys = set(difference.operation.keys)
    best = made, difference

    def holds(fewer):
        nonlocal best
        found = trial(dialect, pool, by_batch(fewer)) if fewer else None
        if found:
            best = fewer[: fewer.index(found.operation) + 1], found
        return found is not None

    holds([one for one in made if not keys.isdisjoint(one.keys) or one is made[-1]])
    least, most = 1, len(best[0])
    while least < most:
        middle = (least + most) // 2
        if holds(best[0][-middle:]):
            most = min(middle, len(best[0]))
        else:
            least = middle + 1
    if len(best[0]) <= SHRINK_EACH_MAX:
        for one in best[0][:-1]:
            holds([other for other in best[0] if other is not one])
    return best


def show(dialect, pool, seed, made, difference):
    print("FAIL %s %s: %s (ROLLCALL_TEST_SEED=%s)" % (dialect, pool, difference.why, seed))
    if len(made) > SHOWN_MAX:
        print("  … %d operations before" % (len(made) - SHOWN_MAX))
    batch = None
    for one in made[-SHOWN_MAX:]:
        if batch is not None and batch != one.batch:
            print("  (answers are read)")
        batch = one.batch
        print("  send " + "<token>".join(protocol.shown(piece) for piece in one.pieces))
    for name, answer in zip(("rollcalld", "memcached"), difference.answers):
        text = answer if isinstance(answer, str) else protocol.shown(answer, 600)
        print("  %s: %s" % (name, text))


def one_run(dialect, pool, seed, count, first_id):
    """All operations of a dialect on a space, on new servers; is every answer right?"""
    servers = Servers()
    made = []
    begin = time.monotonic()
    difference = problem = None
    try:
        pair = Pair(servers, dialect, pool)
        for batch in operations.batches(dialect, pool, seed, count, BATCH, first_id):
            made += batch
            pair.run(batch)
        pair.close()
    except Difference as found:
        difference = found
    finally:
        problem = servers.stop()
    if difference:
        show(dialect, pool, seed, *shrink(dialect, pool, made, difference))
    elif problem:
        print("FAIL %s %s: %s" % (dialect, pool, problem))
    else:
        print("ok   %s %s: %d operations, %d values came back, %d looks too far, %d padded, %.1f s" % (
            dialect, pool, len(made), pair.came_back, pair.too_far, pair.padded,
            time.monotonic() - begin))
    return not difference and not problem


def main():
    parser = argparse.ArgumentParser(description="rollcalld against memcached; see the top.")
    parser.add_argument("--dialect", choices=tuple(operations.DIALECTS), action="append")
    parser.add_argument("--space", choices=tuple(operations.POOLS), action="append")
    options = parser.parse_args()
    if not MEMCACHED:
        print("SKIP: memcached is not installed")
        return SKIPPED
    seed = os.environ.get("ROLLCALL_TEST_SEED") or "1"
    if seed == "random":
        seed = str(random.SystemRandom().getrandbits(32))
    scale = int(os.environ.get("ROLLCALL_TEST_SCALE") or 100)
    print("ROLLCALL_TEST_SEED=%s" % seed, flush=True)
    failed = 0
    first_id = 1
    for pool, dialect in itertools.product(operations.POOLS, operations.DIALECTS):
        if dialect in (options.dialect or operations.DIALECTS) and (
                pool in (options.space or operations.POOLS)):
            count = max(BATCH, OPERATIONS[pool] * scale // 100)
            failed += not one_run(dialect, pool, seed, count, first_id)
            sys.stdout.flush()
        first_id += IDS_APART
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
