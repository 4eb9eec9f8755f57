#!/usr/bin/env python3
"""Followers of followers, an upgrade, and a follower whose disk is full or hangs, or with little memory.

    tests/repl/group.py [--directory DIR] [--seed N] [--only PART] [--rounds N]

chain    three follows two, which follows one, and any of them is killed; then one is gone for good,
         two is promoted, and three goes on with it.
upgrade  both nodes get a new version, $ROLLCALLD_NEXT (by default the same), without a loss: the
         follower is restarted with it and promoted, the other one follows. Counts what was acknowledged,
         and says how long no change was.
hang     writes and syncs of the follower's journal hang: the leader and its clients do not notice.
full     the follower's disk is full: it says so, stops reading, and goes on when there is room.
room     on a full disk a follower is promoted, and a leader is to follow: either says so, goes on answering reads, and
         does it when there is room; with its ballast the leader does it at once.
memory   the leader's tables take more than the follower may have: it says by how much before it fetches
         anything, and where it has them already it does not start.
grow     those tables grow later, when the leader is configured anew: it says by how much, and goes on

Writers and what is judged are those of pair.py. `full` needs root, to mount a disk.
"""
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recovery"))
import full as disks  # noqa: E402
import hang as hangs  # noqa: E402
import machine  # noqa: E402
import pair as nodes  # noqa: E402
from victim import Failure, protocol  # noqa: E402

DISK_MB = 128
LEFT_BYTES = 1 << 20  # of the disk, for the follower's table files: the journal has its own room
LONG_S = 60
IDS_MAX, IDS_AT_ONCE = 4000000, 50000
GROWN = "(space wide"
TOO_LITTLE = "tables take 224.0 MiB more than those here (space big 224.0 MiB), and memory of 256MiB leaves "


def written(node):
    return int(node.stats()["written"])


def wait_written(node, more):
    """The stream of a node grows by so much."""
    goal = written(node) + more
    nodes.wait_for(lambda: "%s stands at %d, not %d:\n%s" % (node.name, written(node), goal,
                                                             node.output()[-3000:]),
                   lambda: written(node) >= goal)


# ---- the parts ----

def chain(pair):
    pair.nodes.append(nodes.Node(pair.options.directory, "three"))
    one, two, three = pair.nodes
    pair.lead()
    nodes.level_under_load(three)
    for _ in range(pair.options.rounds):
        node = pair.rng.choice(pair.nodes)
        node.kill()
        node.start()
        nodes.level_under_load(three)
        wait_written(three, 4096)
    refused = three.ask(b"incr feed:1 1")
    if refused != b"SERVER_ERROR not the leader; it is 127.0.0.1:%d\r\n" % two.port:
        raise Failure("a follower's follower says %r to an incr" % refused)
    pair.pause(True)
    nodes.level(one, two)
    nodes.level(two, three)
    one.stop()
    pair.nodes.remove(one)  # writers find two
    two.rollcall("promote", "--force")
    pair.pause(False)
    wait_written(three, 1 << 16)
    pair.finish()
    pair.check_equal()
    for node in pair.nodes:
        pair.check_values(node)
    pair.stop()
    one.folder.remove()


def upgrade(pair):
    before = os.environ["ROLLCALLD"]
    after = os.environ.get("ROLLCALLD_NEXT", before)
    old, new = pair.nodes
    old.configure(ack_by=new.name)
    new.configure(follow=old, ack_by=old.name)
    old.start()
    new.start()
    pair.write()
    nodes.level_under_load(new)
    os.environ["ROLLCALLD"] = after
    try:
        new.stop()
        new.start()
        pair.wait_in_sync()
        wait_written(old, 1 << 16)
        began = time.monotonic()
        old.stop()
        new.rollcall("promote")  # refused if anything were lost
        pair.nodes.reverse()
        old.configure(follow=new, ack_by=new.name)
        old.start()
        pair.wait_in_sync()
        away = time.monotonic() - began
        wait_written(new, 1 << 16)
    finally:
        os.environ["ROLLCALLD"] = before
    pair.finish()
    pair.check_equal()
    for node in pair.nodes:
        pair.check_values(node)
    print("upgrade: %d changes acknowledged, none lost; %d refused in the %.2f s without a leader" % (
        sum(sum(writer.acked.values()) + len(writer.members) for writer in pair.writers),
        sum(writer.refused for writer in pair.writers), away))
    pair.stop()


def hang(pair):
    one, two = pair.nodes
    slow = hangs.Hang(two.folder)
    one.configure(keep="4GiB")
    two.configure(follow=one)
    one.start()
    saved = dict(os.environ)
    os.environ.update(slow.environment())
    try:
        two.start()
    finally:
        os.environ.clear()
        os.environ.update(saved)
    pair.write()
    for calls in ("w", "s", "ws"):
        nodes.level_under_load(two)
        slow.arm("/journal-", calls)
        try:
            nodes.wait_for("%s hangs nowhere" % calls, lambda: slow.waiting() > 0)
            wait_written(one, 1 << 20)  # which fills no buffer of a leader that waits for nobody
        finally:
            slow.disarm()
    pair.finish()
    pair.check_equal()
    pair.check_values(two)
    pair.stop()


