"""servers.py: the servers that are compared: started on a free port of 127.0.0.1, pinned, ended by id."""
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "protocol"))
from ports import free_port  # noqa: E402

START_S = 60
END_S = 20
POLL_S = 0.01
SETTLE_S = 0.25  # between two looks at resident memory that must agree
SETTLE_TIMES = 40
USER = "nobody"
CONNECTIONS = 1024
SPARE_FILES = 200
PEER_MEMORY_MIB = 65536  # memcached takes it only as it needs it

CONFIG = """threads: %(threads)d
memory: %(memory)d
max-connections: %(connections)d
spaces:
%(spaces)s"""
FEED = """  feed:
    kind: counter
    slots: {repost: 20, comment: 20, like: 20, read: 20}
    role: store
    oldest: refuse
    late-room: %(late_room)s
    id-spacing: %(spacing)s
    table-size: %(table_size)d
    tables: %(tables)d
"""
LIKED = """  liked:
    kind: phantom
    false-positives: 0.001
    role: store
    oldest: refuse
    late-room: %(late_room)s
    id-spacing: %(spacing)s
    table-size: %(table_size)d
    tables: %(tables)d
"""
TABLE_MIN = 65536
PORT = "{port}"  # in the command of a peer


class Failure(Exception):
    """A server or a run did not do what it must."""


class Skip(Exception):
    """What cannot be measured here, and why."""


def memory_available():
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(r"MemAvailable:\s+(\d+) kB", file.read()).group(1)) * 1024


def files_allowed(wanted):
    """Raises the limit of open files as far as it goes; whether it is enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted += SPARE_FILES
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    return min(wanted, hard) >= wanted


def as_user(command):
    """memcached and rollcalld do not run as root."""
    return command + (["-u", USER] if os.geteuid() == 0 else [])


def version_of(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=END_S)
    except OSError as problem:
        return str(problem)
    return done.stdout.splitlines()[0].strip() if done.stdout else "?"


class Server:
    """A program that listens on 127.0.0.1. `cores`: those it may run on."""

    def __init__(self, command, port, cores):
        self.log = tempfile.TemporaryFile()
        self.port = port
        pinned = ["taskset", "-c", ",".join(map(str, cores))] + command
        # A group of its own: Ctrl-C reaches us alone, who then end it.
        self.process = subprocess.Popen(pinned, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, start_new_session=True)
        self.pid = self.process.pid
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise

    def wait(self):
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                self.connect().close()
                return
            except OSError:
                time.sleep(POLL_S)
        raise Failure("%s did not start:\n%s" % (self.process.args[3], self.output()))

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), END_S)

    def output(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def resident(self):
        with open("/proc/%d/status" % self.pid, encoding="ascii", errors="replace") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) * 1024

    def resident_settled(self):
        """Resident bytes once they stay: hash tables grow behind the last answer."""
        before = self.resident()
        for _ in range(SETTLE_TIMES):
            time.sleep(SETTLE_S)
            now = self.resident()
            if abs(now - before) <= before // 1000:
                return now
            before = now
        return before

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.log.close()

    def stats(self, what=""):
        """Answers of `stats` as a table."""
        with self.connect() as client:
            client.sendall(b"stats %s\r\n" % what.encode() if what else b"stats\r\n")
            text = b""
            while not text.endswith(b"END\r\n"):
                got = client.recv(1 << 16)
                if not got:
                    raise Failure("stats %s: %r" % (what, text))
                text += got
        return dict(line.split(" ", 2)[1:] for line in text.decode().splitlines()[:-1])


def power_of_two(at_least):
    size = TABLE_MIN
    while size < at_least:
        size *= 2
    return size


class Shape:
    """Spaces for so many ids: about as many as `tables` nearly full, and one to spare."""

    def __init__(self, ids, spacing, tables=4, late_room="auto"):
        self.feed = power_of_two(ids * 16 // tables)
        self.liked = power_of_two(ids * 2 // tables)
        self.feed_tables = ids * 33 // 2 // self.feed + 2
        self.liked_tables = ids * 5 // self.liked + 4
        self.spacing, self.late_room = spacing, late_room

    def space(self, text, size, tables):
        return text % {"late_room": self.late_room, "spacing": self.spacing, "table_size": size,
                       "tables": tables}

    def text(self):
        """Both spaces; without tables one is left out."""
        return ((self.space(FEED, self.feed, self.feed_tables) if self.feed_tables else "")
                + (self.space(LIKED, self.liked, self.liked_tables) if self.liked_tables else ""))

    def bytes(self):
        return self.feed * self.feed_tables + self.liked * self.liked_tables


class Places:
    """Where the programs are, and what they write."""

    def __init__(self, build, work, peers=()):
        """peers: (name, the words that start it; "{port}" is where it is to listen)."""
        self.peers = dict(peers)
        self.rollcalld = os.path.join(build, "rollcalld")
        self.load = os.path.join(build, "tests", "load", "load")
        self.null = os.path.join(build, "tests", "bench", "null_server")
        self.work = work

    def versions(self):
        versions = {"rollcalld": version_of([self.rollcalld, "-V"]),
                    "memcached": version_of(["memcached", "-V"]),
                    "redis": version_of(["redis-server", "--version"])}
        versions.update({name: " ".join(words) for name, words in self.peers.items()})
        return versions

    def start_rollcalld(self, shape, cores, threads=1, connections=CONNECTIONS):
        config = tempfile.NamedTemporaryFile("w", dir=self.work, suffix=".yaml", delete=False)
        with config:
            config.write(CONFIG % {
                "threads": threads, "connections": connections, "spaces": shape.text(),
                "memory": 2 * shape.bytes() + (512 << 20) + connections * 65536})
        os.chmod(config.name, 0o644)
        port = free_port()
        return Server(as_user([self.rollcalld, "--config", config.name, "-l",
                               "127.0.0.1:%d" % port]), port, cores)

    def start_memcached(self, cores, threads=1, connections=CONNECTIONS):
        port = free_port()
        return Server(as_user(["memcached", "-t", str(threads), "-c", str(connections), "-U", "0",
                               "-m", str(PEER_MEMORY_MIB), "-l", "127.0.0.1", "-p", str(port)]),
                      port, cores)

    def start_redis(self, cores):
        port = free_port()
        return Server(["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "",
                       "--appendonly", "no", "--io-threads", "1", "--daemonize", "no",
                       "--dir", self.work], port, cores)

    def start_peer(self, name, cores):
        port = free_port()
        return Server([word.replace(PORT, str(port)) for word in self.peers[name]], port, cores)

    def start_null(self, words, cores):
        port = free_port()
        return Server([self.null] + [str(word) for word in words] + ["--port", str(port)], port,
                      cores)
