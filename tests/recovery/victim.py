"""victim.py: the daemon that is killed, and the load under which it is.

$ROLLCALLD names the daemon, $ROLLCALL_BUILD the folder of the build (tests/recovery/load is there).
Everything lives in one folder, which is removed unless keep() was called.
"""
import argparse
import os
import pwd
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "protocol"))
import judge  # noqa: E402
import run as protocol  # noqa: E402

USER = "nobody"  # what a daemon that root starts becomes
SERVE_S = 60  # to recover in
POLL_S = 0.005
FAILED = "it is tried again"  # what the log says of a dump, a merge or a checkpoint that failed
FALSE_POSITIVES = 0.000001

CONFIG = """threads: 2
memory: %(memory)s
%(data)sspaces:
  feed:
    kind: counter
    slots: {repost: 10, comment: 20, like: 20, read: 20}
    role: store
    empty-fields: clear
    oldest: %(oldest)s
    table-size: %(table_size)s
    tables: %(tables)d
    aux-memory: %(dicts)s
  liked:
    kind: phantom
    false-positives: %(rate).6f
    deletes: yes
    exceptions-memory: %(dicts)s
    role: store
    oldest: %(oldest)s
    table-size: %(table_size)s
    tables: %(tables)d
"""
DATA = """data: %(directory)s
journal: {sync: %(sync)s, segment: %(segment)s, buffer: %(buffer)s}
checkpoint: {every: %(every)s, journal: %(journal)s}
"""


def seed_of_run(given=0):
    """The seed that an option gave, else $ROLLCALL_TEST_SEED: a number (unset: 1), or random.

    It is printed at once: a run that is cut short, or fails in its own way, can be had again.
    """
    said = os.environ.get("ROLLCALL_TEST_SEED") or "1"
    seed = given or (random.SystemRandom().getrandbits(31) if said == "random" else int(said))
    print("ROLLCALL_TEST_SEED=%d" % seed, flush=True)
    return seed


def scale_of_run():
    """$ROLLCALL_TEST_SCALE: per cent of the usual operations (unset: 100)."""
    return int(os.environ.get("ROLLCALL_TEST_SCALE") or 100)


class Failure(Exception):
    """The daemon or the load did what it must not."""


def answers(client, count):
    """So many lines, without their ends."""
    data = bytearray()
    while data.count(b"\r\n") < count:
        piece = client.socket.recv(1 << 18)
        if not piece:
            raise Failure("closed under a load")
        data += piece
    return bytes(data).split(b"\r\n")[:-1]


class Folder:
    """config.yaml, data/ (the daemon's own) and the model, in a temporary folder."""

    def __init__(self, parent=None):
        self.path = tempfile.mkdtemp(prefix="rollcall-recovery-", dir=parent)
        os.chmod(self.path, 0o711)
        self.kept = False
        self.data = self.own(os.path.join(self.path, "data"))
        self.config = os.path.join(self.path, "config.yaml")

    @staticmethod
    def own(path):
        """A directory only the daemon's user can use."""
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o700)
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(path, user.pw_uid, user.pw_gid)
        return path

    def configure(self, values, data=True):
        """`values`: what CONFIG and DATA name."""
        values = dict(values, directory=self.data, rate=FALSE_POSITIVES)
        values["data"] = DATA % values if data else ""
        with open(self.config, "w", encoding="ascii") as file:
            file.write(CONFIG % values)

    def names(self):
        """What is in the data directory: (name, size, time of change) of each file."""
        try:
            with os.scandir(self.data) as entries:
                return {(entry.name, entry.stat().st_mtime_ns if entry.name == "MANIFEST" else 0)
                        for entry in entries}
        except OSError:
            return None  # one went away meanwhile: also a change

    def keep(self):
        self.kept = True

    def remove(self):
        if not self.kept:
            shutil.rmtree(self.path, ignore_errors=True)


def limited_program(folder, soft, hard):
    """A daemon with so many descriptors, and no right to raise the hard limit."""
    path = os.path.join(folder.path, "limited")
    drop = "setpriv --bounding-set=-sys_resource " if os.geteuid() == 0 else ""
    program = os.environ.get("ROLLCALLD") or os.path.join(protocol.TOP, "build", "rollcalld")
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nulimit -Sn %d && ulimit -Hn %d && exec %s%s \"$@\"\n" % (
            soft, hard, drop, shlex.quote(os.path.abspath(program))))
    os.chmod(path, 0o755)
    return path


