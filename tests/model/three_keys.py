#!/usr/bin/env python3
"""
Who may lead, searched through: every order of the steps by which nodes, their agents and etcd hand
the lead over, with messages late, machines without power and leases that end at any moment.

Two keys of a group in etcd decide: `alive` (a lease: who leads) and `state` (epoch, leader, sync;
changed only where nobody else changed it since it was read). A third, `node/NAME`, only informs. A
leader answers a change when all it waits for have it. Who is to lead first claims an epoch in `state`,
which says still who reigned before; when its daemon has begun that reign `state` names it. So a claim
that comes to nothing, as the daemon refuses or is gone, takes nobody's place. No step here looks at a
clock: the lease may end, and a node sleep, for any time, so what holds here needs none.

Two things must hold in every state that can be reached:
  - an answered change is in the journal of every node that may come to lead, and in front of
    whatever later reigns put there;
  - in one epoch one node answers.
And each rule, taken away, must break one of them, or it would be no rule: the search says which.

    three_keys.py [--long]    without each of the rules, then with all of them
    three_keys.py --rule R    without R alone, and the steps that break it

A journal is a tuple: -E begins the reign of epoch E, a positive number is a change.
"""

import argparse
import sys
from collections import deque, namedtuple

NODES = "abc"
# The bounds of a history: changes, changes of who may lead, claims, machines that lose power, daemons
# killed.
Bounds = namedtuple("Bounds", "changes turns claims powers kills")
BREAKS = Bounds(1, 2, 2, 1, 0)  # of the rules but one: it breaks soon
SHORT = Bounds(1, 2, 1, 1, 0)
LONG = (BREAKS, Bounds(1, 3, 1, 1, 1))

RULES = {
    "claim-compares": "a claim's transaction compares state's revision",
    "claim-rises": "a claim's epoch is above all that were claimed before",
    "claim-is-confirmed": "a new leader answers when `state` names it, not as soon as its reign has begun",
    "confirm-compares": "the transaction that names it compares state's revision",
    "claim-ends-changes": "who leads changes its sync follower only while nobody has claimed an epoch",
    "named": "only the leader or the sync follower of `state` claims an epoch",
    "in-sync": "who lost power is promoted only when it had caught up again",
    "epoch-synced": "the record that begins a reign is on the disk before anybody counts on it",
    "no-older-epoch": "a node takes no records of an epoch before its own",
    "add-waits-first": "the leader waits for a new sync follower before `state` names it",
    "add-has-all": "a new sync follower is named when it has all that was written before",
    "change-compares": "a change of the sync follower compares state's revision",
    "drop-told-last": "the leader stops waiting for a follower after `state` dropped it",
}

# etcd: what `state` says, all it ever said (a revision is a place in that), and `alive`. claimed: the
# highest epoch that was ever claimed; above `epoch`: that reign is not begun, as far as is known.
State = namedtuple("State", "epoch leader sync claimed")
# A daemon. durable: records that surely are on its disk. leads: its epoch, 0: it follows. epoch: the
# highest it was told of. waits: for whose answers; got: how much each of NODES has acknowledged to
# it; held: its changes not yet answered. synced: the epoch in which it once had all of its leader's,
# 0: it has not since its start. It waits for itself while it was not told for whom to wait.
Daemon = namedtuple("Daemon", "log durable leads epoch waits got held synced")
# step: what its agent is about: None, ("promote", epoch, revision), ("confirm", epoch, revision),
# ("lead", epoch), ("add", node, mark, revision), ("added", node, epoch), ("drop", revision), ("dropped",
# epoch). turns: states but those of claims.
World = namedtuple(
    "World",
    "states turns alive daemons steps flying answered alone lost answerers changes powers kills",
)


def last_epoch(log):
    return -min((record for record in log if record < 0), default=0)


def common(one, other):
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


def put(pairs, index, value):
    return pairs[:index] + (value,) + pairs[index + 1 :]


def begin():
    follower = Daemon((-1,), 1, 0, 1, frozenset(), (0, 0, 0), frozenset(), 1)
    leader = follower._replace(leads=1, waits=frozenset({1}), got=(0, 1, 1))
    return World(
        (State(1, 0, 1, 1),), 0, 0, (leader, follower, follower), (None, None, None),
        frozenset(), frozenset(), frozenset(), frozenset(), frozenset(), 0, 0, 0,
    )  # fmt: skip


def without_void(world):
    """The same world without messages that nobody listens to any more."""
    flying = frozenset(
        (f, leader, epoch, end)
        for f, leader, epoch, end in world.flying
        if world.daemons[leader].leads == epoch and world.daemons[leader].got[f] < end
    )
    return world if len(flying) == len(world.flying) else world._replace(flying=flying)


