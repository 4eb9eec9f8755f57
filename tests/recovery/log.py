#!/usr/bin/env python3
"""Does a log that nobody reads stop nobody?

    tests/recovery/log.py

$ROLLCALLD as in crash.py. Its log is a pipe: it is read until the daemon serves, then filled. Every worker then
logs lines; reads and changes must be answered all the while, also when no further line has room. Read again,
the log says how many were lost, and so do stats and metrics. Full once more, it must not hold up a stop: exit status 0, and what was
acknowledged is there at the next start. Exits 1 at the first thing that is wrong.
"""
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import judge
from victim import Failure, Folder, Victim, answers

VALUES = {"memory": "64MiB", "oldest": "refuse", "table_size": "64KiB", "tables": 2, "dicts": "64KiB",
          "sync": "everysec", "segment": "1MiB", "buffer": "1MiB", "every": "1h", "journal": "64MiB"}
CLIENTS = 8  # dealt to the workers in turn
ANSWER_S = 20  # only a bound, as is the next
STOP_S = 30
BLOCK = 500
BLOCKS_MAX = 2000  # of commands, until the log has no room
TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
PAGE = r"status page on (http://127\.0\.0\.1:\d+/)"
METRIC = "\nrollcall_log_lines_lost_total %d\n"
LOST = r"lines of the log were lost: .* lost=(\d+)"


class Deaf(Victim):
    """A daemon whose log is a pipe."""

    def open_log(self):
        self.said = b""
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        return os.fdopen(writer, "wb")

    def output(self):
        """Reads what is in the pipe."""
        try:
            while piece := os.read(self.reader, 1 << 16):
                self.said += piece.replace(b"\0", b"")
        except BlockingIOError:
            pass
        return self.said.decode("utf-8", "replace")

    def fill(self):
        """By a descriptor of its own: the daemon's waits where there is no room."""
        pipe = os.open("/proc/self/fd/%d" % self.log.fileno(), os.O_WRONLY | os.O_NONBLOCK)
        for size in (4096, 1):
            try:
                while True:
                    os.write(pipe, bytes(size))
            except BlockingIOError:
                pass
        os.close(pipe)

    def must_say(self, pattern):
        found = self.says(pattern)
        if not found:
            raise Failure("the log does not say '%s'" % pattern)
        return found

    def connect(self):
        client = super().connect()
        client.socket.settimeout(ANSWER_S)
        return client

    def lost(self):
        return int(self.connect().stats(b"")["log_lost"])


def lines(client, commands):
    """The answers to commands of one line each."""
    client.socket.sendall(b"".join(commands))
    return answers(client, len(commands))


def close_some(daemon):
    """Each worker logs that it closes a client."""
    for _ in range(CLIENTS):
        with socket.create_connection(daemon.address, ANSWER_S) as stranger:
            stranger.sendall(TLS_HELLO)
            while stranger.recv(1 << 16):
                pass


def use_all(clients, value):
    """Every connection changes its own id and reads it."""
    for at, client in enumerate(clients, 1):
        command = b"set feed:%d.like 0 0 %d\r\n%d\r\n" % (at, len(b"%d" % value), value)
        if lines(client, [command]) != [b"STORED"]:
            raise Failure("a change is refused")
        if b"\r\n%d\r\n" % value not in client.ask(b"get feed:%d.like\r\n" % at):
            raise Failure("feed:%d is not what was set" % at)


def overrun(daemon, client):
    """Each command is logged, until lines are lost."""
    lines(client, [b"verbosity 2\r\n"])
    for _ in range(BLOCKS_MAX):
        lines(client, [b"incr feed:1.read 1\r\n"] * BLOCK)
        if daemon.lost() > 0:
            return
    raise Failure("no line of the log is lost")


def stop(daemon):
    daemon.signal(signal.SIGTERM)
    try:
        code = daemon.process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        raise Failure("it does not stop") from None
    if code != 0:
        raise Failure("it ended with %d" % code)


def try_it(daemon):
    daemon.serve()
    daemon.must_say("listening on")
    page = daemon.must_say(PAGE)[1]
    clients = [daemon.connect() for _ in range(CLIENTS)]
    daemon.fill()
    close_some(daemon)
    use_all(clients, 1)
    overrun(daemon, clients[0])
    use_all(clients, 2)
    lines(clients[0], [b"verbosity 0\r\n"])
    said = int(daemon.must_say(LOST)[1])
    if daemon.lost() != said:
        raise Failure("%d lines were lost, the log says %d" % (daemon.lost(), said))
    with urllib.request.urlopen(page + "metrics", timeout=ANSWER_S) as metrics:
        if METRIC % said not in metrics.read().decode():
            raise Failure("the metrics do not say that %d lines were lost" % said)
    daemon.must_say("a client was closed")
    daemon.fill()
    lines(clients[0], [b"verbosity 1\r\n"])
    use_all(clients, 3)
    stop(daemon)


def check(folder):
    daemon = Victim(folder)
    try:
        daemon.serve()
        found = daemon.connect().counters(range(1, CLIENTS + 1))
        if [found[one][2] for one in sorted(found)] != [3] * CLIENTS:
            raise Failure("not all that was acknowledged is there: %s" % found)
    finally:
        daemon.kill()


def main():
    folder = Folder()
    folder.configure(VALUES)
    with open(folder.config, "a", encoding="ascii") as file:
        file.write("admin: 127.0.0.1:0\n")
    daemon = Deaf(folder)
    try:
        try_it(daemon)
        check(folder)
        print("ok")
        return 0
    except (Failure, judge.Lost, OSError) as problem:
        print("FAIL: %s\n%s" % (problem, daemon.output()[-2000:]))
        return 1
    finally:
        daemon.kill()
        folder.remove()


if __name__ == "__main__":
    sys.exit(main())
