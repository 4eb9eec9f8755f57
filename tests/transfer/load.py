#!/usr/bin/env python3
"""Out and in: what `rollcall export` writes and `rollcall load` reads, against a daemon of its own.

    tests/transfer/load.py

$ROLLCALLD and $ROLLCALL name the programs; with $ROLLCALL_TEST_SCALE below 100 long loads have fewer rows.
Formats there and back, modes, columns, refused lines and exit statuses; a load that is killed at random
and taken up again; one beside a daemon that is killed and comes back, with what it acknowledged or
without; an export while ids come and go.
"""
import argparse
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recovery"))
import judge  # noqa: E402
from victim import Failure, Folder, Victim, protocol, scale_of_run, seed_of_run  # noqa: E402

SECONDS_MAX = 120  # of one call
KEYS = 500  # of one get
SCALE = min(100, max(50, scale_of_run()))  # per cent of the rows below
ROWS = 2000 * SCALE  # of a load that is to be under way still when something is killed
PARTS = 3
SHOWN = 200  # bytes of a text that is another one
DONE, FAILED, USAGE, NO_ANSWER = range(4)
REFUSED, TOO_MANY = 5, 6
CONFIG = """threads: 2
memory: 512MiB
data: %s
spaces:
  feed:
    kind: counter
    key: feed:{id}
    slots: {repost: 20, comment: 20, like: 20, read: 20}
    table-size: 64KiB
    tables: 4
    oldest: dump
  user:
    kind: counter
    key: "u_{id}_n"
    ids: any
    slots: {fans: 20}
    table-size: 1MiB
  liked:
    kind: phantom
    key: liked:{id}:{member}
    false-positives: 0.000001
    table-size: 1MiB
"""


class Served(Victim):
    """At a socket too, which is the same after a kill."""

    def __init__(self, folder, path):
        options = argparse.Namespace(connect=None, config=folder.config)
        protocol.Daemon.__init__(self, options, ["-l", path])


