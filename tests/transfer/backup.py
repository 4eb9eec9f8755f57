#!/usr/bin/env python3
"""Backups of a daemon under load hold exactly what was there at one moment.

    tests/transfer/backup.py [--rounds N] [--seed N]

$ROLLCALLD and $ROLLCALL name the programs. One client sends changes one after the other, so the state
at any LSN is that after the first K of them. Checkpoints come all the time: tables are written and
dumped, older files and segments of the journal go. Meanwhile backups are made, by link and by copy,
killed and gone on with at random; in every other round the daemon is killed, too. Each is restored,
killed at random as well, a daemon starts with it, and all it exports must be the state after some K,
which lies between what was answered before the backup began and what was sent when it ended.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recovery"))
import judge  # noqa: E402
from tally import Tally  # noqa: E402
from victim import Failure, Folder, Victim, protocol, seed_of_run  # noqa: E402

SECONDS_MAX = 120
PIPELINED = 20
RECENT = 1500  # ids back from the newest that are incremented
KILLS_MAX = 6  # of one backup, or restore
BUSY = b"SERVER_ERROR busy"
# Why a change may be refused, and of how many of those answered: a new id waits for the dump that makes room for its
# table, and is busy where a slow disk takes five seconds for that. Other reasons never come: no dump fails or is
# overrun, as `cold.overlay` holds each record of a table; no increment goes back as far as a file, the counts fit
# their slots, and the journal's buffer is never full of PIPELINED changes.
REFUSED_MAX = {"feed": {BUSY: 0.001}}
CONFIG = """threads: 2
memory: 512MiB
data: %s
journal: {segment: 1MiB, buffer: 1MiB}
checkpoint: {every: 100ms, journal: 2MiB}
spaces:
  feed:
    kind: counter
    slots: {like: 20, read: 10}
    table-size: 64KiB
    tables: 4
    oldest: dump
