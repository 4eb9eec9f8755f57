#!/usr/bin/env python3
"""A node is followed: the stream is its journal byte by byte, a copy is a directory to start with.

    tests/repl/feed.py [--directory DIR] [--seed N] [--only PART]

$ROLLCALLD names the daemon, $ROLLCALL_BUILD the folder of the build (tests/repl/segment is there).
"""
import argparse
import os
import random
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recovery"))
from follower import ANSWER_S, Follower, Over, Wrong  # noqa: E402
from victim import Failure, Folder, Victim, protocol, seed_of_run  # noqa: E402

PAGE = 4096
SILENCE_S = 5
FALLEN_BYTES = 12 << 20  # more than sockets hold: who has not read so much is out of the journal
FALLEN_PACE_S, COPIED_PACE_S = 0.02, 0.002  # between two batches, from then on, and while a copy is made
FEEDS_MAX = 16
USER = "follower:secret"
CONFIG = """threads: 2
memory: 512MiB
data: %(data)s
journal: {segment: 1MiB, buffer: 1MiB, sync: %(sync)s}
checkpoint: {every: %(every)s, journal: 4MiB}
replication: {name: one, keep: %(keep)s, copies: %(copies)d, copy-rate: %(rate)s}
%(more)sspaces:
  feed:
    kind: counter
    slots: {like: 20, read: 10}
    table-size: 64KiB
    tables: 4
    oldest: dump
  liked:
    kind: phantom
    deletes: yes
    table-size: 64KiB
    tables: 4
"""


class Writer(threading.Thread):
    """Changes of all kinds, pipelined, until it is told to end or the daemon is gone."""

    def __init__(self, daemon, seed, user=None, wrap=None):
        super().__init__(daemon=True)
        self.socket = socket.create_connection(daemon.address, ANSWER_S)
        if wrap:
            self.socket = wrap(self.socket)
        if user:
            self.socket.sendall(b"set a 0 0 %d\r\n%s\r\n" % (len(user), user.encode()))
            self.socket.recv(100)
        self.rng = random.Random(seed)
        self.next_id, self.slowest, self.pace, self.ended = 0, 0.0, 0, False
        self.start()

    def batch(self):
        lines = []
        for _ in range(20):
            self.next_id += 1
            old = max(0, self.next_id - self.rng.randrange(1500))
            lines.append(b"set feed:%d.like 0 0 3\r\n%d\r\n" % (self.next_id,
                                                              self.rng.randrange(100, 1000)))
            lines.append(b"incr feed:%d.read 1\r\n" % old)
            lines.append(b"set liked:%d:u%d 0 0 1\r\n1\r\n" % (self.next_id,
                                                              self.rng.randrange(100)))
        return lines

    def run(self):
        try:
            while not self.ended:
                lines = self.batch()
                began = time.monotonic()
                self.socket.sendall(b"".join(lines))
                left = len(lines)  # an answer has one line end
                while left > 0:
                    piece = self.socket.recv(1 << 16)
                    if not piece:
                        return
                    left -= piece.count(b"\n")
                self.slowest = max(self.slowest, time.monotonic() - began)
                time.sleep(self.pace)
        except OSError:
            return

    def finish(self):
        self.ended = True
        self.join(ANSWER_S)
        self.socket.close()