def full(pair):
    one, two = pair.nodes
    try:
        disk = disks.Disk(two.folder, DISK_MB)
    except protocol.Mismatch as problem:
        raise nodes.Skipped(problem) from None
    try:
        pair.lead(keep="4GiB")
        for _ in range(pair.options.rounds):
            nodes.level_under_load(two)
            disk.fill(LEFT_BYTES)
            nodes.wait_for(lambda: "the full disk is not noticed: %s" % two.stats(), lambda: stands(two), LONG_S)
            if not two.ask(b"get feed:1001", b"END\r\n").endswith(b"END\r\n"):
                raise Failure("a follower with a full disk answers no reads")
            wait_written(one, 1 << 16)
            disk.free()
        pair.finish()
        pair.check_equal()
        pair.check_values(two)
        pair.stop()
    except Failure:
        shutil.copytree(two.folder.data, os.path.join(two.folder.path, "data-kept"))
        raise
    finally:
        pair.end()
        disk.unmount()


def stands(node):
    """Its journal has ended below the leader's, and it says why."""
    found = node.stats()
    return int(found["written"]) < int(found["leader_written"]) and "the journal has no room" in found["trouble"]


def room(pair):
    one, two = pair.nodes
    library = machine.build(one.folder.path)
    disks_of = {}
    for node in pair.nodes:
        disks_of[node] = machine.Machine(library, node.folder.path, node.name)
        node.environment = disks_of[node].environment
    pair.lead(every="1h")  # a checkpoint after its clean end would take a copy to go back from
    nodes.level_under_load(two)
    pair.finish()
    nodes.level(one, two)
    ballast = os.path.join(one.folder.data, "journal-ballast")
    nodes.wait_for("there is no ballast", lambda: os.path.exists(ballast))

    def refused(node, *words):
        disks_of[node].fill(True)
        said = node.rollcall(*words, status=nodes.REFUSED)
        if "the disk is full" not in said or not node.ask(b"get feed:1001", b"END\r\n").endswith(b"END\r\n"):
            raise Failure("%s of %s on a full disk: %s" % (words[0], node.name, said))
        for full in (True, False):
            disks_of[node].fill(full)
            nodes.wait_for(lambda: "can_lead of %s is wrong: %s" % (node.name, node.stats()),
                           lambda: node.stats().get("can_lead") in (None, "01"[not full]))
    refused(two, "promote")
    two.rollcall("promote")
    pair.nodes.reverse()
    follow = "follow", "--force", "127.0.0.1:%d" % two.port
    os.truncate(ballast, 0)
    refused(one, *follow)
    os.truncate(ballast, 1 << 20)
    disks_of[one].fill(True)
    one.rollcall(*follow)
    nodes.level(two, one)
    disks_of[one].fill(False)
    pair.check_equal()
    pair.stop()


def memory(pair):
    one, two = pair.nodes
    big = "  big: {kind: counter, slots: {n: 8}, table-size: 16MiB, tables: %d, oldest: recycle}\n"
    one.configure(keep="0", every="300ms", more=big % 16)
    one.start()
    pair.write()
    nodes.wait_trimmed(one, 0)
    two.configure(follow=one, more=big % 2, memory="256MiB")
    two.start()
    nodes.wait_for(lambda: "it is not refused: %s" % two.stats(), lambda: TOO_LITTLE in two.stats()["trouble"])
    if written(two) != 0 or os.path.exists(os.path.join(two.folder.data, "copy")):
        raise Failure("it has begun to fetch: %s" % two.stats())
    two.stop()
    two.configure(follow=one, more=big % 2)
    two.start()
    nodes.level_under_load(two)
    two.stop()
    two.configure(follow=one, more=big % 2, memory="256MiB")
    said = two.output().count(TOO_LITTLE)
    two.launch()
    nodes.wait_for(lambda: "it starts: " + two.output()[-2000:], lambda: two.process.poll() is not None, LONG_S)
    if two.process.returncode == 0 or two.output().count(TOO_LITTLE) != said + 1:
        raise Failure("it ends with %d: %s" % (two.process.returncode, two.output()[-2000:]))
    two.configure(follow=one, more=big % 2)
    two.start()
    pair.finish()
    pair.check_equal()
    pair.stop()


def grow(pair):
    one, two = pair.nodes
    wide = ("  wide: {kind: counter, slots: {a: 64, b: 64, c: 64, d: 64, e: 64, f: 64}, table-size: 1MiB, "
            "tables: %d, oldest: recycle}\n")
    one.configure(more=wide % 2, memory="768MiB")
    one.start()
    two.configure(follow=one, more=wide % 2, memory="200MiB")
    two.start()
    nodes.level_under_load(two)
    one.configure(more=wide % 300, memory="768MiB")
    one.reload()
    with one.connect() as link:
        for first in range(1, IDS_MAX, IDS_AT_ONCE):
            link.sendall(b"".join(b"set wide:%d 0 0 11 noreply\r\n1,2,3,4,5,%d\r\n" % (i, i % 10)
                                  for i in range(first, first + IDS_AT_ONCE)))
            if GROWN in two.stats()["trouble"]:
                break
        link.sendall(b"version\r\n")  # after all of them
        if not link.recv(64).startswith(b"VERSION "):
            raise Failure("no answer to version")
    nodes.wait_for(lambda: "it says nothing: %s" % two.stats(), lambda: GROWN in two.stats()["trouble"], LONG_S)
    pair.finish()
    pair.check_equal(("feed", "user", "wide"))  # it reads, and has everything
    if two.output().count("memory is taken beyond its limit") != 1:
        raise Failure("it is not said once: %s" % two.output()[-2000:])
    pair.stop()


PARTS = {"chain": chain, "upgrade": upgrade, "hang": hang, "full": full, "room": room, "memory": memory,
         "grow": grow}


if __name__ == "__main__":
    sys.exit(nodes.main(PARTS, 3))