"""


class Writer(threading.Thread):
    """Change 2i makes id i, change 2i + 1 adds one to an id a little below."""

    def __init__(self, daemon, seed):
        super().__init__(daemon=True)
        self.client = daemon.connect()
        self.rng = random.Random(seed)
        self.changes = []  # (id, slot, value or None), in their order
        self.tally = Tally()
        self.refused = set()  # places
        self.answered = 0
        self.ended = False
        self.problem = None

    def one(self, place):
        number = place // 2
        if place % 2 == 0:
            return (number, "like", place % 1000)
        return (max(0, number - self.rng.randrange(RECENT)), "read", None)

    @staticmethod
    def words(change):
        number, slot, value = change
        if value is None:
            return b"incr feed:%d.%s 1\r\n" % (number, slot.encode())
        return b"set feed:%d.%s 0 0 %d\r\n%d\r\n" % (number, slot.encode(), len(str(value)), value)

    def run(self):
        stream = self.client.socket.makefile("rb")
        try:
            while not self.ended:
                first = len(self.changes)
                batch = [self.one(first + i) for i in range(PIPELINED)]
                self.changes += batch
                self.client.socket.sendall(b"".join(map(self.words, batch)))
                for i in range(PIPELINED):
                    line = stream.readline()
                    if not line.endswith(b"\r\n"):
                        return
                    answer = line.strip()
                    done = answer == b"STORED" or answer.isdigit()
                    if not self.tally.note("feed", done, answer, REFUSED_MAX["feed"]):
                        self.problem = line
                        return
                    if not done:
                        self.refused.add(first + i)
                    self.answered += 1
        except OSError:
            return  # the daemon was killed

    def end(self):
        """It is joined, and no more was refused than may be."""
        self.ended = True
        self.join(SECONDS_MAX)
        if self.problem:
            raise Failure("a change was answered %r" % self.problem)
        excess = self.tally.excess(REFUSED_MAX)
        if excess:
            raise Failure("refused: " + excess)

    def state(self, places):
        """id -> its slots, after so many changes"""
        state = {}
        for place in range(places):
            if place in self.refused:
                continue
            number, slot, value = self.changes[place]
            slots = state.setdefault(number, {})
            slots[slot] = slots.get(slot, 0) + 1 if value is None else value
        return state


def call(verb, *arguments):
    program = os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))
    return [program, verb, *arguments]


def killed_at_random(command, rng, most, whole):
    """Runs it until it ends by itself; how often it was killed. whole: a path that is there if a kill
    came when all was done."""
    for kills in range(most + 1):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        try:
            said, _ = process.communicate(timeout=rng.uniform(0, 0.1) if kills < most
                                          else SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            continue
        if process.returncode == 2 and kills > 0 and os.path.exists(whole):
            return kills, said
        if process.returncode != 0:
            raise Failure("%s ended with %d: %s" % (command[1], process.returncode, said))
        return kills, said
    raise Failure("%s does not end" % command[1])


def server_of(daemon):
    return "%s:%d" % daemon.address


def export(daemon):
    """id -> its slots"""
    done = subprocess.run(call("export", "-q", "-s", server_of(daemon), "feed"), check=True,
                          capture_output=True, text=True, timeout=SECONDS_MAX)
    records = map(json.loads, done.stdout.splitlines())
    return {record.pop("id"): record for record in records}


def place_of(state, writer, least):
    """After how many changes it was so; the rest is compared by the caller."""
    made = max((number for number, slots in state.items() if "like" in slots), default=-1)
    reads = sum(slots.get("read", 0) for slots in state.values())
    likes = 0
    for place in range(len(writer.changes) + 1):
        if place >= least and likes == reads and place // 2 >= made and \
                place + place % 2 >= 2 * made + 1:
            return place
        if place < len(writer.changes) and place % 2 and place not in writer.refused:
            likes += 1
    raise Failure("it is the state at no place: newest id %d, %d increments" % (made, reads))


class Round:
    def __init__(self, number, options, rng):
        self.number, self.rng = number, rng
        self.folder = Folder(options.directory)
        self.copies = number % 2 == 1
        self.kills_daemon = number % 4 >= 2
        self.configure(self.folder.data)
        self.daemon = None

    def configure(self, data):
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(CONFIG % data)

    def start(self):
        self.daemon = Victim(self.folder)
        self.daemon.serve()

    def await_dumps(self):
        """There is something of everything: dumped tables, checkpoints."""
        client = self.daemon.connect()
        until = time.monotonic() + SECONDS_MAX
        while time.monotonic() < until:
            figures = client.stats(b"")
            if int(figures["dump_files"]) >= 2 and int(figures["checkpoints"]) >= 3:
                client.socket.close()
                return
            time.sleep(0.01)
        raise Failure("no table is dumped")

    def back_up(self):
        backup = os.path.join(self.folder.path, "backup")
        # the first call asks the daemon, further ones need not: it may have been killed
        command = call("backup", "-q", "--data", self.folder.data, backup)
        command += ["--copy"] if self.copies else []
        if self.kills_daemon:
            killer = threading.Timer(self.rng.uniform(0, 0.1), self.daemon.kill_now)
            killer.start()
        kills, _ = killed_at_random(command, self.rng, self.rng.randrange(KILLS_MAX),
                                    os.path.join(backup, "BACKUP"))
        if self.kills_daemon:
            killer.join()
        return backup, kills

    def judge(self, writer, answered, sent):
        """The daemon holds what was there at one moment."""
        state = export(self.daemon)
        place = place_of(state, writer, 0)
        if not answered <= place <= sent:
            raise Failure("the state after %d changes, and %d were answered, %d sent" % (
                place, answered, sent))
        expected = writer.state(place)
        if state != expected:
            wrong = [number for number in sorted(set(state) | set(expected))
                     if state.get(number) != expected.get(number)]
            raise Failure("%d ids are wrong after %d changes: %d is %r, not %r" % (
                len(wrong), place, wrong[0], state.get(wrong[0]), expected.get(wrong[0])))
        return place, len(state)

    def run(self):
        self.start()
        writer = Writer(self.daemon, self.rng.random())
        writer.start()
        self.await_dumps()
        answered = writer.answered
        backup, kills = self.back_up()
        sent = len(writer.changes)
        writer.end()
        if self.daemon.alive():
            self.daemon.kill_now()
        restored = os.path.join(self.folder.path, "restored")
        again, _ = killed_at_random(call("restore", "-q", backup, restored), self.rng,
                                    self.rng.randrange(KILLS_MAX), restored)
        self.configure(restored)
        self.start()
        place, ids = self.judge(writer, answered, sent)
        self.daemon.kill_now()
        return "%s%s: backup killed %d times, restore %d; %d ids after %d of %d changes; %s" % (
            "copied" if self.copies else "linked", ", daemon killed" if self.kills_daemon else "",
            kills, again, ids, place, sent, writer.tally)

    def end(self):
        if self.daemon is not None and self.daemon.alive():
            self.daemon.kill_now()
        self.folder.remove()


def refusals(options):
    """What is no place for a backup, or no backup, is left as it is."""
    folder = Folder(options.directory)
    full = os.path.join(folder.path, "full")
    os.mkdir(full)
    with open(os.path.join(full, "x"), "w", encoding="ascii"):
        pass
    for command, status in ((call("backup", "--data", folder.data, full), 2),
                            (call("backup", "--data", folder.data, folder.path + "/new"), 1),
                            (call("backup", "-s", "/nonexistent", full), 2),
                            (call("restore", full, folder.path + "/new"), 2),
                            (call("backup"), 2), (call("restore", full), 2)):
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX,
                              check=False)
        if done.returncode != status or not done.stderr.startswith("rollcall: "):
            raise Failure("%s ended with %d: %s" % (command[1:], done.returncode, done.stderr))
    if os.listdir(full) != ["x"]:
        raise Failure("a directory that is no place for a backup was changed")
    folder.remove()


def flip(path, offset):
    """One bit of a file that may have other names."""
    with open(path, "rb") as file:
        bytes_ = bytearray(file.read())
    bytes_[offset] ^= 1
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(bytes_)


def expect_restore(backup, directory, status, words):
    done = subprocess.run(call("restore", "-q", backup, directory), capture_output=True, text=True,
                          timeout=SECONDS_MAX, check=False)
    if done.returncode != status or words not in done.stderr:
        raise Failure("restore ended with %d, not %d: %s" % (done.returncode, status, done.stderr))


def limited(backup, directory, soft, hard):
    """A backup with such limits of open files."""
    return subprocess.run(["sh", "-c", "ulimit -Sn %d && ulimit -Hn %d && exec \"$@\"" % (soft, hard), "sh",
                           *call("backup", "-q", "--data", directory, backup)],
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def limits(backup, directory):
    """It opens all files at one time: as many as the hard limit allows."""
    done = limited(backup, directory, 64, 64)
    if done.returncode == 0 or "64 open files" not in done.stderr or "LimitNOFILE" not in done.stderr:
        raise Failure("a backup with 64 files ended with %d: %s" % (done.returncode, done.stderr))
    done = limited(backup, directory, 64, 640)
    if done.returncode != 0:
        raise Failure("a backup with a soft limit of 64 ended with %d: %s" % (
            done.returncode, done.stderr))


def restores(options, rng):
    """Each file is as the backup's list has it, and nothing but its own unfinished restore is gone on
    with."""
    one = Round(1, options, rng)
    try:
        one.start()
        writer = Writer(one.daemon, 1)
        writer.start()
        one.await_dumps()
        backup = os.path.join(one.folder.path, "backup")
        subprocess.run(call("backup", "-q", "-s", server_of(one.daemon), "--copy", backup), check=True)
        subprocess.run(call("backup", "-q", "-s", server_of(one.daemon), backup + "2"), check=True)
        writer.end()
        limits(backup + "3", one.folder.data)
        new = os.path.join(one.folder.path, "new")
        os.mkdir(new + ".restoring")
        with open(new + ".restoring/MANIFEST", "w", encoding="ascii"):
            pass  # somebody else's
        expect_restore(backup, new, 2, "no unfinished restore of this backup")
        if os.listdir(new + ".restoring") != ["MANIFEST"]:
            raise Failure("what was not its own was changed")
        os.unlink(new + ".restoring/MANIFEST")
        table = next(name for name in sorted(os.listdir(backup)) if name.endswith(".table"))
        whole = os.path.join(backup, table)
        flip(whole, os.path.getsize(whole) // 2)
        expect_restore(backup, new, 1, "it is not as it was when the backup was made")
        expect_restore(backup + "2", new, 2, "no unfinished restore of this backup")
        flip(whole, os.path.getsize(whole) // 2)
        expect_restore(backup, new, 0, "")
        if os.path.exists(new + "/RESTORE.begun"):
            raise Failure("a restore that is whole says that it was begun")
        expect_restore(backup, new, 2, "not empty")
        os.mkdir(new + "2")
        expect_restore(backup, new + "2", 0, "")
        listed = os.path.join(backup, "BACKUP")
        flip(listed, os.path.getsize(listed) // 2)
        expect_restore(backup, new + "3", 2, "its checksum does not hold")
    finally:
        one.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", help="where folders are made")
    options = parser.parse_args()
    seed = seed_of_run(options.seed)
    rng = random.Random(seed)
    refusals(options)
    restores(options, rng)
    for number in range(options.rounds):
        one = Round(number, options, rng)
        try:
            print("round %d: %s" % (number, one.run()), flush=True)
        except (Failure, judge.Lost, OSError, subprocess.SubprocessError) as problem:
            print("FAIL round %d: %s" % (number, problem))
            if one.daemon is not None:
                print(one.daemon.output()[-2000:])
            return 1
        finally:
            one.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