class Links(threading.Thread):
    """Hard links of every segment that ever was, since checkpoints delete them."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.data, self.path = folder.data, os.path.join(folder.path, "links")
        os.makedirs(self.path, exist_ok=True)
        self.ended, self.known = False, set()
        self.start()

    def look(self):
        for name in os.listdir(self.data):
            if not name.startswith("journal-") or len(name) != len("journal-") + 16:
                continue
            try:
                number = os.stat(os.path.join(self.data, name)).st_ino
                if number not in self.known:
                    os.link(os.path.join(self.data, name),
                            os.path.join(self.path, "%s-%d" % (name, number)))
                    self.known.add(number)
            except FileNotFoundError:
                continue

    def run(self):
        while not self.ended:
            self.look()
            time.sleep(0.005)

    def segments(self):
        """(number, start, end, path) of each."""
        found = []
        for name in os.listdir(self.path):
            path = os.path.join(self.path, name)
            with open(path, "rb") as file:
                page = file.read(PAGE)
            number, start, size = struct.unpack_from("<QQQ", page, 24)
            found.append([number, start, start + size - PAGE, path])
        return sorted(found)

    def compare(self, begin, data):
        """Every byte that was received is in a segment where it belongs: a later one ends those
        before it."""
        segments = self.segments()
        compared = 0
        for i, (_, start, end, path) in enumerate(segments):
            if i + 1 < len(segments):
                end = min([end] + [later[1] for later in segments[i + 1:]])
            first, last = max(start, begin), min(end, begin + len(data))
            if first >= last:
                continue
            with open(path, "rb") as file:
                file.seek(PAGE + first - start)
                written = file.read(last - first)
            if written != data[first - begin:last - begin]:
                raise Failure("%s differs between LSN %d and %d" % (path, first, last))
            compared += len(written)
        if compared != len(data):
            raise Failure("%d bytes were received, %d compared" % (len(data), compared))
        return compared

    def finish(self):
        self.ended = True
        self.join(ANSWER_S)
        self.look()


class World:
    """A daemon in a folder, and what it is asked."""

    def __init__(self, options, rng, **values):
        self.rng = rng
        self.folder = Folder(options.directory)
        self.values = dict({"data": self.folder.data, "every": "100ms", "keep": "1GiB", "copies": 1,
                            "rate": "0", "more": "", "sync": "everysec"}, **values)
        self.daemon = None

    def start(self):
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(CONFIG % self.values)
        self.daemon = Victim(self.folder)
        return self

    def serve(self):
        self.start().daemon.serve()
        return self

    def follower(self, name="two", **connecting):
        return Follower(name).connect(self.daemon.address, **connecting)

    def stats(self, group=b" replication"):
        client = self.daemon.connect()
        figures = client.stats(group)
        client.socket.close()
        return dict(figures)

    def end(self):
        if self.daemon is not None and self.daemon.alive():
            self.daemon.kill_now()
        self.folder.remove()


def caught_up(follower, world):
    """True when the follower has all that is written now. Nothing is being written."""
    written = int(world.stats(b"")["journal_written"])
    return lambda: follower.end() >= written


def stream(options, rng):
    """Under load, while checkpoints delete segments; the leader is killed and comes back."""
    world = World(options, rng).serve()
    try:
        links, follower = Links(world.folder), world.follower()
        if follower.follow()[0] != "STREAM":
            raise Failure("a young leader gives no stream from 0")
        for life in range(3):
            writer = Writer(world.daemon, rng.random())
            most = follower.end() + (3 << 20)
            follower.take_until(lambda: follower.end() >= most)
            figures = world.stats()
            if figures["role"] != "leader" or figures["two:state"] != "streaming" or \
                    figures["followers"] != "1" or int(figures["two:lag_bytes"]) > 8 << 20:
                raise Failure("stats replication: %r" % figures)
            if life == 2:
                break
            world.daemon.kill_now()
            writer.finish()
            try:
                follower.take_until(lambda: False)
            except Over:
                pass
            epoch = follower.epoch
            world.serve()
            follower.connect(world.daemon.address)
            if follower.follow()[0] != "STREAM" or follower.epoch != epoch + 1:
                raise Failure("after a kill of the leader: epoch %d" % follower.epoch)
        writer.finish()
        follower.take_until(caught_up(follower, world))
        follower.take_until(lambda: world.stats()["two:lag_bytes"] == "0")
        if follower.sums_checked < 5 or follower.times < 5:
            raise Failure("%d sums, %d times" % (follower.sums_checked, follower.times))
        links.finish()
        problem = world.daemon.stop(False)  # a follower does not hold it up
        if problem:
            raise Failure(problem)
        return "%d bytes equal, %d sums, %d times" % (
            links.compare(follower.begin, follower.data), follower.sums_checked, follower.times)
    finally:
        world.end()


def behind(options, rng):
    """Without keep one that does not read falls out of the journal; nobody else waits for it."""
    world = World(options, rng, keep="0").serve()
    try:
        slow, silent = world.follower("slow"), world.follower("silent")
        silent.acknowledges = False
        for follower in (slow, silent):
            if follower.follow()[0] != "STREAM":
                raise Failure("no stream")
        began = time.monotonic()
        writer = Writer(world.daemon, rng.random())
        try:
            silent.take_until(lambda: silent.end() > FALLEN_BYTES)
            writer.pace = FALLEN_PACE_S
            silent.take_until(lambda: False)
        except Over:
            pass
        if not SILENCE_S - 1 < time.monotonic() - began < SILENCE_S + 3:
            raise Failure("a silent one was closed after %.1f s" % (time.monotonic() - began))
        until = time.monotonic() + 30
        while world.stats()["followers"] != "0" and time.monotonic() < until:
            time.sleep(0.05)
        if world.stats()["followers"] != "0":
            raise Failure("one that does not read is not closed")
        words, until = [], time.monotonic() + 30
        while words[:1] != ["COPY"]:  # the next checkpoint takes the beginning away
            if time.monotonic() > until:
                raise Failure("the beginning is not gone: the answer is %r" % words)
            again = world.follower("slow")
            words = again.follow(silent.stream, silent.epoch, 0)
            again.close()
        writer.finish()
        if writer.slowest > 2:
            raise Failure("a writer waited %.1f s" % writer.slowest)
        return "silent closed, slow closed, slowest batch %.0f ms" % (1000 * writer.slowest)
    finally:
        world.end()


def closed_after(follower, line, expected):
    """Asks; the answer must begin so. SERVER_ERROR and BUSY end the connection."""
    answer = follower.ask(line)
    if not answer.startswith(expected):
        raise Failure("%s: answered %s, not %s" % (line, answer, expected))
    if expected.split(" ")[0] in ("SERVER_ERROR", "BUSY"):
        try:
            follower.line()
        except Over:
            return
        raise Failure("it is not closed after " + answer)


def compares_before(world, follower):
    """What stands before a stream is summed; a follower in the midst of a record here has another history."""
    follower.connect(world.daemon.address)
    checked = follower.sums_checked
    if follower.follow()[0] != "STREAM" or [follower.take()[0], follower.take()[0]] != ["V", "V"] or \
            follower.sums_checked != checked + 2:
        raise Failure("what stands before the stream is not summed")
    follower.close()
    other = world.follower()
    other.stream = follower.stream
    words = [other.follow(epoch=1, lsn=8)[0], other.line(), other.line()]
    if words[0] != "STREAM" or not words[1].startswith("V 0 8 ") or \
            not words[2].startswith("SERVER_ERROR replication: no record begins at LSN 8 here"):
        raise Failure("in the midst of a record: %s" % words)


def refusals(options, rng):
    world = World(options, rng).serve()
    try:
        writer = Writer(world.daemon, rng.random())
        first = world.follower()
        first.follow()
        first.take_until(lambda: first.end() > 100000)
        writer.finish()
        first.take_until(caught_up(first, world))
        head, id_ = first.end(), first.stream
        first.close()
        other = "f" * 32
        for line, expected in (
                ("follow 1 wrong two - 0 0", "SERVER_ERROR replication: group wrong was asked"),
                ("follow 2 rollcall two - 0 0", "SERVER_ERROR replication: version 2"),
                ("follow 1 rollcall one - 0 0", "SERVER_ERROR replication: one is the name"),
                ("follow 1 rollcall two - 0", "SERVER_ERROR replication: a word is missing"),
                ("follow", "SERVER_ERROR replication: a word"),
                ("copy 1 rollcall", "SERVER_ERROR replication: a word"),
                ("follow 1 rollcall two %s 1 %d" % (id_, head + 8), "REWIND 1 %d" % head),
                ("follow 1 rollcall two %s 9 0" % id_, "COPY epoch 9"),
                ("follow 1 rollcall two %s 1 0" % other, "COPY this is another stream: " + id_),
                ("follow 1 rollcall two %s 1 %d" % (id_, head), "STREAM %s 1 %d" % (id_, head))):
            closed_after(world.follower(), line, expected)
        compares_before(world, first)
        follower = world.follower()  # what was asked before is answered first; then several on one
        follower.say("version\r\nincr feed:1.read 1 noreply\r\nfollow 1 rollcall two %s 9 0" % id_)
        if not follower.line().startswith("VERSION") or not follower.line().startswith("COPY"):
            raise Failure("pipelined requests")
        if follower.follow(id_, 1, head)[0] != "STREAM":
            raise Failure("follow after COPY")
        follower.data, follower.begin = bytearray(), head
        follower.take()
        follower.acknowledges = False  # it may be closed by then
        follower.say("file x 0")
        try:
            follower.take_until(lambda: False)
        except Wrong as said:
            if "only A is expected" not in str(said):
                raise
        feeds = [world.follower("f%d" % i) for i in range(FEEDS_MAX)]
        for feed in feeds:
            feed.follow()
        closed_after(world.follower("more"), "follow 1 rollcall more - 0 0", "BUSY ")
        feeds[0].name = "f1"  # a second f1: the first is closed, its place free
        for _ in range(2):
            feeds[0].close()
            time.sleep(0.1)
            feeds[0].connect(world.daemon.address)
            feeds[0].follow()
        return "all refused as they should"
    finally:
        world.end()


def count(world):
    """Changes some; where the journal ends then."""
    client = world.daemon.connect()
    for number in range(20):
        client.ask(b"set feed:1 0 0 4\r\n1,%2d\r\n" % (10 + number), (b"STORED\r\n",))
    client.socket.close()
    return int(world.stats()["written"])


def reigns(options, rng):
    """A follower of an earlier reign goes back to where that ended here, however far this one has come."""
    world = World(options, rng).serve()
    try:
        ends = []
        for _ in range(3):
            ends.append(count(world))
            world.daemon.kill_now()
            world.serve()
        head = count(world)
        first = world.follower()
        first.follow()
        for epoch, end in enumerate(ends, 1):
            asked = "follow 1 rollcall three %s %d %%d" % (first.stream, epoch)
            for lsn in (end + 8, head, head + 8):
                closed_after(world.follower("three"), asked % lsn, "REWIND %d %d" % (epoch, end))
            closed_after(world.follower("three"), asked % end,
                         "STREAM %s %d %d" % (first.stream, len(ends) + 1, end))
        return "three that ended"
    finally:
        world.end()


def no_name(options, rng):
    world = World(options, rng)
    with open(world.folder.config, "w", encoding="ascii") as file:
        file.write("\n".join(line for line in (CONFIG % world.values).split("\n")
                             if not line.startswith("replication")))
    world.daemon = Victim(world.folder)
    try:
        world.daemon.serve()
        answer = world.follower().ask("follow 1 rollcall two - 0 0")
        if answer != "SERVER_ERROR nobody can follow this node: it has no replication.name":
            raise Failure(answer)
        if world.stats()["role"] != "single":
            raise Failure("its role")
        return "refused"
    finally:
        world.end()


def secure(options, rng):
    """TLS and a login, as for any client."""
    if shutil.which("openssl") is None:
        return "skipped: no openssl"
    world = World(options, rng)
    try:
        pair = [os.path.join(world.folder.path, "server." + end) for end in ("crt", "key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=x",
                        "-out", pair[0], "-keyout", pair[1]], check=True,
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        users = os.path.join(world.folder.path, "users")
        with open(users, "w", encoding="ascii") as file:
            file.write(USER + "\n")
        for path in pair + [users]:
            os.chmod(path, 0o644)
        world.values["more"] = "auth-file: %s\ntls: {enabled: yes, certificate: %s, key: %s}\n" % (
            users, *pair)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(pair[0])
        world.start()
        until = time.monotonic() + ANSWER_S
        while "listening on" not in world.daemon.output():
            if time.monotonic() > until:
                raise Failure("it does not listen: " + world.daemon.output())
            time.sleep(0.01)
        stranger = world.follower(wrap=context.wrap_socket)
        if "unauthenticated" not in stranger.ask("follow 1 rollcall two - 0 0"):
            raise Failure("who has not logged in may follow")
        links = Links(world.folder)
        login = USER.replace(":", " ")
        follower = world.follower(wrap=context.wrap_socket, user=login)
        if follower.follow()[0] != "STREAM":
            raise Failure("no stream")
        writer = Writer(world.daemon, rng.random(), login, context.wrap_socket)
        follower.take_until(lambda: follower.end() > 2 << 20)
        writer.finish()
        links.finish()
        return "%d bytes equal" % links.compare(follower.begin, follower.data)
    finally:
        world.end()


def export(daemon, space):
    program = os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))
    done = subprocess.run([program, "export", "-q", "-s", "%s:%d" % daemon.address, space],
                          capture_output=True, text=True, timeout=120, check=True)
    return sorted(done.stdout.splitlines())  # a record each


class Fetch:
    """A copy into a folder, that breaks now and then and goes on."""

    def __init__(self, world, rng, path):
        self.world, self.rng, self.path = world, rng, path
        self.follower, self.broken, self.kept = Follower(), 0, 0

    def wanted(self, manifest):
        """What lacks: (name, offset, bytes). Names of whole files are never given again."""
        lacks = []
        for line in manifest.decode("ascii").splitlines():
            words = line.split(" ")
            if words[0] != "file":
                continue
            size = int(words[words.index("bytes") + 1])
            path = os.path.join(self.path, words[1])
            have = os.path.getsize(path) if os.path.exists(path) else 0
            self.kept += have > 0
            if have < size:
                lacks.append((words[1], have, size))
        return lacks

    def receive(self, name, offset, size, breaks):
        left = self.follower.file_begin(name, offset)
        if left != size - offset:
            raise Failure("%s: %d bytes from %d, not %d" % (name, left, offset, size))
        with open(os.path.join(self.path, name), "ab") as file:
            while left > 0:
                if breaks and self.rng.random() < 0.2:
                    raise Over("broken")
                piece = self.follower.bytes(min(left, 30000))
                file.write(piece)
                left -= len(piece)

    def once(self, breaks):
        self.follower.connect(self.world.daemon.address)
        manifest = self.follower.copy()
        lacks = self.wanted(manifest)
        for name, offset, _ in lacks:
            self.follower.file(name, offset)
        for name, offset, size in lacks:
            self.receive(name, offset, size, breaks)
        return manifest

    def run(self):
        while True:
            try:
                return self.once(self.broken < 8)
            except Over:
                self.broken += 1
                self.follower.close()
                time.sleep(0.1)


def copy(options, rng):
    """A copy that breaks and goes on, then the stream; a daemon with it holds exactly the same."""
    world = World(options, rng, keep="64MiB").serve()
    second = World(options, rng)
    try:
        writer = Writer(world.daemon, rng.random())
        until = time.monotonic() + 60
        while int(world.stats(b"")["dump_files"]) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        writer.pace = COPIED_PACE_S
        fetch = Fetch(world, rng, second.folder.data)
        manifest = fetch.run()
        follower = fetch.follower
        busy = world.follower("three")
        closed_after(busy, "copy 1 rollcall three", "BUSY ")
        words = [line.split(" ") for line in manifest.decode("ascii").splitlines()]
        begin = int(next(line[1] for line in words if line[0] == "journal"))
        epoch = max(int(line[1]) for line in words if line[0] == "history" and int(line[2]) <= begin)
        follower.stream = next(line[1] for line in words if line[0] == "stream")
        follower.begin, follower.epoch = begin, epoch
        if begin == 0 or follower.follow()[0] != "STREAM":
            raise Failure("no stream after a copy")
        again = world.follower("three")
        again.copy()  # the place is free again
        again.close()
        follower.take_until(lambda: follower.end() > begin + (2 << 20))
        writer.finish()
        follower.take_until(caught_up(follower, world))
        expected = [export(world.daemon, space) for space in ("feed", "liked")[:1]]
        build = os.environ.get("ROLLCALL_BUILD", os.path.join(protocol.TOP, "build"))
        subprocess.run([os.path.join(build, "tests", "repl", "segment"), second.folder.data,
                        str(begin), str(epoch)], input=bytes(follower.data), check=True)
        with open(os.path.join(second.folder.data, "MANIFEST"), "wb") as file:
            file.write(manifest)
        owner = os.stat(second.folder.data)
        for name in os.listdir(second.folder.data):
            os.chown(os.path.join(second.folder.data, name), owner.st_uid, owner.st_gid)
        second.serve()
        found = [export(second.daemon, space) for space in ("feed", "liked")[:1]]
        if found != expected:
            raise Failure("the copy holds something else: %d and %d records" % (
                len(found[0]), len(expected[0])))
        return "broken %d times, %d files kept; %d records equal" % (
            fetch.broken, fetch.kept, len(found[0]))
    finally:
        world.end()
        second.end()


PARTS = {"stream": stream, "behind": behind, "refusals": refusals, "reigns": reigns, "no_name": no_name,
         "secure": secure, "copy": copy}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(PARTS))
    options = parser.parse_args()
    seed = seed_of_run(options.seed)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for name, part in PARTS.items():
        if options.only in (None, name):
            print("%s: %s" % (name, part(options, random.Random(seed))), flush=True)
    print("feed.py: all is well, seed %d" % seed)


if __name__ == "__main__":
    try:
        main()
    except (Failure, Wrong, Over) as problem:
        print("FAILED: %s" % problem)
        sys.exit(1)
