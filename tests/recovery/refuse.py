#!/usr/bin/env python3
"""Directories a daemon must not begin with: does it say so, end with 1, and change nothing?

    tests/recovery/refuse.py [NAME ...]

$ROLLCALLD and $ROLLCALL_BUILD as in crash.py. Each case begins with a directory that a daemon has
made and left with some counters in it; afterwards it must open again and still have them. Lines are
`ok`, `FAIL` with what was said instead, `SKIP` with the reason; exit 1 if one failed.
"""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import judge
from victim import Failure, Folder, Victim, protocol, run_cases

VALUES = {"memory": "64MiB", "oldest": "refuse", "table_size": "64KiB", "tables": 4, "dicts": "64KiB",
          "sync": "everysec", "segment": "1MiB", "buffer": "1MiB", "every": "1s", "journal": "4MiB"}
REFUSAL_S = 30
IDS = range(1, 3001)  # more than the first that a row keeps apart
DUMPED_IDS = 30000  # several tables of such
MUCH = 120  # rounds of 500: two segments
OTHER_UID = 1
WORDS = rb"rollcalld: (error: )?.*"


class Skip(Exception):
    """The case cannot be had here."""


def contents(path):
    """What is in a directory: name -> (size, hash); the lock file, which says who had it, apart."""
    found = {}
    for name in sorted(os.listdir(path)):
        with open(os.path.join(path, name), "rb") as file:
            data = file.read()
        if not name.lower().endswith("lock"):
            found[name] = (len(data), hashlib.sha256(data).hexdigest())
    return found


def manifest(folder):
    return os.path.join(folder.data, "MANIFEST")


def fill(folder):
    """A first daemon, counters, a clean stop."""
    daemon = Victim(folder)
    try:
        daemon.serve()
        client = daemon.connect()
        for begin in range(IDS.start, IDS.stop, 500):
            block = range(begin, begin + 500)
            client.socket.sendall(b"".join(b"incr feed:%d.like %d\r\n" % (one, one) for one in block))
            client.ask(b"", (b"\n%d\r\n" % block[-1],))
        client.socket.close()
        problem = daemon.stop(False)
        if problem:
            raise Failure(problem)
    finally:
        daemon.kill()


def holds(folder):
    """A daemon opens it and has what fill() put there. Returns what it said."""
    daemon = Victim(folder)
    try:
        daemon.serve()
        check(daemon)
        problem = daemon.stop(False)
        if problem:
            raise Failure(problem)
        return daemon.output()
    finally:
        daemon.kill()


def check(daemon):
    client = daemon.connect()
    found = client.counters(IDS)
    client.socket.close()
    for one in IDS:
        if found.get(one) != (-1, -1, one, -1):
            raise Failure("afterwards feed:%d is %s" % (one, found.get(one, "absent")))


def refused(folder, words):
    """Starts one that must end with 1 and say `words`."""
    before = contents(folder.data)
    daemon = Victim(folder)
    try:
        code = daemon.process.wait(REFUSAL_S)
    except subprocess.TimeoutExpired:
        raise Failure("it did not end") from None
    finally:
        daemon.kill()
    said = daemon.output()
    if code != 1 or not re.search(WORDS + words, said.encode(), re.IGNORECASE):
        raise Failure("exit %d, and no line like %r:\n%s" % (code, words.decode(), said))
    if contents(folder.data) != before:
        raise Failure("it changed files: %s, were %s" % (
            sorted(contents(folder.data)), sorted(before)))
    return said


# ---- cases: each leaves the directory as it found it ----


def two_daemons(folder):
    first = Victim(folder)
    try:
        first.serve()
        refused_second(folder, rb"in use by rollcalld \(pid %d\)" % first.process.pid)
        os.unlink(os.path.join(folder.data, "lock"))
        refused_second(folder, rb"in use by rollcalld")
        for name in os.listdir(folder.data):  # whatever goes, the directory is in use
            os.rename(os.path.join(folder.data, name), os.path.join(folder.path, name + ".away"))
        refused_second(folder, rb"in use by rollcalld")
        for name in os.listdir(folder.path):
            if name.endswith(".away"):
                os.rename(os.path.join(folder.path, name), os.path.join(folder.data, name[:-5]))
        check(first)
        first.kill_now()  # a lock must not outlive its daemon
    finally:
        first.kill()


