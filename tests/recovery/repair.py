#!/usr/bin/env python3
"""Directories that are damaged and repaired: what of a real daemon's ids is there afterwards?

    tests/recovery/repair.py [--seed N] [--rounds N] [NAME ...]

$ROLLCALLD as in crash.py, $ROLLCALL beside it. A daemon with `oldest: dump` writes counters and
existence keys until most tables are dumped, and is stopped; a second one writes more, which is in
the journal alone, and is killed. Then in each round one file of the directory is damaged: a page of
rubbish, or a bit, somewhere in it. It must be so that

- `rollcall repair` says so (exit 1) and changes nothing; with --yes it ends with 0,
- `rollcall verify` finds nothing then, and a daemon starts,
- every id has the value it had, or is said to be lost: no more ids are gone than the bad pages of
  tables had room for, or the bad stretch of the journal; where nothing is said to be lost nothing is.

Lines are `ok`, or `FAIL` with what was said; exit 1 if one failed. Seeds are fixed but in long runs.
"""
import argparse
import functools
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys

import judge
from victim import (DATA, FALSE_POSITIVES, Failure, Folder, Victim, answers, protocol, scale_of_run,
                    seed_of_run)

PAGE = 4096
IDS = 24000  # written by the first daemon: several dumped tables of each space
MORE = 6000  # by the second: journal alone
LARGE_EVERY = 50  # ids: one has a value that does not fit its slot
APART = str(1 << 40)  # the number of the first table for ids apart
LATE, LATE_STEP = 9000, 70  # of so many ids one in so many is written again
BLOCK = 500
ROUNDS = 4  # of each kind of file
PAGE_RECORDS = 320  # a page of counters holds at most: 64 groups of 5
LINE_MEMBERS = 64  # a page of a filter: lines, of at most so many members
SMALLEST_RECORD = 24  # of the journal
TOOL_S = 60

CONFIG = """threads: 2
memory: 256MiB
%(data)scold: {cache: 1MiB, threads: 2}
spaces:
  feed:
    kind: counter
    slots: {repost: 10, comment: 20, like: 20, read: 20}
    role: store
    oldest: %(oldest)s
    table-size: 64KiB
    tables: %(tables)d
  liked:
    kind: phantom
    false-positives: %(rate).6f
    deletes: yes
    exceptions-memory: 64KiB
    role: store
    oldest: %(oldest)s
    table-size: 64KiB
    tables: %(tables)d
"""


def configure(folder, oldest="dump", tables=4):
    values = {"directory": folder.data, "sync": "everysec", "segment": "1MiB", "buffer": "1MiB",
              "every": "1h", "journal": "1GiB"}
    with open(folder.config, "w", encoding="ascii") as file:
        file.write(CONFIG % {"data": DATA % values, "rate": FALSE_POSITIVES, "oldest": oldest,
                             "tables": tables})


def value_of(one):
    """What feed:ONE has: some are too large for their bits."""
    like = (1 << 40) + one if one % LARGE_EVERY == 0 else one % 1000
    return (-1, one % 77, like, -1)


def write(client, ids):
    for block in (ids[begin:begin + BLOCK] for begin in range(0, len(ids), BLOCK)):
        commands = []
        for one in block:
            value = judge.text_of(value_of(one))
            commands.append(b"set feed:%d 0 0 %d\r\n%s\r\n" % (one, len(value), value))
            commands.append(b"add liked:%d:u0 0 0 1\r\n1\r\n" % one)
        while commands:
            client.socket.sendall(b"".join(commands))
            commands = [command for command, answer in zip(commands, answers(client, len(commands)))
                        if again(answer)]


def again(answer):
    if answer in (b"STORED", b"NOT_STORED"):
        return False
    if answer.startswith(b"SERVER_ERROR") and b"busy" in answer:
        return True
    raise Failure("a write is answered %r" % answer)


def fill(folder):
    """Two daemons: the first is stopped, the second killed."""
    fill_with(folder, range(1, IDS), True)
    fill_with(folder, range(IDS, IDS + MORE), False)


def fill_with(folder, ids, stop):
    daemon = Victim(folder)
    try:
        daemon.serve()
        client = daemon.connect()
        write(client, ids)
        client.socket.close()
        if stop:
            problem = daemon.stop(False)
            if problem:
                raise Failure(problem)
        else:
            daemon.kill_now()
    finally:
        daemon.kill()


