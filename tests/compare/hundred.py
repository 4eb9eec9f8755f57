#!/usr/bin/env python3
"""The tables of conf/fleet/hundred.md, from measured figures: 10 billion posts on paper.

    tests/compare/hundred.py            do the page's tables say what comes out now? (a test)
    tests/compare/hundred.py --write    has them say it

Times are those of tools/compare.md, what comes from elsewhere is below with its place. Memory is what
`rollcall plan` says ($ROLLCALL names the program).
"""
import json
import math
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE_FILE = os.path.join(TOP, "conf", "fleet", "hundred.md")

# What is asked for
POSTS_A_DAY, DAYS = 100e6, 100
INCREMENTS, IDS_READ, PAGE = 1e6, 50e6, 20
SLOTS = "repost:20,comment:20,like:20,read:20"
KEY_BYTES = len("feed:7130316800000.")
# A machine, and how full it may be
CORES, MEMORY, NETWORK, DISK, BUSY = 8, 64 << 30, 1.25e9, 500e6, 0.5
FEWEST = 3  # nodes of a shard
SHARDS, CHOSEN = (1, 2, 4, 8, 16, 32, 64), 4
# src/repl/DESIGN.md: bytes and seconds of a change
JOURNAL_BYTES, REPLAY, FEED_S, FOLLOWER_S = 24, 94e6, 64e-9, 23e-9
# src/repl/README.md: without writes when a leader, or a sync follower, is gone
LEADER_GONE_S, SYNC_GONE_S = 7, 2
CHECKPOINT = 16 << 30  # checkpoint.journal of such a node


def compare():
    """Seconds of the server a request, by tools/compare.md."""
    with open(os.path.join(TOP, "tools", "compare.md"), encoding="utf-8") as file:
        text = file.read()

    def find(title, row):
        found = re.search(r"\*\*%s\*\*.*?^ +%s +([0-9.]+)" % (re.escape(title), row), text, re.DOTALL | re.MULTILINE)
        if found is None:
            raise SystemExit("tools/compare.md has no %s, %s" % (title, row))
        return float(found[1]) * 1e-6
    ours = r"rollcalld +text \*"
    large = "Ids (pages of 20 ids, one worker)"
    page = find("feed page: 4 counters of 20 ids", ours)
    one = find("4 counters of one id", ours)
    each = (page - one) / (PAGE - 1)
    grown = page * find(large, "100,000,000") / find(large, "1,000,000")
    return {"request": one - each, "id": (grown - one + each) / PAGE, "page": grown,
            "incr": find("incr, one at a time", ours), "incr 16": find("incr, 16 pipelined", ours),
            "reply": int(re.search(r"20 ids\*\*, 1,000,000 ids; (\d+) bytes a reply", text)[1])}


def plan(shards):
    words = ["plan", "--json", "--ids-per-day", "%d" % (POSTS_A_DAY / shards), "--days", str(DAYS), "--slots", SLOTS]
    said = json.loads(subprocess.run([os.environ.get("ROLLCALL", os.path.join(TOP, "build", "rollcall")), *words],
                                     stdout=subprocess.PIPE, check=True).stdout)
    space = said["spaces"][0]
    return {"memory": said["memory_bytes"], "tables": space["memory_bytes"], "each": space["bytes_each"],
            "days": said["first"][0]["day"], "disk": said["dates"][-1]["disk_bytes"]}


def requests(shards):
    return shards * (1 - (1 - 1 / shards) ** PAGE)


class Fleet:
    def __init__(self, shards, cost):
        self.shards, self.requests, self.plan = shards, requests(shards), plan(shards)
        self.page_s = self.requests * cost["request"] + PAGE * cost["id"]
        self.reading = IDS_READ / PAGE * self.page_s  # cores
        self.readers = math.ceil(self.reading / shards / (CORES * BUSY))
        self.nodes = max(FEWEST, 1 + self.readers)  # the leader takes the writes
        self.machines = shards * self.nodes


def table(head, rows):
    lines = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head)] + rows]
    return "\n".join(lines) + "\n"


def table_shards(cost):
    rows = []
    for fleet in (Fleet(shards, cost) for shards in SHARDS):
        rows.append(["%d" % fleet.shards, "%.1f" % fleet.requests, "%.1f" % (fleet.page_s * 1e6),
                     "%.0f" % fleet.reading, "%.0f" % (fleet.plan["memory"] / 1e9), "%d" % fleet.nodes,
                     "%d" % fleet.machines])
    return table(["shards", "requests a page", "µs a page", "cores busy with pages", "GB of memory a node",
                  "nodes a shard", "machines"], rows)