def passes(seed, directory, run):
    """Whether run(folder) names no problem; the folder of one that does is kept."""
    print("seed %d" % seed)
    folder = Folder(directory)
    try:
        problem = run(folder)
        if problem:
            folder.keep()
            print("FAIL seed %d: %s\nkept: %s" % (seed, problem, folder.path))
        return not problem
    finally:
        folder.remove()


def run_cases(cases, run):
    """Runs the cases, or those that the arguments name. Returns the exit status."""
    wanted = sys.argv[1:]
    cases = [case for case in cases if not wanted or case.__name__ in wanted]
    failed = [case for case in cases if not run(case)]
    print("%d cases, %d failed" % (len(cases), len(failed)))
    return 1 if failed or not cases else 0


class Victim(protocol.Daemon):
    """A daemon that may be killed before it listens: nobody waits for it here."""

    def __init__(self, folder):
        super().__init__(argparse.Namespace(connect=None, config=folder.config), [])

    def wait(self):
        pass

    def connect(self):
        return judge.Client(socket.create_connection(self.address, judge.ANSWER_S))

    def serving(self):
        """Whether it listens; then it must answer a read."""
        try:
            client = self.connect()
        except OSError:
            return False
        try:
            client.ask(b"get feed:1\r\n")
            return True
        except (judge.Lost, OSError):
            if self.alive():
                raise
            return False
        finally:
            client.socket.close()

    def serve(self):
        """Waits until it serves; the seconds that took."""
        began = time.monotonic()
        while time.monotonic() < began + SERVE_S:
            if self.process.poll() is not None:
                raise Failure("the daemon ended with %d at its start:\n%s" % (
                    self.process.returncode, self.output()))
            if self.serving():
                return time.monotonic() - began
            time.sleep(POLL_S)
        raise Failure("the daemon does not serve after %d s:\n%s" % (SERVE_S, self.output()))

    def signal(self, number):
        """False: it had ended."""
        if self.process.poll() is not None:
            return False
        self.process.send_signal(number)
        return True

    def kill_now(self):
        """kill -9; it must have been alive."""
        if not self.signal(signal.SIGKILL):
            raise Failure("the daemon ended by itself with %d:\n%s" % (
                self.process.returncode, self.output()))
        self.process.wait()

    def alive(self):
        return self.process.poll() is None

    def check_log(self):
        """It has ended, and nothing was missing: no dump, merge or checkpoint may have failed."""
        failed = [line for line in self.output().splitlines() if FAILED in line]
        if failed:
            raise Failure("\n".join(failed))


class Load:
    """load.c, running."""

    def __init__(self, port, model, **options):
        build = os.environ.get("ROLLCALL_BUILD", os.path.join(protocol.TOP, "build"))
        program = os.path.join(build, "tests", "recovery", "load")
        words = ["%s=%d" % pair for pair in options.items()]
        self.process = subprocess.Popen([program, str(port), model.path, *words],
                                        stdout=subprocess.PIPE, bufsize=0)  # communicate() sees no buffer
        self.answered = self.sent = self.gone = self.false_positives = 0
        self.refused, self.ends, self.wrong, self.pending = {}, set(), [], []  # refused: (kind, reason) -> how often
        if self.process.stdout.readline() != b"ready\n":
            self.kill()
            raise Failure("the load did not begin")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def finish(self, seconds=120):
        """Waits for its end and reads its report."""
        try:
            report, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure("the load does not end") from None
        lines = report.decode().splitlines()
        if self.process.returncode != 0 or not lines or lines[-1] != "end":
            raise Failure("the load ended with %d" % self.process.returncode)
        places = {}
        for line in lines[:-1]:
            self.line(line.split(" "), line, places)

    def line(self, words, line, places):
        if words[0] == "writer":
            self.answered += int(words[3])
            self.sent += int(words[5])
            self.ends.add(words[6])
        elif words[0] == "wrong":
            self.wrong.append(line)
        elif words[0] == "refused":
            key = (words[2], " ".join(words[4:]))  # after SERVER_ERROR or CLIENT_ERROR
            self.refused[key] = self.refused.get(key, 0) + int(words[1])
        elif words[0] == "gone":
            self.gone += int(words[1])
        elif words[0] == "false-positives":
            self.false_positives += int(words[1])
        elif words[0] == "pending":
            place = places.setdefault(words[1], 0)
            self.pending.append(judge.Pending(words[1:], place))
            places[words[1]] = place + 1
