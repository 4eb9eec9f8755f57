#!/usr/bin/env python3
"""WHOLE(serial), searched: two nodes with one journal, one of which leads, and a table that each may
dump when it likes. A change is whole or of one slot; a node whose table is dumped cannot replay one
of a slot of a record of which it has nothing but the file. All orders of up to DEPTH steps:
changes, taps, dumps that end or fail, rounds of images, kills, replay and promotion.

    sticky      WHOLE once for a table, kept in its state: no order fails
    tapped      whole only while the one that leads has it tapped or dumped: some order fails
    untouched   sticky, but the image made before WHOLE goes on to hold: some order fails

And the regions at an opening: a node that follows begins the dump of a table at its WHOLE; OPEN waits
for a free region while records go on to be received. No order ends with an opening that waits for ever,
but one does where dumps begin at the OPEN that needs them.

Run without arguments; exits 1 if an answer is another one.
"""
import sys
from collections import namedtuple

DEPTH = 9
RECORDS = 5

# A node's table. cold: where its file's image began, None: in memory. tapped: likewise, while written.
# flag: changes are whole. image, m: the flag as its image has it, where events begin to be replayed.
# dirty: a round makes an image. at: records replayed.
Node = namedtuple("Node", "cold tapped flag image m dirty at")
NEW = Node(None, None, False, False, 0, False, 0)
WHOLE, FULL, SLOT = "whole", "full", "slot"


class Needs(Exception):
    """The disk, in replay."""


def replay(node, journal):
    record = journal[node.at]
    since = node.cold
    if record == SLOT and since is not None and FULL not in journal[since:node.at]:
        raise Needs
    flag = node.flag or record == WHOLE
    return node._replace(at=node.at + 1, flag=flag, dirty=True)


def begin_dump(node, rule):
    dirty = node.dirty or (rule != "untouched" and not node.flag)
    return node._replace(tapped=node.at, flag=True, dirty=dirty)


def local_steps(node, journal, rule, leads):
    """What a node does by itself: (node, records it puts)."""
    if node.cold is None and node.tapped is None and (leads or node.flag or WHOLE in journal[:node.at]):
        new = () if node.flag or not leads else (WHOLE,)
        begun = begin_dump(node, rule)
        yield begun._replace(at=node.at + len(new), tapped=node.at + len(new)), new
    if node.tapped is not None:
        yield node._replace(cold=node.tapped, tapped=None, image=node.flag, m=node.at, dirty=False), ()
        flag = node.flag and rule != "tapped"
        yield node._replace(tapped=None, flag=flag, dirty=rule != "untouched" or node.dirty), ()
    # a round: images of what changed, then events below M are in the files
    elif node.dirty or node.m < node.at:
        yield node._replace(image=node.flag if node.dirty else node.image, m=node.at, dirty=False), ()
    # a kill: what its image says, and the events after M
    flag = node.image or (rule != "tapped" and WHOLE in journal[node.m:node.at])
    if rule == "tapped":
        flag = node.cold is not None
    yield node._replace(tapped=None, flag=flag, dirty=True), ()


def steps(state, rule):
    journal, leader, other = state
    for node, new in local_steps(leader, journal, rule, True):
        yield (journal + new, node, other)
    for node, _ in local_steps(other, journal, rule, False):
        yield (journal, leader, node)
    if len(journal) < RECORDS:
        kind = FULL if leader.flag else SLOT
        yield (journal + (kind,), leader._replace(at=leader.at + 1, dirty=True), other)
    if other.at < len(journal):
        yield (journal, leader, replay(other, journal))
    else:
        yield (journal, other, leader)  # promoted; the one before follows


def search(rule):
    """(an order that fails or None, states met)."""
    begin = ((), NEW, NEW)
    met = {begin}
    edge = [begin]
    for _ in range(DEPTH):
        following = []
        for state in edge:
            try:
                for after in steps(state, rule):
                    if after not in met:
                        met.add(after)
                        following.append(after)
            except Needs:
                return state, len(met)
        edge = following
    return None, len(met)


# ---- regions ----

REGIONS, TABLES = 2, 5


def openings(early):
    """Tables 0.. open in turn; each takes a region, the oldest in memory is to be dumped for it. State:
    records (w: WHOLE of the next oldest, o: OPEN), each node's (at, opened, dumped, dumping). True: from
    every state that is met the follower can come to the end."""
    def node_steps(node, journal, leads):
        at, opened, dumped, dumping = node
        held = opened - dumped
        if dumping:
            yield (at, opened, dumped + 1, False), journal
            yield (at, opened, dumped, True), journal  # it failed, and is tried again
        if leads:
            if held == REGIONS and not dumping and opened < TABLES:
                yield (at + 1, opened, dumped, True), journal + "w"
            if held < REGIONS and opened < TABLES:
                yield (at + 1, opened + 1, dumped, dumping), journal + "o"
        elif at < len(journal):
            if journal[at] == "w" and not (dumping or held < REGIONS):
                yield (at + 1, opened, dumped, early), journal
            elif journal[at] == "w":
                yield (at + 1, opened, dumped, dumping), journal
            elif held < REGIONS:
                yield (at + 1, opened + 1, dumped, dumping), journal

    begin = ("", (0, 0, 0, False), (0, 0, 0, False))
    met, edge = {begin}, [begin]
    while edge:
        state = edge.pop()
        journal, leader, other = state
        after = [(j, n, other) for n, j in node_steps(leader, journal, True)]
        after += [(journal, leader, n) for n, _ in node_steps(other, journal, False)]
        if other[0] < len(journal) and all(s[2] == other or s == state for s in after) and not other[3]:
            return False, len(met)  # it is behind, and neither replays nor dumps
        for one in after:
            if one not in met:
                met.add(one)
                edge.append(one)
    return True, len(met)


def main():
    wrong = 0
    for rule, fails in (("sticky", False), ("tapped", True), ("untouched", True)):
        found, states = search(rule)
        print(f"{rule}: {states} states, {'fails at ' + repr(found) if found else 'none fails'}")
        wrong += (found is not None) != fails
    for early, ends in ((True, True), (False, False)):
        good, states = openings(early)
        print(f"dumps begin at {'WHOLE' if early else 'OPEN'}: {states} states, "
              f"{'every opening ends' if good else 'an opening waits for ever'}")
        wrong += good != ends
    return 1 if wrong else 0


sys.exit(main())