class Answerer:
    """No daemon: it answers the lines that begin with a word of ours, one connection after the other."""

    def __init__(self, path, answers):
        self.answers = answers
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                one, _ = self.socket.accept()
            except OSError:
                return
            with one, one.makefile("rb") as lines, contextlib.suppress(OSError):
                for line in lines:
                    one.sendall(b"".join(said for word, said in self.answers.items() if line.startswith(word)))

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Case:
    def __init__(self):
        self.folder = Folder()
        self.rng = random.Random(seed_of_run())
        self.daemon = None
        self.server = os.path.join(self.folder.own(self.path("run")), "socket")
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(CONFIG % self.folder.data)

    def path(self, name):
        return os.path.join(self.folder.path, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def start(self):
        self.daemon = Served(self.folder, self.server)
        self.daemon.serve()

    def command(self, verb, *arguments):
        program = os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))
        return [program, verb, "--server", self.server, *arguments]

    def call(self, verb, *arguments, status=DONE, stdin=None):
        """stdout; the exit status must be the one that is expected"""
        done = subprocess.run(self.command(verb, *arguments), input=stdin, capture_output=True,
                              text=True, timeout=SECONDS_MAX, check=False)
        if done.returncode != status:
            raise Failure("%s %s ended with %d, not %d:\n%s" % (
                verb, " ".join(arguments), done.returncode, status, done.stderr))
        return done.stdout + done.stderr if status != DONE else done.stdout

    def get(self, keys):
        """key -> value"""
        found = {}
        client = self.daemon.connect()
        for at in range(0, len(keys), KEYS):
            request = b"get " + b" ".join(key.encode() for key in keys[at:at + KEYS]) + b"\r\n"
            lines = client.ask(request).split(b"\r\n")
            for i, line in enumerate(lines):
                if line.startswith(b"VALUE "):
                    found[line.split()[1].decode()] = lines[i + 1].decode()
        client.socket.close()
        return found

    def expect(self, values):
        """Compared as a whole, and one by one where that is not what it should be: it is many."""
        client = self.daemon.connect()
        pairs = list(values.items())
        for block in (pairs[at:at + KEYS] for at in range(0, len(pairs), KEYS)):
            answer = client.ask(("get " + " ".join([key for key, _ in block]) + "\r\n").encode())
            wanted = "".join(["VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value) for key, value in block])
            if answer != wanted.encode() + b"END\r\n":
                self.expect_each(dict(block))
                raise Failure("a page was answered otherwise at first: %r" % answer[:SHOWN])
        client.socket.close()

    def expect_each(self, values):
        found = self.get(list(values))
        for key, value in values.items():
            if found.get(key) != value:
                raise Failure("%s is %r, not %r" % (key, found.get(key), value))

    # ---- the cases ----

    def formats_in_and_out(self):
        """Each format in, both out, and in again: the same."""
        self.call("load", "feed",
                  self.write("a.csv", 'id,like,repost,comment,read\n1,3,1,,4\n"2",,,5,\n\n3,9,,,'))
        self.expect({"feed:1": "1,,3,4", "feed:2": ",5,,", "feed:3": ",,9,"})
        self.call("load", "feed", "--columns", "id,-,like",
                  self.write("b.tsv", "4\tx\t7\n3\t\t10\r\n"))
        self.expect({"feed:4": ",,7,", "feed:3": ",,10,"})
        self.call("load", "feed", "-f", "ndjson", stdin=(
            '{"id":5,"like":2}\n { "read" : "8", "id":6,"like":null, "comment":1 } \n'))
        self.expect({"feed:5": ",,2,", "feed:6": ",1,,8"})
        self.call("load", "user", "-f", "csv", "-c", "id,fans", stdin="1099511627776,5\n7,99999999\n")
        tsv = "id\trepost\tcomment\tlike\tread\n" \
              "1\t1\t\t3\t4\n2\t\t5\t\t\n3\t\t\t10\t\n4\t\t\t7\t\n5\t\t\t2\t\n6\t\t1\t\t8\n"
        self.same(self.call("export", "feed", "-f", "tsv", "-q"), tsv)
        self.same(self.call("export", "user", "-q"),
                  '{"id":7,"fans":99999999}\n{"id":1099511627776,"fans":5}\n')
        self.same(self.call("export", "feed", "--from", "3", "--to", "4", "-q"),
                  '{"id":3,"like":10}\n{"id":4,"like":7}\n')
        ndjson = self.write("feed.ndjson", self.call("export", "feed", "-q"))
        client = self.daemon.connect()
        for number in range(1, 7):
            client.ask(b"delete feed:%d\r\n" % number, (b"DELETED\r\n",))
        self.call("load", "feed", ndjson)
        self.same(self.call("export", "feed", "-f", "tsv", "-q"), tsv)
        part = self.write("part.tsv", tsv[:-7])
        self.call("export", "feed", "-f", "tsv", "-q", "-o", part, status=USAGE)
        self.call("export", "feed", "-f", "tsv", "-q", "-o", part, "--resume")
        self.call("export", "feed", "-f", "tsv", "-q", "-o", part, "--resume")
        with open(part, encoding="ascii") as file:
            self.same(file.read(), tsv)

    def parts(self):
        """The parts of an export are the whole, each id in one; a part is taken up again, and loaded."""
        self.call("load", "feed", "-q", self.write("even.csv", "id,like\n" + "".join(
            "%d,1\n" % (2000000 + i) for i in range(3000))))
        whole = self.call("export", "feed", "-f", "tsv", "-q")
        names, rows = whole.splitlines(True)[0], whole.splitlines(True)[1:]
        found = []
        for number in range(1, PARTS + 1):
            hashed = "%d/%d" % (number, PARTS)
            note = "# rollcall export feed --hash %s\n" % hashed
            text = self.call("export", "feed", "-f", "tsv", "-q", "--hash", hashed)
            if not text.startswith(note + names) or len(text.splitlines()) < 3:
                raise Failure("part %s is %r" % (hashed, text[:SHOWN]))
            found += text.splitlines(True)[2:]
            self.same(self.call("export", "feed", "-q", "--hash", hashed).splitlines()[0] + "\n", note)
            for cut in (len(text) - 7, len(note) + 3, len(note), 0):
                part = self.write("part-%d.tsv" % number, text[:cut])
                self.call("export", "feed", "-f", "tsv", "-q", "-o", part, "--resume", "--hash", hashed)
                with open(part, encoding="ascii") as file:
                    self.same(file.read(), text)
        self.same("".join(sorted(found)), "".join(sorted(rows)))
        part, other = self.path("part-1.tsv"), self.write("whole.tsv", whole)
        for file, words in ((part, ["--hash", "2/%d" % PARTS]), (part, []), (other, ["--hash", "1/3"])):
            said = self.call("export", "feed", "-f", "tsv", "-q", "-o", file, "--resume", *words, status=USAGE)
            if "it is another export" not in said:
                raise Failure("it goes on with %s: %s" % (file, said))
        for wrong in ("0/2", "3/2", "1", "x/2", "1/65537"):
            said = self.call("export", "feed", "--hash", wrong, status=USAGE)
            if '"%s"' % wrong not in said:
                raise Failure("what is wrong with %s: %s" % (wrong, said))
        self.call("load", "feed", "-m", "set", part)
        self.same(self.call("export", "feed", "-f", "tsv", "-q"), whole)
        return "%d rows" % len(rows)

    @staticmethod
    def same(found, expected):
        if found != expected:
            at = 0
            if isinstance(found, str):  # a long one is shown from where they differ
                at = max(0, len(os.path.commonprefix([found, expected])) - SHOWN)
                found, expected = found[at:at + 2 * SHOWN], expected[at:at + 2 * SHOWN]
            raise Failure("at %d: %r\nis not\n%r" % (at, found, expected))

    def modes(self):
        self.call("load", "feed", "-f", "csv", "-c", "id,like", "-q", stdin="11,005\n12,6\n")
        self.call("load", "feed", "-f", "csv", "-c", "id,like,read", "-m", "add",
                  stdin="11,7,1\n13,8,\n13,9,\n")
        self.expect({"feed:11": ",,5,1", "feed:12": ",,6,", "feed:13": ",,8,"})
        self.call("load", "feed", "-f", "csv", "-c", "id,like,read", "-m", "max",
                  stdin="11,7,0\n12,1,\n14,4,4\n14,5,1\n13,8,\n" + "14,3,6\n" * 300)
        self.expect({"feed:11": ",,7,1", "feed:12": ",,6,", "feed:13": ",,8,", "feed:14": ",,5,6"})
        self.call("load", "liked", "-f", "csv", "-c", "id,member", stdin='1,u9\n1,"u""7"\n2,u9\n')
        found = self.get(["liked:1:u9", 'liked:1:u"7', "liked:2:u9", "liked:2:u7"])
        self.same(sorted(found), ['liked:1:u"7', "liked:1:u9", "liked:2:u9"])

    def refusals(self):
        lines = "21,1\nx,1\n22,x\n22,2,3\n23\n24,\n9223372036854775808,1\n25,5\n"
        reject = self.path("rejects")
        said = self.call("load", "feed", "-f", "csv", "-c", "id,like", "--max-errors", "6",
                         "--reject", reject, stdin=lines, status=REFUSED)
        if "line 2: not a number: id: x,1" not in said:
            raise Failure("it does not say what is wrong: " + said)
        with open(reject, encoding="ascii") as file:
            self.same(file.read(), "x,1\n22,x\n22,2,3\n23\n24,\n9223372036854775808,1\n")
        self.expect({"feed:21": ",,1,", "feed:25": ",,5,"})
        self.call("load", "feed", "-f", "csv", "-c", "id,like", "--max-errors", "5", stdin=lines,
                  status=TOO_MANY)
        self.call("load", "feed", "-f", "csv", "-c", "id,like", stdin="26,1\n" * 3 + "y,1\n",
                  status=TOO_MANY)
        self.call("load", "user", "-f", "csv", "-c", "id,fans", "--max-errors", "1",
                  stdin="27,1\n4611686018427387904,1\n", status=REFUSED)  # above max-id
        for arguments in (["feed", "-f", "csv", "-c", "id,likes"], ["feed", "-f", "csv", "-c", "like"],
                          ["nope", "-f", "csv"], ["liked", "-f", "csv", "-c", "id,like"],
                          ["feed", "/nonexistent.csv"]):
            self.call("load", *arguments, stdin="1,1\n", status=USAGE)
        for arguments in (["feed"], [], ["feed", "-f", "xml"], ["feed", "x.txt"],
                          ["feed", "-f", "csv", "--batch", "0"], ["feed", "--nope"]):
            self.call("load", *arguments, stdin="1,1\n", status=USAGE)
        self.same(self.call("load", "feed", "-f", "ndjson", "--max-errors", "9",
                            stdin='{"id":1,"liek":1}\n', status=REFUSED).count("no slot"), 1)

    def statuses(self):
        """Nothing was begun, or something was; a file that is not wanted any more; what fails on the way."""
        long = "x" * 70000
        self.call("load", "feed", "-f", "csv", stdin="id,like\n" + long, status=FAILED)
        self.call("load", "feed", "-f", "csv", stdin="id,liek\n31,1\n", status=USAGE)
        good, typo = self.write("good.csv", "id,like\n31,1\n"), self.write("typo.csv", "id,liek\n32,1\n")
        self.call("load", "feed", good, typo, status=USAGE)
        for mode in ("set", "max"):
            self.call("load", "feed", "--batch", "1", "-m", mode, good, typo, status=FAILED)
        bad, state = self.write("bad.csv", "id,like\nx,1\n33,1\n"), self.path("two.state")
        two = ["feed", "--batch", "1", "--checkpoint", state, good, bad]
        self.call("load", *two, status=TOO_MANY)
        os.unlink(good)  # it is all there
        os.rename(bad, bad + ".away")
        self.call("load", *two, "--max-errors", "1", status=USAGE)
        os.rename(bad + ".away", bad)
        self.call("load", *two, "--max-errors", "1", status=REFUSED)
        self.expect({"feed:31": ",,1,", "feed:33": ",,1,"})
        os.unlink(bad)
        self.call("load", *two, "--max-errors", "1", status=REFUSED)
        self.emptied()
        self.lost_on_the_way(long)
        self.answered_otherwise()

    def emptied(self):
        """A checkpoint or an input that is empty now: it says so."""
        path, state = self.write("emptied.csv", "id,like\n35,1\nx,1\n"), self.path("emptied.state")
        load = ["load", "feed", "--batch", "1", "--checkpoint", state, path]
        self.call(*load, status=TOO_MANY)
        self.write("emptied.csv", "")
        said = self.call(*load, "--max-errors", "1", status=FAILED)
        if "emptied.csv: it is shorter than the checkpoint says" not in said:
            raise Failure("an input that is empty now is not named")
        self.write("emptied.state", "")
        if "emptied.state: it is empty" not in self.call(*load, status=USAGE):
            raise Failure("an empty checkpoint is not named")
        self.call("load", "feed", "--checkpoint", "", path, status=USAGE)

    def asks_seldom(self):
        """Which life of the daemon it is, is asked about once a second, not with each batch."""
        client = self.daemon.connect()
        before, began = int(client.stats(b"")["bytes_written"]), time.monotonic()
        rows = 20000
        self.call("load", "feed", "-q", "--batch", "10", self.write("small.csv", "id,like\n" + "".join(
            "%d,1\n" % (2000000 + i) for i in range(rows))))
        seconds = 2 + time.monotonic() - began
        written = int(client.stats(b"")["bytes_written"]) - before
        client.socket.close()
        if written > rows * len("STORED\r\n") + seconds * 100000:
            raise Failure("%d rows of %d batches brought %d bytes" % (rows, rows // 10, written))
        return "%d bytes" % written

    def lost_on_the_way(self, long):
        """The first row was sent to a daemon that is gone, the next one cannot be read: it says both."""
        state = self.path("lost.state")
        load = subprocess.Popen(
            self.command("load", "feed", "-f", "csv", "-q", "--batch", "1", "--timeout", "1", "--checkpoint", state,
                         "--reject", self.path("lost.rejects")),
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not os.path.exists(state) and load.poll() is None:  # it is connected
            time.sleep(0.001)
        self.daemon.kill_now()
        _, said = load.communicate("id,like\n34,1\n" + long, timeout=SECONDS_MAX)
        self.start()
        if load.returncode != NO_ANSWER or "longer than 64 KiB" not in said or "cannot connect" not in said:
            raise Failure("it ended with %d: %s" % (load.returncode, said))

    def answered_otherwise(self):
        """Other answers than a daemon at work gives."""
        path = self.path("run/answerer")
        there = Answerer(path, {b"stats": b"END\r\n", b"set login": b"SERVER_ERROR loading\r\n",
                                b"lru_crawler export feed 0": b"EXPORT feed like\r\n7 1\r\nCLIENT_ERROR bad\r\n",
                                b"lru_crawler export other 0": b"CLIENT_ERROR no such space\r\n"})
        ask = ("--server", path, "--timeout", "1", "-q")
        said = self.call("export", *ask, "feed", status=FAILED)
        if "CLIENT_ERROR bad; go on with --from 8" not in said:
            raise Failure("it does not say how to go on: " + said)
        self.call("export", *ask, "other", status=USAGE)
        login = ("--auth-file", self.write("login", "me:sesame\n"))
        for verb in (("export", "feed"), ("load", "feed", "-f", "csv")):
            said = self.call(*verb, *ask, *login, stdin="", status=NO_ANSWER)
            if "SERVER_ERROR loading" not in said:
                raise Failure("it does not say why: " + said)
        there.end()

    def killed_and_taken_up(self):
        """Each row adds an id of its own, but some, which are rejected: once each, as in one run."""
        rows = ROWS * 3 // 4
        bad = ["%d,x%d" % (i, i) for i in range(0, rows, 40)]
        path = self.write("long.csv", "id,like\n" + "".join(
            "%d,%d\n%s" % (1000000 + i, i % 1000, "" if i % 40 else bad[i // 40] + "\n")
            for i in range(rows)))
        state, rejects = self.path("long.state"), self.write("long.rejects", "of before\n")
        arguments = ["feed", "--max-errors", str(len(bad)), "--reject", rejects, "--checkpoint", state,
                     path]
        command = self.command("load", *arguments, "-q", "--batch", "300")
        kills = 0
        for _ in range(200):
            load = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            try:
                load.wait(self.rng.uniform(0.005, 0.08 + kills * 0.01))  # slow machines get on, too
                break
            except subprocess.TimeoutExpired:
                load.kill()
                load.wait()
                kills += 1
        if kills == 0 or load.returncode != REFUSED:
            raise Failure("%d kills, and it ended with %d" % (kills, load.returncode))
        said = self.call("load", *arguments, status=REFUSED)
        if "%d stored, 0 kept as they were, %d refused" % (rows, len(bad)) not in said:
            raise Failure("counted otherwise: " + said)
        with open(rejects, encoding="ascii") as file:
            self.same(file.read(), "of before\n" + "".join(line + "\n" for line in bad))
        self.expect({"feed:%d" % (1000000 + i): ",,%d," % (i % 1000) for i in range(rows)})
        self.call("load", "feed", "--checkpoint", state, "-m", "add", path, status=USAGE)
        return "%d kills" % kills

    def beside_a_daemon_that_is_killed(self):
        rows = ROWS
        path = self.write("more.csv", "id,like,read\n" + "".join(
            "%d,%d,1\n" % (5000000 + i, i % 777) for i in range(rows)))
        load = subprocess.Popen(self.command("load", "feed", "-q", "--batch", "500", path),
                                stderr=subprocess.PIPE, text=True)
        kills = 0
        while kills < 3:
            time.sleep(self.rng.uniform(0.02, 0.1))
            if load.poll() is not None:
                break
            self.daemon.kill_now()
            self.start()
            kills += 1
        _, said = load.communicate(timeout=SECONDS_MAX)
        if load.returncode != DONE:
            raise Failure("the load ended with %d: %s" % (load.returncode, said))
        if kills == 0:
            raise Failure("the load had ended before the daemon was killed")
        self.expect({"feed:%d" % (5000000 + i): ",,%d,1" % (i % 777) for i in range(rows)})
        return "%d kills" % kills

    def daemon_that_forgot(self):
        """Acknowledged rows are gone: no load goes on as if they were there, beside it or later."""
        with open(self.folder.config, encoding="ascii") as file:
            config = file.read()
        self.daemon.kill_now()
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write("".join(line for line in config.splitlines(True) if "data:" not in line)
                       .replace("tables: 4", "tables: 200").replace("dump", "refuse"))
        self.start()
        for beside in (True, False):
            self.forget(beside, "had no data directory")
        self.daemon.kill_now()
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(config)
        self.start()
        self.forget(False, "came back without its last changes")

    def forget(self, beside, lost):
        path = self.write("gone.csv", "id,like\n" + "".join("%d,1\n" % i for i in range(1, ROWS + 1)))
        state = self.path("gone.state")
        command = self.command("load", "feed", "-q", "--batch", "50", "--checkpoint", state, path)
        load = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while not os.path.exists(state):
            time.sleep(0.001)
        if not beside:
            load.kill()
            load.communicate()
        self.daemon.kill_now()
        shutil.rmtree(self.folder.data)
        self.folder.own(self.folder.data)
        self.start()
        if not beside:
            load = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        _, said = load.communicate(timeout=SECONDS_MAX)
        if load.returncode != FAILED or "started again, and %s" % lost not in said:
            raise Failure("it ended with %d: %s" % (load.returncode, said))
        self.call("load", "feed", "-q", "--batch", "50", "--checkpoint", state, path, status=FAILED)
        os.unlink(state)
        self.call("load", "feed", "-q", path)

    def export_under_load(self):
        """Ids that stay are there once each, in order, whatever comes and goes meanwhile."""
        stop = threading.Event()
        thread = threading.Thread(target=self.churn, args=(stop,))
        thread.start()
        try:
            for _ in range(3):
                lines = self.call("export", "feed", "-q", "--from", "5000000").splitlines()
                ids = [row["id"] for row in json.loads("[" + ",".join(lines) + "]")]
                if any(left >= right for left, right in zip(ids, ids[1:])):
                    raise Failure("ids are not in order")
                stay = set(range(5000000, 5000000 + ROWS, 2)) - set(ids)
                if stay:
                    raise Failure("%d ids that stay are not there: %s" % (
                        len(stay), sorted(stay)[:5]))
        finally:
            stop.set()
            thread.join()

    def churn(self, stop):
        client = self.daemon.connect()
        rng = random.Random(5)
        newest = 5000000 + ROWS
        while not stop.is_set():
            request = b""
            for _ in range(200):
                one = rng.randrange(5000000, 5000000 + ROWS) | 1
                request += b"delete feed:%d noreply\r\n" % one if rng.random() < 0.5 else \
                    b"incr feed:%d.read 1 noreply\r\n" % one
                request += b"set feed:%d.like 0 0 1 noreply\r\n1\r\n" % newest
                newest += 1
            client.ask(request + b"mn\r\n", (b"MN\r\n",))
        client.socket.close()

    def cases(self):
        return (self.formats_in_and_out, self.modes, self.refusals, self.statuses, self.parts,
                self.asks_seldom, self.killed_and_taken_up,
                self.beside_a_daemon_that_is_killed, self.export_under_load, self.daemon_that_forgot)

    def begin(self):
        self.start()

    def run(self):
        """The cases, one after the other; the daemon that is there at the end must end well."""
        try:
            self.begin()
            for case in self.cases():
                began = time.monotonic()
                said = case()
                print("ok   %-32s %5.1f s  %s" % (case.__name__, time.monotonic() - began,
                                                  said or ""), flush=True)
            problem = self.daemon.stop(False) if self.daemon.alive() else None
            if problem:
                raise Failure(problem)
        except (Failure, judge.Lost, OSError, subprocess.SubprocessError) as problem:
            print("FAIL %s" % problem)
            if self.daemon is not None:
                print(self.daemon.output()[-2000:])
            return 1
        finally:
            if self.daemon is not None and self.daemon.alive():
                self.daemon.kill_now()
            self.folder.remove()
        return 0


if __name__ == "__main__":
    sys.exit(Case().run())