def moved_away(folder):
    """The directory is moved, and another daemon makes one at its path: each stays with its own."""
    away = folder.data + ".away"
    first, second = Victim(folder), None
    try:
        first.serve()
        os.rename(folder.data, away)
        folder.own(folder.data)
        second = Victim(folder)
        second.serve()
        count_much(second, 1)
        problem = second.stop(False)
        if problem:
            raise Failure(problem)
        before = contents(folder.data)
        count_much(first, MUCH)
        problem = first.stop(False)
        if problem:
            raise Failure("the first: " + problem)
        if contents(folder.data) != before:
            raise Failure("the first wrote in the second's: %s, were %s" % (
                sorted(contents(folder.data)), sorted(before)))
        if "the data directory was moved" not in first.output():
            raise Failure("the first does not say that it was moved:\n" + first.output())
    finally:
        for daemon in filter(None, (first, second)):
            daemon.kill()
        shutil.rmtree(folder.data)
        os.rename(away, folder.data)


def count_much(daemon, rounds):
    """Segments of journal, and a checkpoint after them."""
    client = daemon.connect()
    block = range(IDS.stop, IDS.stop + 500)
    for _ in range(rounds):
        client.ask(b"".join(b"set feed:%d.read 0 0 1\r\n1\r\n" % one for one in block),
                   (b"STORED\r\n" * len(block),))
    made = int(client.stats(b"")["checkpoints"])
    until = time.monotonic() + REFUSAL_S
    while int(client.stats(b"")["checkpoints"]) < made + 2:  # one may be running
        if time.monotonic() > until:
            raise Failure("no checkpoint:\n" + daemon.output())
        daemon.signal(signal.SIGUSR2)
        time.sleep(0.05)
    client.socket.close()


def refused_second(folder, words):
    code, said = second(folder)
    if code != 1 or not re.search(WORDS + words, said.encode()):
        raise Failure("the second: exit %d, and no line like %r:\n%s" % (code, words, said))


def second(folder):
    daemon = Victim(folder)
    try:
        return daemon.process.wait(REFUSAL_S), daemon.output()
    except subprocess.TimeoutExpired:
        raise Failure("the second did not end") from None
    finally:
        daemon.kill()


def read_only(folder):
    os.chmod(folder.data, 0o500)
    try:
        refused(folder, rb"(cannot be written|read-only|permission denied)")
    finally:
        os.chmod(folder.data, 0o700)


def open_to_others(folder):
    """Anybody may write: refused. Others may look: said, and taken."""
    os.chmod(folder.data, 0o777)
    try:
        refused(folder, rb"data directory .*anybody may write.*chmod 700 ")
        os.chmod(folder.data, 0o755)
        said = holds(folder)
        if not re.search(r"warning: the data directory is open to others: chmod 700 ", said):
            raise Failure("no warning of mode 0755:\n%s" % said)
        for name in os.listdir(folder.data):
            mode = os.stat(os.path.join(folder.data, name)).st_mode & 0o777
            if mode != 0o600:
                raise Failure("%s has mode %o" % (name, mode))
    finally:
        os.chmod(folder.data, 0o700)
    if "open to others" in holds(folder):
        raise Failure("a warning of mode 0700")


def mounted_read_only(folder):
    if os.geteuid() != 0:
        raise Skip("mounting needs root")
    if subprocess.run(["mount", "--bind", folder.data, folder.data], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder.data], check=True)
        refused(folder, rb"read-only")
    finally:
        subprocess.run(["umount", folder.data], check=True)


def wrong_owner(folder):
    if os.geteuid() != 0:
        raise Skip("needs root, to give a directory away")
    mine = os.stat(folder.data)
    os.chown(folder.data, OTHER_UID, OTHER_UID)
    try:
        refused(folder, rb"(permission denied|belongs to|owner)")
    finally:
        os.chown(folder.data, mine.st_uid, mine.st_gid)


def changed_manifest(folder, words, change):
    keep = manifest(folder) + ".keep"
    shutil.copy2(manifest(folder), keep)
    os.rename(keep, folder.path + "/MANIFEST.keep")
    try:
        change(manifest(folder))
        refused(folder, words)
    finally:
        # written in place: it stays the daemon's user's
        with open(folder.path + "/MANIFEST.keep", "rb") as source:
            with open(manifest(folder), "wb") as file:
                file.write(source.read())


def newer_manifest(folder):
    build = os.environ.get("ROLLCALL_BUILD", os.path.join(protocol.TOP, "build"))
    program = os.path.join(build, "tests", "recovery", "newer")
    changed_manifest(folder, rb"MANIFEST.*version",
                     lambda path: subprocess.run([program, path], check=True))


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        one = file.read(1)[0] ^ 1
        file.seek(at)
        file.write(bytes([one]))


def damaged_manifest(folder):
    changed_manifest(folder, rb"MANIFEST", lambda path: flip(path, 30))


def cut_manifest(folder):
    changed_manifest(folder, rb"MANIFEST", lambda path: os.truncate(path, os.stat(path).st_size - 9))