def tool(verb, folder, *options):
    program = os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))
    asan = os.environ.get("ASAN_OPTIONS", "")
    # as root it becomes another user, and the leak checker may not look at such a process
    environ = dict(os.environ, ASAN_OPTIONS=asan + (":" if asan else "") + "detect_leaks=0")
    done = subprocess.run([program, verb, *options, folder.data], timeout=TOOL_S, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ)
    return done.returncode, done.stdout


def contents(path):
    found = {}
    for top, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(top, name), "rb") as file:
                found[os.path.join(top, name)] = hashlib.sha256(file.read()).hexdigest()
    return found


def give(folder):
    """What root has put there is the daemon's."""
    owner = os.stat(folder.data)
    for top, folders, names in os.walk(folder.data):
        for name in folders + names:
            os.chown(os.path.join(top, name), owner.st_uid, owner.st_gid)


# ---- what is there afterwards ----


@functools.cache
def requests(block):
    return judge.counters_request(block), judge.members_request(block)


@functools.cache
def whole(block):
    """What is answered where nothing is gone and nothing else found; most blocks are so each time."""
    counters, members = bytearray(), bytearray()
    for one in block:
        counters += judge.value_line(one, judge.text_of(value_of(one)))
        members += b"VALUE liked:%d:u0 0 1\r\n1\r\n" % one
    return bytes(counters) + b"END\r\n", bytes(members) + b"END\r\n"


def read_back(folder):
    """(counters that are gone, members that are gone); another value is a failure."""
    gone, denied = set(), set()
    daemon = Victim(folder)
    try:
        daemon.serve()
        client = daemon.connect()
        for begin in range(1, IDS + MORE, BLOCK):
            block = range(begin, min(begin + BLOCK, IDS + MORE))
            counters, members = [client.ask(request) for request in requests(block)]
            if (counters, members) == whole(block):
                continue
            found, there = judge.counters_in(counters), judge.members_in(members)
            for one in block:
                compare(one, found.get(one), gone)
                if (one, 0) not in there:
                    denied.add(one)
        client.socket.close()
        problem = daemon.stop(False)
        if problem:
            raise Failure(problem)
    finally:
        daemon.kill()
    return gone, denied


def compare(one, found, gone):
    wanted = value_of(one)
    without = wanted[:2] + (-1,) + wanted[3:]  # its value beside is lost
    if found is None or (one % LARGE_EVERY == 0 and found == without):
        gone.add(one)
    elif found != wanted:
        raise Failure("feed:%d is %s, not %s" % (one, found, wanted))


def judge_loss(said, gone, denied):
    """No more may be gone than was said to be lost."""
    pages = {"feed": 0, "liked": 0}
    entries = {"feed": 0, "liked": 0}
    space = None
    journal = 0
    for line in said.splitlines():
        named = re.search(r"/(\w+)-\d+-\d+-\d+\.table: damaged", line)
        space = named.group(1) if named else space
        lost = re.match(r"  pages (\d+) to (\d+) of the table's", line)
        if lost:
            pages[space] += int(lost.group(2)) - int(lost.group(1)) + 1
        lost = re.match(r"  (\d+) .* are lost \(page", line)
        if lost:
            entries[space] += int(lost.group(1))
        lost = re.search(r": (\d+) bytes, LSN \d+ to \d+, about \d+ change.*: lost", line)
        if lost:
            journal += int(lost.group(1)) // SMALLEST_RECORD
    most = {"feed": pages["feed"] * PAGE_RECORDS + entries["feed"] + journal,
            "liked": pages["liked"] * 64 * LINE_MEMBERS + entries["liked"] + journal}
    for name, lost in (("feed", gone), ("liked", denied)):
        if len(lost) > most[name]:
            raise Failure("%d ids of %s are gone, at most %d were said to be lost: %s ...\n%s" % (
                len(lost), name, most[name], sorted(lost)[:5], said))