class Search:
    def __init__(self, without=None, bounds=BREAKS):
        self.without = without
        self.bounds = bounds
        self.seen = 0

    def rule(self, name):
        return name != self.without

    # ---- what may happen ----

    def steps_of(self, world):
        yield from self.client(world)
        for f in range(len(NODES)):
            yield from self.follow(world, f)
        yield from self.acknowledged(world)
        yield from self.accidents(world)
        for node in range(len(NODES)):
            yield from self.agent(world, node)

    def set_daemon(self, world, node, **fields):
        daemon = world.daemons[node]._replace(**fields)
        return world._replace(daemons=put(world.daemons, node, daemon))

    def client(self, world):
        """A change comes to whoever believes that it leads; answers leave."""
        for node, daemon in enumerate(world.daemons):
            if daemon.leads and world.changes < self.bounds.changes:
                change = world.changes + 1
                after = self.set_daemon(
                    world, node, log=daemon.log + (change,), held=daemon.held | {change}
                )
                yield f"{NODES[node]} takes change {change}", after._replace(changes=change)
            for change in daemon.held:
                end = daemon.log.index(change) + 1
                if all(daemon.got[other] >= end for other in daemon.waits):
                    after = self.set_daemon(world, node, held=daemon.held - {change})
                    alone = world.alone | ({change} if not daemon.waits else frozenset())
                    yield (
                        f"{NODES[node]} answers change {change} in epoch {daemon.leads}",
                        after._replace(
                            answered=world.answered | {(change, daemon.leads)},
                            alone=alone,
                            answerers=world.answerers | {(daemon.leads, node)},
                        ),
                    )

    def follow(self, world, f):
        """A follower goes on, a record at a time, behind anybody who leads; what it has, it says."""
        own = world.daemons[f]
        for leader, daemon in enumerate(world.daemons):
            older = daemon.leads < own.epoch
            if leader == f or not daemon.leads or (older and self.rule("no-older-epoch")):
                continue
            if own.leads and older:
                # Without the rule: a leader that takes what an older one sends, behind its own.
                new = [record for record in daemon.log if record > 0 and record not in own.log]
                for record in new[:1]:
                    yield from self.took(world, f, leader, own.log + (record,), len(daemon.log))
                continue
            length = common(own.log, daemon.log)
            if length == len(daemon.log) and own.synced == daemon.leads:
                continue
            log = daemon.log[: min(length + 1, len(daemon.log))]
            yield from self.took(world, f, leader, log, len(log))

    def durable(self, log, same, before):
        """The record that begins a reign is synced before anybody counts on it; no other is."""
        if not self.rule("epoch-synced"):
            return min(before, same)
        begun = max((at + 1 for at, record in enumerate(log) if record < 0), default=0)
        return max(min(before, same), begun)

    def took(self, world, f, leader, log, end):
        own, daemon = world.daemons[f], world.daemons[leader]
        epoch = max(own.epoch, daemon.leads)
        caught_up = end == len(daemon.log)
        changes = {
            "log": log,
            "durable": self.durable(log, common(own.log, log), own.durable),
            "epoch": epoch,
            "synced": daemon.leads if caught_up else own.synced,
        }
        if epoch > own.leads:
            changes.update(leads=0, waits=frozenset(), held=frozenset())
        after = self.set_daemon(world, f, **changes)
        flying = frozenset(
            m for m in world.flying if m[:3] != (f, leader, daemon.leads)
        ) | {(f, leader, daemon.leads, end)}
        yield f"{NODES[f]} has {end} records of {NODES[leader]}", after._replace(flying=flying)

    def acknowledged(self, world):
        """What a follower said arrives, at the reign it was said to."""
        for message in world.flying:
            f, leader, epoch, end = message
            got = put(world.daemons[leader].got, f, end)
            after = world._replace(flying=world.flying - {message})
            after = self.set_daemon(after, leader, got=got)
            yield f"{NODES[leader]} hears that {NODES[f]} has {end}", after

    def accidents(self, world):
        if world.alive is not None:
            yield "the lease ends", world._replace(alive=None)
        for node, daemon in enumerate(world.daemons):
            stopped = {"leads": 0, "waits": frozenset(), "held": frozenset(), "got": (0, 0, 0)}
            if world.kills < self.bounds.kills:
                # An ex-leader has all that it answered.
                synced = daemon.leads
                after = self.set_daemon(world, node, synced=synced, **stopped)
                yield f"{NODES[node]} is killed", after._replace(kills=world.kills + 1)
            if world.powers < self.bounds.powers:
                for end in range(daemon.durable, len(daemon.log) + 1):
                    yield self.power_cut(world, node, end, stopped)

    def power_cut(self, world, node, end, stopped):
        """Its journal ends there now: anywhere behind what had to be on the disk."""
        daemon = world.daemons[node]
        log = daemon.log[:end]
        after = self.set_daemon(
            world, node, log=log, epoch=last_epoch(log), synced=0, **stopped
        )
        # What one machine alone has and had not synced is what everysec may lose.
        state = world.states[-1]
        alone = state.leader == node and state.sync is None
        cut = daemon.log[end:]
        lost = {change for change in cut if change > 0 and (alone or change in world.alone)}
        return (
            f"{NODES[node]} loses power, and all but {end} records",
            after._replace(
                steps=put(world.steps, node, None),
                lost=world.lost | lost,
                powers=world.powers + 1,
            ),
        )

    # ---- agents ----

    def agent(self, world, node):
        step = world.steps[node]
        if step is None:
            yield from self.promote(world, node)
            yield from self.change_sync(world, node)
            return
        yield f"{NODES[node]}'s agent is killed", self.set_step(world, node, None)
        yield from getattr(self, "go_on_" + step[0])(world, node, step)

    def set_step(self, world, node, step):
        return world._replace(steps=put(world.steps, node, step))

    def may_lead(self, world, node, state):
        daemon = world.daemons[node]
        if self.rule("named") and node not in (state.leader, state.sync):
            return False
        if not self.rule("in-sync"):
            return True
        alone = state.leader == node and state.sync is None
        return alone or daemon.synced > 0

    def revisions(self, world, name):
        """Which of the states an agent may have read still decides: the last, by the rule."""
        return range(len(world.states) - 1 if self.rule(name) else 0, len(world.states))

    def turn(self, world, state):
        return world._replace(states=world.states + (state,), turns=world.turns + 1)

    def promote(self, world, node):
        state, claims = world.states[-1], len(world.states) - 1 - world.turns
        if world.alive not in (None, node) or claims == self.bounds.claims:
            return
        if world.daemons[node].leads == state.epoch == state.claimed:
            return
        for revision in self.revisions(world, "claim-compares"):
            state = world.states[revision]
            if self.may_lead(world, node, state):
                epoch = (state.claimed if self.rule("claim-rises") else state.epoch) + 1
                states = world.states + (state._replace(claimed=epoch),)
                after = self.set_step(world, node, ("promote", epoch, len(states) - 1))
                yield (
                    f"{NODES[node]}'s agent claims epoch {epoch}",
                    after._replace(alive=node, states=states),
                )

    def go_on_promote(self, world, node, step):
        """Its daemon begins the reign, or not: then the agent gives up, as one that is killed."""
        daemon = world.daemons[node]
        _, epoch, revision = step
        if daemon.epoch >= epoch:
            return
        log = daemon.log + (-epoch,)
        after = self.set_daemon(
            world, node, log=log, leads=epoch, epoch=epoch,
            durable=self.durable(log, len(daemon.log), daemon.durable),
            waits=frozenset({node} if self.rule("claim-is-confirmed") else {}),
            got=(0, 0, 0), held=frozenset(), synced=epoch,
        )  # fmt: skip
        yield (
            f"{NODES[node]} begins epoch {epoch}",
            self.set_step(after, node, ("confirm", epoch, revision)),
        )

    def go_on_confirm(self, world, node, step):
        _, epoch, revision = step
        if revision < len(world.states) - 1 and self.rule("confirm-compares"):
            yield "too late: state has changed", self.set_step(world, node, None)
        elif world.turns < self.bounds.turns:
            after = self.turn(world, State(epoch, node, None, epoch))
            yield (
                f"state says that {NODES[node]} leads in epoch {epoch}",
                self.set_step(after, node, ("lead", epoch)),
            )

    def go_on_lead(self, world, node, step):
        after = self.set_step(world, node, None)
        if world.daemons[node].leads == step[1]:
            after = self.set_daemon(after, node, waits=frozenset())
        yield f"{NODES[node]} leads, and waits for nobody", after

    def change_sync(self, world, node):
        daemon, revision = world.daemons[node], len(world.states) - 1
        state = world.states[revision]
        leads = daemon.leads and state.leader == node and state.epoch == daemon.leads
        if not leads or world.turns == self.bounds.turns:
            return
        if state.claimed > state.epoch and self.rule("claim-ends-changes"):
            return
        for other in range(len(NODES)):
            if other in (node, state.sync):
                continue
            after = world
            if self.rule("add-waits-first"):
                after = self.set_daemon(world, node, waits=daemon.waits | {other})
            step = ("add", other, len(daemon.log), revision)
            yield f"{NODES[node]} waits for {NODES[other]}, too", self.set_step(after, node, step)
        if state.sync is not None:
            after = world
            if not self.rule("drop-told-last"):
                after = self.set_daemon(world, node, waits=frozenset())
            yield (
                f"{NODES[node]}'s agent is to drop {NODES[state.sync]}",
                self.set_step(after, node, ("drop", revision)),
            )

    def still(self, world, revision):
        return revision == len(world.states) - 1 or not self.rule("change-compares")

    def go_on_add(self, world, node, step):
        _, other, mark, revision = step
        daemon, state = world.daemons[node], world.states[revision]
        if not self.still(world, revision):
            yield "too late: state has changed", self.set_step(world, node, None)
        elif daemon.got[other] >= mark or not self.rule("add-has-all"):
            after = self.turn(world, state._replace(sync=other))
            after = self.set_step(after, node, ("added", other, state.epoch))
            yield f"state says that {NODES[other]} is {NODES[node]}'s sync follower", after

    def go_on_added(self, world, node, step):
        after = self.set_step(world, node, None)
        if world.daemons[node].leads == step[2]:
            after = self.set_daemon(after, node, waits=frozenset({step[1]}))
        yield f"{NODES[node]} waits for {NODES[step[1]]} alone", after

    def go_on_drop(self, world, node, step):
        state = world.states[step[1]]
        if not self.still(world, step[1]):
            yield "too late: state has changed", self.set_step(world, node, None)
            return
        after = self.turn(world, state._replace(sync=None))
        after = self.set_step(after, node, ("dropped", state.epoch))
        yield f"state says that {NODES[node]} has no sync follower", after

    def go_on_dropped(self, world, node, step):
        after = self.set_step(world, node, None)
        if world.daemons[node].leads == step[1]:
            after = self.set_daemon(after, node, waits=frozenset())
        yield f"{NODES[node]} waits for nobody", after

    # ---- what must hold ----

    def wrong(self, world):
        epochs = [epoch for epoch, _ in world.answerers]
        if len(epochs) != len(set(epochs)):
            return "two nodes answered in one epoch"
        state = world.states[-1]
        for node in {state.leader, state.sync} - {None}:
            daemon = world.daemons[node]
            if not self.may_lead(world, node, state):
                continue
            for change, epoch in world.answered:
                if change in world.lost:
                    continue
                if change not in daemon.log:
                    return f"change {change} was answered, and {NODES[node]} may lead without it"
                before = daemon.log[: daemon.log.index(change)]
                if last_epoch(before) > epoch:
                    return f"change {change} of epoch {epoch} came behind a later reign's"
        return None

    # ---- the search ----

    def run(self):
        """None, or what broke and the steps there: the shortest way, as it goes breadth first."""
        first = begin()
        came = {first: None}
        queue = deque([first])
        while queue:
            world = queue.popleft()
            for name, after in self.steps_of(world):
                after = without_void(after)
                if after in came:
                    continue
                came[after] = (world, name)
                fault = self.wrong(after)
                if fault:
                    self.seen = len(came)
                    return fault, self.way(came, after)
                queue.append(after)
        self.seen = len(came)
        return None

    @staticmethod
    def way(came, world):
        names = []
        while came[world]:
            world, name = came[world]
            names.append(name)
        return names[::-1]


def check_rule(name, show):
    search = Search(name)
    found = search.run()
    if not found:
        print(f"without {name} nothing breaks in {search.seen} states: {RULES[name]}")
        return False
    print(f"without {name}: {found[0]}, after {len(found[1])} steps ({RULES[name]})")
    for number, step in enumerate(found[1] if show else [], 1):
        print(f"    {number}. {step}")
    return True


def check_all(bounds):
    search = Search(bounds=bounds)
    found = search.run()
    if not found:
        print(f"the rules as they are: {search.seen} states, nothing breaks")
        return True
    print(f"the rules as they are: {found[0]}")
    for number, step in enumerate(found[1], 1):
        print(f"    {number}. {step}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rule", choices=sorted(RULES), help="take only this rule away")
    parser.add_argument("--long", action="store_true", help="longer histories, daemons killed: an hour")
    given = parser.parse_args()
    if given.rule:
        return 0 if check_rule(given.rule, True) else 1
    good = all([check_rule(name, False) for name in RULES])
    for bounds in LONG if given.long else (SHORT,):
        good = check_all(bounds) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