def no_manifest(folder):
    os.rename(manifest(folder), folder.path + "/MANIFEST.away")
    try:
        refused(folder, rb"MANIFEST")
    finally:
        os.rename(folder.path + "/MANIFEST.away", manifest(folder))


def tables(folder):
    """The files of tables, one of each space at least."""
    found = sorted(name for name in os.listdir(folder.data) if name.endswith(".table"))
    if len({name.split("-")[0] for name in found}) < 2:
        raise Failure("no table of each space: %s" % found)
    return found


def damaged_table(folder):
    """A bit in a page, in the header, at the end: each time refused by name, and refused again."""
    name = tables(folder)[0]
    path = os.path.join(folder.data, name)
    for at in (5000, 20, os.stat(path).st_size - 20):
        flip(path, at)
        for _ in range(2):
            refused(folder, re.escape(name.encode()))
        flip(path, at)


def swapped_tables(folder):
    first, *_, last = (os.path.join(folder.data, name) for name in tables(folder))
    away = folder.path + "/table.away"

    def swap():
        os.rename(first, away)
        os.rename(last, first)
        os.rename(away, last)

    swap()
    refused(folder, rb"\.table")
    swap()


def missing_table(folder):
    path = os.path.join(folder.data, tables(folder)[0])
    os.rename(path, folder.path + "/table.away")
    refused(folder, re.escape(os.path.basename(path).encode()))
    os.rename(folder.path + "/table.away", path)


def changed_config(folder, words, change):
    with open(folder.config, encoding="ascii") as file:
        usual = file.read()
    try:
        with open(folder.config, "w", encoding="ascii") as file:
            file.write(change(usual))
        refused(folder, words)
    finally:
        with open(folder.config, "w", encoding="ascii") as file:
            file.write(usual)


def space_missing(folder):
    changed_config(folder, rb"space liked", lambda text: text[:text.index("  liked:")])


def space_of_other_kind(folder):
    def change(text):
        return text[:text.index("  feed:")] + (
            "  feed:\n    kind: phantom\n    table-size: 64KiB\n    tables: 4\n"
            "    oldest: refuse\n") + text[text.index("  liked:"):]

    changed_config(folder, rb"space feed.*kind", change)


def slot_missing(folder):
    """A typo in a slot's name; and what is let go is not there to be let go a second time."""
    changed_config(folder, rb"space feed: slots: like is missing, 3000 records have it; .*forget: \[like\]",
                   lambda text: text.replace("like:", "liek:", 1))


def dumps_max_lowered(folder):
    """Tables that a smaller dumps-max would drop."""
    folder.configure(dict(VALUES, oldest="dump", memory="512MiB"))
    daemon = Victim(folder)
    try:
        daemon.serve()
        client = daemon.connect()
        for begin in range(IDS.stop, IDS.stop + DUMPED_IDS, 500):
            client.socket.sendall(b"".join(b"incr feed:%d.like 1 noreply\r\n" % one
                                           for one in range(begin, begin + 500)) + b"mn\r\n")
            client.ask(b"", (b"MN\r\n",))
        until = time.monotonic() + REFUSAL_S
        while int(client.stats(b"spaces")["feed:cold_tables"]) < 3:
            if time.monotonic() > until:
                raise Failure("no three tables are dumped")
            time.sleep(0.05)
        client.socket.close()
        problem = daemon.stop(False)
        if problem:
            raise Failure(problem)
    finally:
        daemon.kill()
    changed_config(folder, rb"space feed: dumps-max: 1 has no room for \d+ dumped tables with \d{4,5} "
                   rb"ids; .*forget: \[dumps-max\]",
                   lambda text: text.replace("  feed:\n", "  feed:\n    dumps-max: 1\n", 1))


CASES = (two_daemons, moved_away, read_only, open_to_others, mounted_read_only, wrong_owner, newer_manifest,
         damaged_manifest, cut_manifest, no_manifest, damaged_table, swapped_tables,
         missing_table, space_missing, space_of_other_kind, slot_missing, dumps_max_lowered)


def run(case):
    """Prints how it went; false: it failed."""
    name = case.__name__.replace("_", " ")
    folder = Folder()
    try:
        folder.configure(VALUES)
        fill(folder)
        case(folder)
        holds(folder)
        print("ok   " + name)
    except Skip as reason:
        print("SKIP: %s: %s" % (name, reason))
    except (Failure, judge.Lost, protocol.Mismatch, OSError, subprocess.SubprocessError) as problem:
        folder.keep()
        print("FAIL %s: %s\n    kept: %s" % (name, problem, folder.path))
        return False
    finally:
        sys.stdout.flush()
        folder.remove()
    return True


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # mounts and daemons go in `finally`
    return run_cases(CASES, run)


if __name__ == "__main__":
    sys.exit(main())