class Load:
    """What each machine of the chosen fleet does."""

    def __init__(self, cost):
        self.fleet = fleet = Fleet(CHOSEN, cost)
        pages = IDS_READ / PAGE / fleet.shards / fleet.readers
        self.changes = INCREMENTS / fleet.shards
        self.journal = self.changes * JOURNAL_BYTES
        followers = fleet.nodes - 1
        self.write_cores = self.changes * (cost["incr"] + followers * (FEED_S + FOLLOWER_S))
        self.write_cores_16 = self.changes * (cost["incr 16"] + followers * (FEED_S + FOLLOWER_S))
        self.replay = self.journal / REPLAY
        self.read_cores = fleet.reading / fleet.shards / fleet.readers
        self.out_reader = pages * cost["reply"]
        self.in_reader = pages * (PAGE * (KEY_BYTES + 1) + fleet.requests * len("get\r\n")) + self.journal
        self.out_leader = self.journal * followers
        self.round_s = CHECKPOINT / self.journal
        self.images = fleet.plan["tables"] / self.round_s


def table_machine(cost):
    load = Load(cost)
    memory = "%.0f GB of %.0f" % (load.fleet.plan["memory"] / 1e9, MEMORY / 1e9)
    disk = "%.0f MB/s" % ((load.journal + load.images) / 1e6)
    return table(["", "a leader", "one that is read"], [
        ["memory", memory, memory],
        ["cores busy of %d" % CORES, "%.1f (pipelined by 16: %.1f)" % (load.write_cores, load.write_cores_16),
         "%.1f" % (load.read_cores + load.replay)],
        ["network, out", "%.0f MB/s of journal" % (load.out_leader / 1e6), "%.0f MB/s" % (load.out_reader / 1e6)],
        ["network, in", "%.0f MB/s" % (load.changes * (KEY_BYTES + len("incr like 1\r\n")) / 1e6),
         "%.0f MB/s" % (load.in_reader / 1e6)],
        ["journal", "%.1f MB/s" % (load.journal / 1e6), "%.1f MB/s" % (load.journal / 1e6)],
        ["disk, journal and images", disk, disk],
        ["disk, space", *["%.0f GB" % ((load.fleet.plan["disk"] + CHECKPOINT) / 1e9)] * 2]])


def table_full(cost):
    """What saturates first: each as a share of what there is."""
    load = Load(cost)
    shares = [
        ("memory, all ids hot", load.fleet.plan["memory"] / MEMORY, "older tables go to the disk"),
        ("cores of those that are read", (load.read_cores + load.replay) / CORES, "one more of them a shard"),
        ("cores of a leader", load.write_cores / CORES, "clients that pipeline; then another shard"),
        ("network of those that are read", load.out_reader / NETWORK, "one more of them a shard"),
        ("carrying out the journal, a follower's one thread", load.replay, "another shard"),
        ("disk of any node, written", (load.journal + load.images) / DISK, "a larger checkpoint.journal"),
    ]
    return table(["", "used", "full at", "then"], [[what, "%.0f %%" % (100 * share), "%.1f × the load" % (1 / share), then]
                                                for what, share, then in sorted(shares, key=lambda row: -row[1])])


def table_recovery(cost):
    load = Load(cost)
    copied = load.fleet.plan["tables"] / min(NETWORK, DISK)
    level = copied * load.journal / (REPLAY - load.journal)
    again = "%.1f minutes: a copy of %.0f GB by the disk, %.0f s of journal" % (
        (copied + level) / 60, load.fleet.plan["tables"] / 1e9, level)
    left = (load.read_cores * load.fleet.readers / (load.fleet.readers - 1) + load.replay) / CORES
    readers = "go on; the others' cores are %.0f %% busy" % (100 * left)
    restart = load.fleet.plan["tables"] / DISK + CHECKPOINT / REPLAY
    return table(["lost", "writes", "reads", "whole again on an empty machine in"], [
        ["a leader's machine", "of its shard: %d s" % LEADER_GONE_S, readers, again],
        ["the sync follower's", "of its shard: %d s" % SYNC_GONE_S, "as above", "as above"],
        ["another one's", "go on", "as above", "as above"],
        ["a rack, which has one node of each shard",
         "%d s, of shards that it led" % LEADER_GONE_S, "as above", "as above, all shards at a time"],
        ["power everywhere", "until etcd, and of each shard leader or sync follower, are back",
         "until a node of a shard is back",
         "%.1f minutes at most: its tables by the disk, %.0f GB of journal" % (restart / 60, CHECKPOINT / 1e9)]])


def tables():
    cost = compare()
    return {"shards": table_shards(cost), "machine": table_machine(cost), "full": table_full(cost),
            "recovery": table_recovery(cost)}


def main():
    with open(PAGE_FILE, encoding="utf-8") as file:
        page = text = file.read()
    for name, rows in tables().items():
        text, count = re.subn(r"(<!-- hundred.py: %s -->\n\n)((?:\|.*\n)*)" % name,
                              lambda at, rows=rows: at.group(1) + rows, text)
        if count != 1:
            raise SystemExit("%s has not one place for the table: %s" % (PAGE_FILE, name))
    if "--write" in sys.argv[1:]:
        with open(PAGE_FILE, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    if text != page:
        print("conf/fleet/hundred.md is not what comes out now: tests/compare/hundred.py --write")
        return 1
    print("4 tables are as they come out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