def beside(folder):
    """Counters in the entries of table files: not in their pages, so no bad page concerns them."""
    program = os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))
    found = set()
    for name in files(folder, "feed"):
        text = subprocess.run([program, "inspect", "--limit", "0", os.path.join(folder.data, name)],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
        part = text[text.index("\nsection 0"):text.index("\nsection 1")]
        found.update(int(one) for one in re.findall(r"^  id +(\d+)  sub", part, re.M))
    return found


# ---- damage ----


def damage(path, rng):
    """A page of rubbish, or a bit: what was done."""
    size = os.stat(path).st_size
    with open(path, "r+b") as file:
        if rng.random() < 0.3:
            at = rng.randrange(size)
            file.seek(at)
            one = file.read(1)[0] ^ 1 << rng.randrange(8)
            file.seek(at)
            file.write(bytes([one]))
            return "a bit at %d" % at
        at = rng.randrange(size // PAGE) * PAGE
        file.seek(at)
        file.write(rng.randbytes(PAGE))
        return "a page at %d" % at


def used_bytes(path):
    """Of a segment: without the zeroes at its end."""
    with open(path, "rb") as file:
        return len(file.read().rstrip(b"\0"))


def files(folder, kind):
    names = sorted(os.listdir(folder.data))
    if kind == "journal":
        return [name for name in names if re.fullmatch(r"journal-[0-9a-f]{16}", name)]
    named = set(re.findall(r"^file (\S+) ", manifest_of(folder), re.M))  # others are left over
    return [name for name in names if name.startswith(kind) and name in named]


def round_of(folder, kind, rng):
    name = rng.choice(files(folder, kind))
    path = os.path.join(folder.data, name)
    size = os.stat(path).st_size
    if kind == "journal":
        os.truncate(path, used_bytes(path))  # what was never written is not damaged
        damaged = damage(path, rng)
        os.truncate(path, size)
    else:
        damaged = damage(path, rng)
    where = "%s, %s" % (name, damaged)
    before = contents(folder.data)
    code, said = tool("repair", folder)
    if contents(folder.data) != before:
        raise Failure("%s: without --yes it changes files" % where)
    found = code == 1
    if not found and code != 0:
        raise Failure("%s: repair ends with %d:\n%s" % (where, code, said))
    if code == 0 and kind != "journal":  # a mark is one of two, an end may be torn
        raise Failure("%s: nothing is found:\n%s" % (where, said))
    if found:
        code, said = tool("repair", folder, "--yes")
        if code != 0:
            raise Failure("%s: repair --yes ends with %d:\n%s" % (where, code, said))
    code, found_still = tool("verify", folder)
    if code != 0:
        raise Failure("%s: verify ends with %d:\n%s\nrepair said:\n%s" % (
            where, code, found_still, said))
    spared = beside(folder) if "values beside their ids are lost" not in said else set()
    gone, denied = read_back(folder)
    if gone & spared:
        raise Failure("%s: %s are in no bad page and gone" % (where, sorted(gone & spared)[:5]))
    if kind == "journal" and not found and len(gone) <= 1 and len(denied) <= 1:
        return where, gone, denied  # the very last record
    judge_loss(said, gone, denied)
    return where, gone, denied


# ---- cases ----


def damaged_files(folder, kind, options):
    pristine = folder.path + "/pristine"
    shutil.copytree(folder.data, pristine, symlinks=True)
    for number in range(options.rounds):
        rng = random.Random("%d %s %d" % (options.seed, kind, number))
        shutil.rmtree(folder.data)
        shutil.copytree(pristine, folder.data)
        folder.own(folder.data)
        give(folder)
        where, gone, denied = round_of(folder, kind, rng)
        print("ok   %s: %d ids, %d members lost" % (where, len(gone), len(denied)))
        sys.stdout.flush()
    shutil.rmtree(folder.data)
    os.rename(pristine, folder.data)
    folder.own(folder.data)
    give(folder)


def acknowledged(folder, _options):
    """One bit in the middle of what was acknowledged and never synced: refused by name, and all of
    it had again."""
    name = max(files(folder, "journal"), key=lambda one: used_bytes(os.path.join(folder.data, one)))
    path = os.path.join(folder.data, name)
    with open(path, "r+b") as file:
        at = PAGE + (used_bytes(path) - PAGE) // 2
        file.seek(at)
        one = file.read(1)[0] ^ 4
        file.seek(at)
        file.write(bytes([one]))
    daemon = Victim(folder)
    try:
        code = daemon.process.wait(TOOL_S)
    finally:
        daemon.kill()
    wanted = "%s: offset " % name, "see: rollcall repair %s" % folder.data
    if code != 1 or not all(part in daemon.output() for part in wanted):
        raise Failure("the start ends with %d:\n%s" % (code, daemon.output()))
    code, said = tool("repair", folder, "--yes")
    if code != 0:
        raise Failure("repair ends with %d:\n%s" % (code, said))
    gone, denied = read_back(folder)
    if gone or denied:
        raise Failure("%d ids and %d members are gone for one bit:\n%s" % (
            len(gone), len(denied), said))
    print("ok   a bit in %s" % name)


def apart(folder, _options):
    """The file of ids apart is lost whole: the rest serves, all ids that were not apart."""
    name = next(one for one in os.listdir(folder.data) if one.startswith("feed") and APART in one)
    os.unlink(os.path.join(folder.data, name))
    code, said = tool("repair", folder, "--yes")
    if code != 0 or "ids of space feed that were apart" not in said:
        raise Failure("repair ends with %d:\n%s" % (code, said))
    gone, denied = read_back(folder)
    if gone or denied:
        raise Failure("%d ids and %d members are gone that were not apart" % (len(gone), len(denied)))
    print("ok   without %s" % name)


def tables(folder, _options):
    """The file of each table but the newest is lost whole, alone and two at once: repair gives up its
    ids and nothing else, and those are refused from then on as ids below the oldest table are."""
    fill_with(folder, range(IDS - LATE, IDS, LATE_STEP), False)  # changes of old tables in the journal
    pristine = folder.path + "/pristine"
    shutil.copytree(folder.data, pristine)
    for kind in ("feed", "liked"):
        ranges = tables_of(folder, kind)
        losses = [[one] for one in ranges[:-1]] + [ranges[1:3]]
        for lost in losses:
            shutil.rmtree(folder.data)
            shutil.copytree(pristine, folder.data)
            folder.own(folder.data)
            give(folder)
            for _, _, name in lost:
                os.unlink(os.path.join(folder.data, name))
            without(folder, kind, lost)
    shutil.rmtree(folder.data)
    shutil.copytree(pristine, folder.data)
    first, last, name = tables_of(folder, "feed")[-1]
    os.unlink(os.path.join(folder.data, name))
    code, said = tool("repair", folder, "--yes")
    if code != 1 or "cannot go on without its table of ids %d to %d" % (first, last) not in said:
        raise Failure("without the newest table repair ends with %d:\n%s" % (code, said))
    shutil.rmtree(folder.data)
    os.rename(pristine, folder.data)
    folder.own(folder.data)
    give(folder)


def tables_of(folder, kind):
    """(first id, last id, name) of each table, rising; no layers, overlays, or ids apart."""
    found = re.findall(r"^file (%s-\d+-0-\d+\.table) .* first (\d+) last (\d+) " % kind,
                       manifest_of(folder), re.M)
    return sorted((int(first), int(last), name) for name, first, last in found if APART not in name)


def layers(folder, _options):
    """A layer is lost whole: its table is there, without the ids that came late."""
    clear(folder)
    configure(folder, "refuse", 16)
    fill_with(folder, range(1, IDS, 2), True)
    fill_with(folder, range(2, IDS // 4, 2), False)
    fill_with(folder, range(IDS, IDS + 2), True)
    before = read_back(folder)[0]
    name = re.search(r"^file (feed-\d+-1-\d+\.table)", manifest_of(folder), re.M).group(1)
    os.unlink(os.path.join(folder.data, name))
    code, said = tool("repair", folder, "--yes")
    if code != 0 or "a layer of table" not in said or "and it has no further layer" not in said:
        raise Failure("without %s repair ends with %d:\n%s" % (name, code, said))
    gone = read_back(folder)[0] - before
    if not gone or any(one % 2 == 1 for one in gone):
        raise Failure("without %s: %d ids are gone, and should not be" % (name, len(gone)))
    print("ok   without %s: %d ids gone" % (name, len(gone)))


def clear(folder):
    for name in os.listdir(folder.data):
        path = os.path.join(folder.data, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def manifest_of(folder):
    with open(os.path.join(folder.data, "MANIFEST"), encoding="ascii") as file:
        return file.read()


def without(folder, kind, lost):
    names = ", ".join(name for _, _, name in lost)
    code, said = tool("repair", folder, "--yes")
    if code != 0 or len(re.findall("is left out: all its ids", said)) != len(lost):
        raise Failure("without %s repair ends with %d:\n%s" % (names, code, said))
    code, said = tool("verify", folder)
    if code != 0:
        raise Failure("without %s verify ends with %d:\n%s" % (names, code, said))
    gone, denied = read_back(folder)
    ids = {one for first, last, _ in lost for one in range(first, min(last, IDS + MORE - 1) + 1)}
    missing, other = (gone, denied) if kind == "feed" else (denied, gone)
    if other or missing - ids:
        raise Failure("without %s: %d of the other space are gone, and %s" % (
            names, len(other), sorted(missing - ids)[:5]))
    if len(missing) < 2:
        raise Failure("without %s: nothing is gone" % names)
    refused(folder, kind, max(missing), lost[-1][0] > 0)
    print("ok   without %s: %d ids gone" % (names, len(missing)))
    sys.stdout.flush()


def refused(folder, kind, one, taken_over):
    """A lost id does not count again from nothing."""
    if kind != "feed" or not taken_over:
        return
    daemon = Victim(folder)
    try:
        daemon.serve()
        client = daemon.connect()
        client.socket.sendall(b"incr feed:%d.like 1\r\n" % one)
        answer = answers(client, 1)[0]
        if answer != b"CLIENT_ERROR id below the oldest table":
            raise Failure("feed:%d, which is lost, is answered %r" % (one, answer))
        client.socket.close()
    finally:
        daemon.kill()


def events(folder, options):
    """Records that tell of tables: without the one that opens a table nothing is lost; where a later
    one is refused for want of another, what the refusal says to give up can be given up."""
    clear(folder)
    configure(folder, "recycle", 24)
    fill_with(folder, range(1, IDS + MORE), False)
    pristine = folder.path + "/pristine"
    shutil.copytree(folder.data, pristine)
    found = [(name, *event) for name in files(folder, "journal") for event in events_of(folder, name)]
    for wanted in ("open", "settle"):
        name, at, _ = next(event for event in found if event[2] == wanted)
        shutil.rmtree(folder.data)
        shutil.copytree(pristine, folder.data)
        folder.own(folder.data)
        give(folder)
        with open(os.path.join(folder.data, name), "r+b") as file:
            file.seek(at + 16)
            file.write(b"\xff\xaa\x55\x11")
        code, said = tool("repair", folder, "--yes")
        if code != 0 or "by what is left of it an event of space" not in said:
            raise Failure("repair ends with %d:\n%s" % (code, said))
        if wanted == "settle":
            give_up(folder)
        gone, denied = read_back(folder)
        if wanted == "open" and (gone or denied):
            raise Failure("%d ids and %d members are gone for an event" % (len(gone), len(denied)))
        print("ok   without %s: %d ids, %d members lost" % (wanted, len(gone), len(denied)))


def events_of(folder, name):
    """(offset, what) of each."""
    program = os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))
    text = subprocess.run([program, "inspect", "--limit", "0", os.path.join(folder.data, name)],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    return [(int(one.group(1)), one.group(2))
            for one in re.finditer(r"^ +(\d+) +\d+ +\d+ event .* space \d+ (\w+)", text, re.M)]


def give_up(folder):
    """What a refused start says to do."""
    daemon = Victim(folder)
    try:
        code = daemon.process.wait(TOOL_S)
    finally:
        daemon.kill()
    advice = re.search(r"rollcall repair --drop-from (\d+) ", daemon.output())
    if code != 1 or not advice:
        raise Failure("the start ends with %d:\n%s" % (code, daemon.output()))
    code, said = tool("repair", folder, "--drop-from", advice.group(1), "--yes")
    if code != 0 or ": given up: " not in said:
        raise Failure("repair ends with %d:\n%s" % (code, said))


CASES = {
    "counters": lambda folder, options: damaged_files(folder, "feed", options),
    "members": lambda folder, options: damaged_files(folder, "liked", options),
    "journal": lambda folder, options: damaged_files(folder, "journal", options),
    "acknowledged": acknowledged,
    "apart": apart,
    "tables": tables,
    "layers": layers,  # from here on something else is put there
    "events": events,
}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    scale = scale_of_run()
    parser = argparse.ArgumentParser(description="See the top of this file.")
    parser.add_argument("--seed", type=int, default=0 if scale > 100 else 1,
                        help="0: as $ROLLCALL_TEST_SEED says")
    parser.add_argument("--rounds", type=int, default=max(1, ROUNDS * scale // 100))
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    options.seed = seed_of_run(options.seed)
    folder = Folder()
    try:
        configure(folder)
        fill(folder)
        for name in options.names or CASES:
            CASES[name](folder, options)
    except (Failure, judge.Lost, protocol.Mismatch, OSError, subprocess.SubprocessError) as problem:
        folder.keep()
        print("FAIL %s\n    kept: %s" % (problem, folder.path))
        return 1
    finally:
        sys.stdout.flush()
        folder.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
