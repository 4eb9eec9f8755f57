#!/usr/bin/env python3
"""Runs protocol scripts against a daemon: what is sent, what must come back, which figures change.

A script has five kinds of line; a line that begins with # is a comment.

    send BYTES        written to the connection as they are: no line end is added
    expect BYTES      exactly these come next; empty: nothing has come, and the connection still
                      answers (a `mn` is sent and must be what comes back)
    each A B BYTES => BYTES
                      sends and expects once for each number from A to B, which is $(id) there,
                      many at a time; no other marks but $(TEXT*N). BYTES may be empty:
                      nothing is expected
    stat NAME +N      the figure NAME of `stats` grew by N since the last stat lines (or the start);
                      =N: it is N now; >N: it is more than N now. ARGS/NAME: a figure of `stats ARGS`
    await NAME >N     waits until a stat line like this holds: =N, >N

In BYTES: \\r \\n \\t \\\\ \\xHH, and
    $(TEXT*N)   TEXT, N times
    $(?NAME)    expect only: any decimal number, remembered as NAME
    $(NAME)     the number remembered
    $(any)      expect only: any bytes, as few as possible
    $(closed)   expect only, alone: the server closes. The next send opens another connection

A first comment `# args: …` adds arguments to the daemon's command line, where $HERE is this folder and $DATA a new
directory that is removed afterwards; `# exit: end` says that the
daemon ends by itself. Every script runs against a daemon of its own, once for each way of splitting
what is sent.
"""

import argparse
import os
import random
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.append(HERE)
from ports import free_port  # noqa: E402

ANSWER_S = 20  # the longest wait for one answer
START_S = 30
EARLY_KIB = 64 << 10  # resident of 1 GiB: much is still to come
EARLY_TRIES = 3
POLL_S = 0.005
DATA = "$DATA"
USER = "nobody"  # what a daemon that root starts becomes
BYTEWISE_MAX = 4 << 10  # longer sends are split at random: a call a byte is what these tests cost
EACH_IDS = 5000  # numbers of an `each` that are sent together, but for
EACH_HEAD = 500  # the first of them: the others are more of the same
SPLITS = ("none", "byte", "random")
MARK = re.compile(rb"\$\(((?:[^()\\]|\\.|\([^()]*\))*)\)", re.S)
ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.S)


class Mismatch(Exception):
    """The server did not do what the line says."""


def unescape(text):
    def one(match):
        code = match.group(1)
        if code[:1] == b"x" and len(code) == 3:
            return bytes([int(code[1:], 16)])
        named = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"\\": b"\\", b"$": b"$"}
        if code not in named:
            raise ValueError("unknown escape \\" + code.decode("latin-1"))
        return named[code]

    return ESCAPE.sub(one, text)


def parts(text):
    """Cuts BYTES into ('bytes', b'…') and ('mark', b'…')."""
    at = 0
    for match in MARK.finditer(text):
        if match.start() > at:
            yield "bytes", unescape(text[at : match.start()])
        mark = match.group(1)
        repeat = re.fullmatch(rb"(.*)\*(\d+)", mark, re.S)
        if repeat:
            yield "bytes", unescape(repeat.group(1)) * int(repeat.group(2))
        else:
            yield "mark", mark
        at = match.end()
    if at < len(text):
        yield "bytes", unescape(text[at:])


def shown(data, most=300):
    text = data.decode("latin-1").encode("unicode_escape").decode()
    return text if len(text) <= most else text[:most] + "… (%d bytes)" % len(data)


class Expectation:
    """BYTES of an expect line, matched against the beginning of what has come."""

    def __init__(self, text, known):
        self.plain = b""  # the bytes in front of the first mark: cheap to compare
        self.pattern = None
        self.same = 0  # so many of them have been compared: what has come only grows
        rest = b""
        for kind, value in parts(text):
            if kind == "mark" and value in known:
                kind, value = "bytes", known[value]
            if kind == "mark":
                self.pattern = True
                rest += self.mark(value)
            elif self.pattern is None:
                self.plain += value
            else:
                rest += re.escape(value)
        if self.pattern:
            self.pattern = re.compile(rest, re.S)

    @staticmethod
    def mark(value):
        if value == b"any":
            return b".*?"
        if value[:1] == b"?":
            return b"(?P<" + value[1:] + rb">\d+)(?!\d)"
        raise ValueError("nothing is remembered as " + value.decode("latin-1"))

    def match(self, data):
        """(bytes matched, remembered); None: not yet. Mismatch: never."""
        front = min(len(data), len(self.plain))
        if data[self.same : front] != self.plain[self.same : front]:
            raise Mismatch
        self.same = front
        if front < len(self.plain):
            return None
        if self.pattern is None:
            return front, {}
        found = self.pattern.match(data, front)
        if not found:
            return None
        return found.end(), {name.encode(): value for name, value in found.groupdict().items()}


