#!/usr/bin/env python3
"""User-space instructions a request costs, counted by callgrind: a measure that hardly wobbles.

    tests/bench/instructions.py [--check | --renew] [--requests N] [--ids N]

One daemon with one worker runs under callgrind, with a million records of 4 x 20 bits (ids of seconds <<
22, 19 digits); one connection asks, request by request, and each kind of request is counted alone: of all
threads, libevent and libc included, without the kernel. So are increments with a journal (everysec), and
the null server (null_server.c), which answers without looking. Prints a table of each codec and one of the
folders the text requests are spent in. Misses are those of callgrind's simulated cache (first level) and
of its branch predictor.

--check compares with tests/bench/instructions.txt and exits 1 where a figure is more than BOUND above it,
or as far below: then what was won is to be held. Of increments with a journal, which wait for another
thread, it is WAITS_BOUND. --renew writes that file: do it in the commit that
changes a figure on purpose, and say why there. The file names the compiler; with another one nothing is
compared (exit 77). $ROLLCALLD, $ROLLCALL_BUILD as in tests/recovery.
"""
import argparse
import collections
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
FIGURES = os.path.join(HERE, "instructions.txt")
BUILD = os.environ.get("ROLLCALL_BUILD", os.path.join(TOP, "build"))
DAEMON = os.environ.get("ROLLCALLD", os.path.join(BUILD, "rollcalld"))
NULL_SERVER = os.path.join(BUILD, "tests", "bench", "null_server")

BOUND = 0.02
WAITS_BOUND = 0.1  # the journal may have an answer ready before the worker sleeps, or wakes it
SKIPPED = 77
START_S, ANSWER_S, COMMAND_S = 120, 60, 120
PARTS = 3  # of the requests of a case, each counted alone
WARM = 50  # requests before those that are counted
PAGE, PIPELINED = 20, 16
A_SECOND = 50  # ids
FIRST_SECOND = 1 << 39  # << 22: 19 digits
NULL_CASES = {"page": ["--key-bytes", "24", "--value-bytes", "9"], "incr": []}  # the null server's
CHECKED_IDS = 20000  # of the existence space
MEMBER = "u7"
FILL_AT_ONCE = 500
SEED = 1
CONFIG = """threads: 1
memory: 512MiB
%(data)sspaces:
  feed:
    kind: counter
    slots: {repost: 20, comment: 20, like: 20, read: 20}
    role: store
    oldest: refuse
    table-size: 32MiB
    tables: 2
  liked:
    kind: phantom
    false-positives: 0.001
    role: store
    oldest: refuse
    table-size: 1MiB
    tables: 2
"""
JOURNAL = "data: %s\njournal: {sync: everysec}\n"

# Where the bytes of an answer end: told by the last of them, or by how many lines there are.
Case = collections.namedtuple("Case", "name keys codec request done")


def record_id(number):
    return ((FIRST_SECOND + number // A_SECOND) << 22) + number % A_SECOND


# ---- what is asked ----


def ends(text):
    return lambda answer: answer.endswith(text)


def lines(count):
    return lambda answer: answer.count(b"\r\n") == count


def frames(count):
    """Binary: so many whole answers."""
    def done(answer):
        at = found = 0
        while at + 24 <= len(answer):
            at += 24 + struct.unpack(">I", answer[at + 8:at + 12])[0]
            found += 1
        return found == count and at == len(answer)
    return done


def frame(opcode, key=b"", extras=b"", value=b""):
    body = extras + key + value
    return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, len(body), 0, 0) + body


OP_SET, OP_INCREMENT, OP_NOOP, OP_GETK, OP_GETKQ = 0x01, 0x05, 0x0a, 0x0c, 0x0d
NO_CREATION = struct.pack(">QQI", 1, 0, 0xffffffff)


def feed(number, slot=".like"):
    return b"feed:%d%s" % (record_id(number), slot.encode())


def liked(number):
    return b"liked:%d:%s" % (record_id(number), MEMBER.encode())


def cases(ids):
    """Every kind of request, of each codec; each request of a kind is of other random ids."""
    rng = random.Random(SEED)
    some = lambda count, most=ids: [rng.randrange(most) for _ in range(count)]
    record = b"7,8,%d,1000" % 9
    records = lambda: [feed(n, "") for n in some(PAGE)]
    checks = lambda: [liked(n) for n in some(PAGE, CHECKED_IDS)]
    one = lambda: feed(some(1)[0])
    whole = lambda: feed(some(1)[0], "")
    get = lambda keys: b"get " + b" ".join(keys) + b"\r\n"
    mg = lambda keys: b"".join(b"mg %s v k q\r\n" % key for key in keys) + b"mn\r\n"
    getkq = lambda keys: b"".join(frame(OP_GETKQ, key) for key in keys) + frame(OP_NOOP)
    incr = lambda: b"incr %s 1\r\n" % one()
    ma = lambda: b"ma %s v\r\n" % one()
    increment = lambda: frame(OP_INCREMENT, one(), NO_CREATION)
    set_record = lambda: b"set %s 0 0 %d\r\n%s\r\n" % (whole(), len(record), record)
    ms = lambda: b"ms %s %d\r\n%s\r\n" % (whole(), len(record), record)
    binary_set = lambda: frame(OP_SET, whole(), struct.pack(">II", 0, 0), record)
    return [
        Case("page", PAGE, "text", lambda: get(records()), ends(b"END\r\n")),
        Case("page", PAGE, "meta", lambda: mg(records()), ends(b"MN\r\n")),
        Case("page", PAGE, "binary", lambda: getkq(records()), frames(PAGE + 1)),
        Case("checks", PAGE, "text", lambda: get(checks()), ends(b"END\r\n")),
        Case("checks", PAGE, "meta", lambda: mg(checks()), ends(b"MN\r\n")),
        Case("checks", PAGE, "binary", lambda: getkq(checks()), frames(PAGE + 1)),
        Case("get", 1, "text", lambda: get([one()]), ends(b"END\r\n")),
        Case("get", 1, "meta", lambda: b"mg %s v\r\n" % one(), lines(2)),
        Case("get", 1, "binary", lambda: frame(OP_GETK, one()), frames(1)),
        Case("incr", 1, "text", incr, lines(1)),
        Case("incr", 1, "meta", ma, lines(2)),
        Case("incr", 1, "binary", increment, frames(1)),
        Case("incrs", PIPELINED, "text", lambda: b"".join(incr() for _ in range(PIPELINED)),
             lines(PIPELINED)),
        Case("incrs", PIPELINED, "meta", lambda: b"".join(ma() for _ in range(PIPELINED)),
             lines(2 * PIPELINED)),
        Case("incrs", PIPELINED, "binary", lambda: b"".join(increment() for _ in range(PIPELINED)),
             frames(PIPELINED)),
        Case("set", 1, "text", set_record, lines(1)),
        Case("set", 1, "meta", ms, lines(1)),
        Case("set", 1, "binary", binary_set, frames(1)),
    ]


# ---- who is asked ----


class Counted:
    """A server under callgrind, which counts between begin() and end()."""

    def __init__(self, folder, command, ready):
        self.folder = folder
        self.log = open(os.path.join(folder, "log"), "w+b")
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--cache-sim=yes", "--branch-sim=yes",
             "--callgrind-out-file=" + os.path.join(folder, "out")] + command,
            stdout=self.log, stderr=self.log, cwd=folder)
        self.address = ("127.0.0.1", self.wait_port(ready))
        self.socket = None
        self.connect()
        self.dumps = 0

    def connect(self):
        """Anew: the first byte of a connection says which codec it is."""
        if self.socket is not None:
            self.socket.close()
        self.socket = socket.create_connection(self.address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(ANSWER_S)

    def wait_port(self, ready):
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            self.log.seek(0)
            found = re.search(ready, self.log.read())
            if found:
                return int(found.group(1))
            time.sleep(0.05)
        self.log.seek(0)
        raise SystemExit("it did not start:\n%s" % self.log.read().decode(errors="replace")[-2000:])

    def ask(self, request, done):
        self.socket.sendall(request)
        answer = b""
        while not done(answer):
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise SystemExit("the server closed after %r" % request[:100])
            answer += piece
        return answer

    def control(self, *words):
        said = subprocess.run(["callgrind_control"] + list(words) + [str(self.process.pid)], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMMAND_S)
        if said.returncode != 0:
            raise SystemExit("callgrind_control: %s" % said.stdout.decode(errors="replace"))

    def count(self, case, requests):
        """Costs of one request: of all, and of each folder. Of some parts of the requests the cheapest: in
        the others a thread that has nothing to do with them was at work as well."""
        self.connect()
        for _ in range(WARM):
            self.ask(case.request(), case.done)
        return min((self.count_part(case, requests // PARTS) for _ in range(PARTS)), key=total)

    def count_part(self, case, requests):
        asked = [case.request() for _ in range(requests)]
        self.control("-z")
        for request in asked:
            self.ask(request, case.done)
        self.dumps += 1
        self.control("--dump=%s" % case.name)
        costs = read_costs(os.path.join(self.folder, "out.%d" % self.dumps))
        return {folder: {name: cost / requests for name, cost in figures.items()}
                for folder, figures in costs.items()}

    def end(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=COMMAND_S)
        self.log.close()


def own_user():
    """What callgrind writes for it belongs to who measures."""
    return ["-u", "root"] if os.getuid() == 0 else []


def start_daemon(folder, journal):
    data = os.path.join(folder, "data")
    config = os.path.join(folder, "config.yaml")
    os.mkdir(data, 0o700)
    with open(config, "w", encoding="ascii") as file:
        file.write(CONFIG % {"data": JOURNAL % data if journal else ""})
    return Counted(folder, [DAEMON, "--config", config, "-l", "127.0.0.1", "-p", "0"] + own_user(),
                   rb"listening on 127\.0\.0\.1:(\d+)")


def fill(server, ids):
    def put(requests):
        for at in range(0, len(requests), FILL_AT_ONCE):
            piece = requests[at:at + FILL_AT_ONCE]
            answer = server.ask(b"".join(piece) + b"mn\r\n", ends(b"MN\r\n"))
            if answer != b"STORED\r\n" * len(piece) + b"MN\r\n":
                raise SystemExit("refused while filling: %r" % answer[:200])
    put([b"set %s 0 0 9\r\n1,2,3,400\r\n" % feed(number, "") for number in range(ids)])
    put([b"set %s 0 0 1\r\n1\r\n" % liked(number) for number in range(CHECKED_IDS)])
    server.control("-i", "on")


# ---- what callgrind wrote ----

EVENTS = {"Ir": "instructions", "D1mr": "misses", "D1mw": "misses", "Bcm": "mispredicted",
          "Bim": "mispredicted"}
FOLDER = re.compile(r"(?:^|/)(src/\w+|counter|phantom|tests/bench)/[^/]*$")
LIBRARIES = (("libevent", "libevent"), ("libc.so", "libc"), ("libjemalloc", "jemalloc"))


def folder_of(file, thing):
    found = FOLDER.search(file)
    if found:
        return found.group(1)
    for part, name in LIBRARIES:
        if part in thing:
            return name
    return "other"


def read_costs(path):
    """folder -> name -> cost, of a file as callgrind writes it; inlined code is its own file's."""
    names = {"file": {}, "object": {}}
    at = {"file": "", "object": ""}
    costs = collections.defaultdict(collections.Counter)
    events, skip = [], False
    place = re.compile(r"^(fl|fi|fe|ob)=(?:\((\d+)\))?\s*(.*)$")
    called = re.compile(r"^(cfi|cfl|cob)=(?:\((\d+)\))?\s*(.*)$")
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = place.match(line) or called.match(line)
            if found:
                kind = "object" if found.group(1).endswith("ob") else "file"
                if found.group(3):
                    names[kind][found.group(2)] = found.group(3)
                if not found.group(1).startswith("c"):
                    at[kind] = names[kind].get(found.group(2), "")
            elif line.startswith("events:"):
                events = line.split()[1:]
            elif line.startswith("calls="):
                skip = True
            elif line[0] in "0123456789+-*" and skip:
                skip = False
            elif line[0] in "0123456789+-*":
                folder = folder_of(at["file"], at["object"])
                for event, cost in zip(events, line.split()[1:]):
                    if event in EVENTS:
                        costs[folder][EVENTS[event]] += int(cost)
    return costs


# ---- what is said ----


def total(costs, name="instructions"):
    return sum(figures.get(name, 0) for figures in costs.values())


def print_codecs(counted):
    print("%-20s %14s %10s %8s %13s" % ("request", "instructions", "a key", "misses", "mispredicted"))
    for (name, keys, codec), costs in counted.items():
        print("%-20s %14.0f %10.0f %8.1f %13.1f" % (
            "%s %s" % (name, codec), total(costs), total(costs) / keys, total(costs, "misses"),
            total(costs, "mispredicted")))


def print_folders(counted):
    texts = {name: costs for (name, _, codec), costs in counted.items() if codec == "text"}
    folders = sorted({folder for costs in texts.values() for folder in costs},
                     key=lambda folder: -texts["page"].get(folder, {}).get("instructions", 0))
    print("\n%-14s" % "text, folder" + "".join("%9s" % name for name in texts))
    for folder in folders:
        print("%-14s" % folder + "".join("%9.0f" % costs.get(folder, {}).get("instructions", 0)
                                         for costs in texts.values()))


def compiler():
    return subprocess.run(os.environ.get("CC", "gcc").split() + ["--version"], stdout=subprocess.PIPE,
                          check=True, text=True).stdout.splitlines()[0]


def figures_of(counted):
    """Those that are the same in each run: one that waits for the journal's thread spins for a while."""
    return {"%s %s" % (name, codec): total(costs) for (name, keys, codec), costs in counted.items()
            if keys > 1 or "journaled" not in name}


def renew(figures):
    by = compiler()
    with open(FIGURES, "w", encoding="ascii") as file:
        file.write("# Instructions a request, and the compiler: tests/bench/instructions.py --renew writes it.\n")
        file.write("compiler %s\n" % by)
        for name, count in figures.items():
            file.write("%-24s %.0f\n" % (name, count))


def read_figures():
    with open(FIGURES, encoding="ascii") as file:
        known = [line.rstrip("\n") for line in file if not line.startswith("#")]
    words = [line.rsplit(None, 1) for line in known[1:]]
    return known[0].split(None, 1)[1], {name.strip(): int(count) for name, count in words}


def check(figures):
    """How many figures are no longer as they were."""
    _, known = read_figures()
    wrong = 0
    for name in sorted(set(known) | set(figures)):
        before, now = known.get(name), figures.get(name)
        bound = WAITS_BOUND if "journaled" in name else BOUND
        if before is None or now is None or abs(now - before) > bound * before:
            wrong += 1
            print("FAIL %s: %s instructions, %s in instructions.txt" % (
                name, "no" if now is None else "%.0f" % now, "none" if before is None else before))
    return wrong


# ---- all of it ----


def measure_null(case, options):
    """The same requests, to who answers each line with the same bytes."""
    with tempfile.TemporaryDirectory(prefix="rollcall-instructions-") as folder:
        server = Counted(folder, [NULL_SERVER, "--bare", "--mode", case.name] + NULL_CASES[case.name],
                         rb"(?m)^(\d+)\n")
        server.control("-i", "on")
        costs = server.count(case, options.requests)
        server.end()
        return costs


def measure(options):
    counted = {}
    for journal in (False, True):
        with tempfile.TemporaryDirectory(prefix="rollcall-instructions-") as folder:
            server = start_daemon(folder, journal)
            fill(server, options.ids)
            for case in cases(options.ids):
                if not journal or (case.name in ("incr", "incrs") and case.codec == "text"):
                    name = case.name + (" journaled" if journal else "")
                    counted[name, case.keys, case.codec] = server.count(case, options.requests)
            server.end()
    for case in cases(options.ids):
        if case.name in NULL_CASES and case.codec == "text":
            counted["null " + case.name, case.keys, "text"] = measure_null(case, options)
    return counted


def main():
    parser = argparse.ArgumentParser(description="See the top of this file.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--requests", type=int, default=400, help="counted of each kind")
    parser.add_argument("--ids", type=int, default=1000000)
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("SKIP: valgrind is not installed; apt-get install valgrind")
        return SKIPPED
    if options.check and compiler() != read_figures()[0]:
        print("SKIP: the figures are those of %s, this is %s" % (read_figures()[0], compiler()))
        return SKIPPED
    counted = measure(options)
    print_codecs(counted)
    print_folders(counted)
    figures = figures_of(counted)
    if options.renew:
        renew(figures)
    return 1 if options.check and check(figures) else 0


if __name__ == "__main__":
    sys.exit(main())