class Connection:
    """A client that reads while it writes, so that neither side can block the other."""

    def __init__(self, address, source=None):
        """source: the address it comes from, by default whichever."""
        self.socket = socket.create_connection(address, ANSWER_S, source and (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.poll = select.poll()  # of one socket it costs less than a selector, which counts: a byte a call
        self.came = bytearray()
        self.ended = False

    def close(self):
        self.socket.close()

    def step(self, data, until):
        """Waits for the socket, then reads and writes once. Returns how much of data was written."""
        self.poll.register(self.socket, select.POLLIN | (select.POLLOUT if data else 0))
        ready = self.poll.poll(1000 * max(0.0, until - time.monotonic()))
        if not ready:
            raise Mismatch("timeout")
        sent, events = 0, ready[0][1]  # an error, or a hang-up, is met by either call
        try:
            if events & ~select.POLLOUT:
                piece = self.socket.recv(1 << 18)
                self.came += piece
                self.ended = not piece
            if data and events & ~select.POLLIN and not self.ended:
                sent = self.socket.send(data)
        except (ConnectionResetError, BrokenPipeError):
            self.ended = True
        except BlockingIOError:
            pass
        return sent

    def send(self, pieces):
        for piece in pieces:
            view = memoryview(piece)
            until = time.monotonic() + ANSWER_S
            while view and not self.ended:
                view = view[self.step(view, until) :]
            if self.ended:
                return

    send_more = send

    def expect(self, expectation):
        until = time.monotonic() + ANSWER_S
        while True:
            found = expectation.match(self.came)
            if found:
                del self.came[: found[0]]
                return found[1]
            if self.ended:
                raise Mismatch("closed")
            self.step(b"", until)

    def expect_closed(self):
        until = time.monotonic() + ANSWER_S
        while not self.ended:
            self.step(b"", until)
        if self.came:
            raise Mismatch


def split(data, how, rng):
    if how == "none":
        return [data]
    if how == "byte" and len(data) <= BYTEWISE_MAX:
        return [data[i : i + 1] for i in range(len(data))]
    pieces, at = [], 0
    while at < len(data):
        length = rng.choice((1, 2, 5, 17, 100, 1448, 5000, 40000))
        pieces.append(data[at : at + length])
        at += length
    return pieces


class Daemon:
    """A daemon of this run's own on a free port, or one that runs already (--connect)."""

    def __init__(self, options, arguments):
        self.process = None
        self.log = self.open_log()
        if options.connect:
            host, port = options.connect.rsplit(":", 1)
            self.address = (host, int(port))
            return
        self.address = ("127.0.0.1", free_port())
        program = os.environ.get("ROLLCALLD", os.path.join(TOP, "build", "rollcalld"))
        command = [program, "--config", options.config, "-l", "127.0.0.1:%d" % self.address[1]]
        if os.geteuid() == 0:
            command += ["-u", USER]
        self.process = subprocess.Popen(command + arguments, stdout=self.log, stderr=self.log)
        self.wait()

    @staticmethod
    def open_log():
        return tempfile.TemporaryFile()

    def wait(self):
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(self.address, 1).close()
                return
            except OSError:
                time.sleep(0.01)
        problem = "the daemon did not start:\n" + self.output()
        self.kill()
        raise Mismatch(problem)

    def says(self, pattern):
        """What of the log matches; a thread of the daemon's writes it. None: nothing does, in time."""
        until = time.monotonic() + ANSWER_S
        while not (found := re.search(pattern, self.output())) and time.monotonic() < until:
            time.sleep(0.01)
        return found

    def output(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self, by_itself):
        """Ends the daemon; a text if it did not end well."""
        if self.process is None:
            return None
        if not by_itself:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(START_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return "the daemon did not end:\n" + self.output()
        return None if code == 0 else "the daemon ended with %d:\n%s" % (code, self.output())


class Run:
    """One script, one way of splitting, one daemon."""

    def __init__(self, address, how, rng):
        self.address, self.how, self.rng = address, how, rng
        self.connection = None
        self.known = {}
        self.figures = {}  # arguments of stats -> figures at the last stat lines

    def stats(self, arguments):
        with socket.create_connection(self.address, ANSWER_S) as control:
            control.sendall(b"stats" + (b" " + arguments if arguments else b"") + b"\r\n")
            data = b""
            while not data.endswith(b"END\r\n"):
                piece = control.recv(1 << 16)
                data += piece
                if not piece or data.startswith((b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")):
                    raise Mismatch("stats answers " + shown(data))
        rows = (line.split(b" ", 2) for line in data.split(b"\r\n"))
        return {row[1]: row[2] for row in rows if len(row) == 3}

    def first_figures(self, lines):
        for _, verb, text in lines:
            if verb in (b"stat", b"await"):
                arguments = text.rpartition(b"/")[0]
                self.figures.setdefault(arguments, None)
        for arguments in self.figures:
            self.figures[arguments] = self.stats(arguments)

    def send(self, text):
        data = b""
        for kind, value in parts(text):
            data += value if kind == "bytes" else self.known[value]
        if self.connection is None:
            self.connection = Connection(self.address)
        self.connection.send(split(data, self.how, self.rng))

    def expect(self, text):
        if self.connection is None:
            self.connection = Connection(self.address)
        if text == b"$(closed)":
            self.connection.expect_closed()
            self.connection.close()
            self.connection = None
        elif text == b"":
            self.connection.send([b"mn\r\n"])
            self.connection.expect(Expectation(rb"MN\r\n", {}))
        else:
            self.known.update(self.connection.expect(Expectation(text, self.known)))

    def each(self, text):
        first, last, rest = text.split(None, 2)
        ask, _, answer = rest.partition(b" =>")
        ask, answer = list(parts(ask)), list(parts(answer[1:]))
        for ids, more in self.blocks(int(first), int(last)):
            if self.connection is None:
                self.connection = Connection(self.address)
            send = self.connection.send_more if more else self.connection.send
            send(split(self.filled(ask, ids), self.how, self.rng))
            answers = Expectation(b"", {})
            answers.plain = self.filled(answer, ids)
            try:
                self.connection.expect(answers)
            except Mismatch as problem:
                raise Mismatch("%s, of %d to %d" % (problem or "another answer", ids[0], ids[-1]))

    @staticmethod
    def blocks(first, last):
        """(numbers, whether they are more of the same)"""
        for begin in range(first, last + 1, EACH_IDS):
            end = min(last + 1, begin + EACH_IDS)
            middle = min(end, begin + EACH_HEAD)
            yield range(begin, middle), False
            if middle < end:
                yield range(middle, end), True

    @staticmethod
    def filled(pieces, ids):
        """The bytes of all ids together."""
        if any(kind == "mark" and value != b"id" for kind, value in pieces):
            raise ValueError("each: no mark but $(id)")
        of_one = b"".join(
            b"%d" if kind == "mark" else value.replace(b"%", b"%%") for kind, value in pieces)
        marks = sum(kind == "mark" for kind, _ in pieces)
        return b"".join([of_one % ((number,) * marks) for number in ids])

    def stat(self, text, fresh):
        name, change = text.rsplit(None, 1)
        arguments, _, name = name.rpartition(b"/")
        now = fresh.setdefault(arguments, None) or self.stats(arguments)
        fresh[arguments] = now
        if name not in now:
            raise Mismatch("there is no such figure")
        value = int(now[name])
        grown = value - int(self.figures[arguments][name])
        tests = {b"=": lambda n: value == n, b">": lambda n: value > n}
        if change[:1] in tests:
            good = tests[change[:1]](int(change[1:]))
        else:
            good = grown == int(change)
        if not good:
            raise Mismatch("it is %d and grew by %d" % (value, grown))

    def wait(self, text):
        until = time.monotonic() + ANSWER_S
        while True:
            try:
                return self.stat(text, {})
            except Mismatch:
                if time.monotonic() > until:
                    raise
            time.sleep(POLL_S)

    def line(self, verb, text, fresh):
        if verb != b"stat" and fresh:
            self.figures.update(fresh)
            fresh.clear()
        if verb == b"send":
            self.send(text)
        elif verb == b"expect":
            self.expect(text)
        elif verb == b"each":
            self.each(text)
        elif verb == b"await":
            self.wait(text)
        else:
            self.stat(text, fresh)

    def all(self, lines, lives):
        """Runs the lines, and a last empty expect where the daemon lives; a text if one fails."""
        fresh = {}
        self.first_figures(lines)
        for number, verb, text in lines + [(lines[-1][0], b"expect", b"")] * lives:
            try:
                self.line(verb, text, fresh)
            except (Mismatch, OSError) as problem:
                came = bytes(self.connection.came) if self.connection else b""
                return "line %d: %s %s\n    %s; what came: %s" % (
                    number, verb.decode(), shown(text), str(problem) or "something else",
                    shown(came) or "nothing")
        return None

    def close(self):
        if self.connection is not None:
            self.connection.close()


def read_script(path):
    """The script's lines as (number, verb, text), the daemon's further arguments, ends by itself."""
    lines, arguments, by_itself = [], [], False
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip(b"\n")
            verb, _, text = line.partition(b" ")
            if line.startswith(b"# args:"):
                arguments = shlex.split(line[len(b"# args:") :].decode())
            elif line.startswith(b"# exit: end"):
                by_itself = True
            elif line.startswith(b"#") or not line.strip():
                continue
            elif verb not in (b"send", b"expect", b"each", b"stat", b"await"):
                raise SystemExit("%s:%d: no kind of line" % (path, number))
            else:
                lines.append((number, verb, text))
    if not lines:
        raise SystemExit("%s: an empty script" % path)
    return lines, arguments, by_itself


def run_script(path, how, options):
    lines, arguments, by_itself = read_script(path)
    arguments = [word.replace("$HERE", HERE) for word in arguments]
    if not any(DATA in word for word in arguments):
        return run_lines(path, lines, arguments, by_itself, how, options)
    with tempfile.TemporaryDirectory(prefix="rollcall-protocol-") as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        arguments = [word.replace(DATA, folder) for word in arguments]
        return run_lines(path, lines, arguments, by_itself, how, options)


def run_lines(path, lines, arguments, by_itself, how, options):
    rng = random.Random("%s %d" % (os.path.basename(path), options.seed))
    try:
        daemon = Daemon(options, arguments)
    except (Mismatch, OSError) as problem:
        return str(problem)
    run = Run(daemon.address, how, rng)
    try:
        problem = run.all(lines, not by_itself)
    except BaseException:
        if daemon.process is not None:
            daemon.kill()
        raise
    run.close()
    ended = daemon.stop(by_itself and problem is None)
    return problem or ended


class Early(Daemon):
    """One that is not waited for but until some of its memory is resident."""

    def wait(self):
        until = time.monotonic() + START_S
        while self.resident() < EARLY_KIB:
            if time.monotonic() > until or self.process.poll() is not None:
                problem = "little memory became resident:\n" + self.output()
                self.kill()
                raise Mismatch(problem)
            time.sleep(0.002)

    def resident(self):
        try:
            with open("/proc/%d/status" % self.process.pid, encoding="ascii") as file:
                return int(re.search(r"^VmRSS:\s+(\d+)", file.read(), re.M)[1])
        except (OSError, TypeError):  # it ends, and has no memory any more
            return 0


def stop_early(options):
    """A SIGTERM before the first client is served, while memory is made resident: a clean end."""
    large = ["memory=1GiB", "spaces.feed.table-size=256MiB", "spaces.feed.role=cache"]
    for _ in range(EARLY_TRIES):  # a machine with much else to do may be too late for one
        try:
            daemon = Early(options, [word for one in large for word in ("--set", one)])
        except Mismatch as problem:
            return str(problem)
        early = "listening" not in daemon.output()
        problem = daemon.stop(False)
        if early or problem is not None:
            return problem
    return "each of %d daemons served before it was stopped" % EARLY_TRIES


def main():
    parser = argparse.ArgumentParser(description="Runs protocol scripts; see the top of this file.")
    parser.add_argument("scripts", nargs="*", help="default: all *.txt beside this file")
    parser.add_argument("--split", choices=SPLITS + ("all",), default="all")
    parser.add_argument("--seed", type=int, default=1, help="of the random splits")
    parser.add_argument("--config", default=os.path.join(HERE, "scripts.yaml"))
    parser.add_argument("--connect", metavar="HOST:PORT", help="a server that runs already")
    options = parser.parse_args()
    scripts = options.scripts or sorted(
        os.path.join(HERE, name) for name in os.listdir(HERE) if name.endswith(".txt"))
    passed = failed = 0
    for path in scripts:
        for how in SPLITS if options.split == "all" else (options.split,):
            problem = run_script(path, how, options)
            name = "%s (split: %s)" % (os.path.basename(path), how)
            print("ok   " + name if problem is None else "FAIL %s\n  %s" % (name, problem))
            sys.stdout.flush()
            passed += problem is None
            failed += problem is not None
    if not options.scripts and not options.connect:
        problem = stop_early(options)
        print("ok   stop early" if problem is None else "FAIL stop early\n  " + problem)
        passed += problem is None
        failed += problem is not None
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
