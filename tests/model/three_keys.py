#!/usr/bin/env python3
"""
Who may lead, searched through: every order of the steps by which nodes, their agents and etcd hand
the lead over, with messages late, machines without power and leases that end at any moment.

Two keys of a group in etcd decide: `alive` (a lease: who leads) and `state` (epoch, leader, sync;
changed only where nobody else changed it since it was read). A third, `node/NAME`, only informs. A
leader answers a change when all it waits for have it. Who is to lead first claims an epoch in `state`,
which says still who reigned before; when its daemon has begun that reign `state` names it. So a claim
that comes to nothing, as the daemon refuses or is gone, takes nobody's place. No step here looks at a
clock: the lease may end, and a node sleep, for any time, so what holds here needs none. `alive` itself
is in no state: as it may end at any moment, it keeps nobody from anything.

Two things must hold in every state that can be reached:
  - an answered change is in the journal of every node that may come to lead, and in front of
    whatever later reigns put there;
  - in one epoch one node answers.
And each rule, taken away, must break one of them, or it would be no rule: the search says which. To
break the second one it takes two of them away, as TWICE does: the search does see it.

    three_keys.py [--long]    without each of the rules, then with all of them
    three_keys.py --rule R    without R alone, and the steps that break it

Where one order of steps can do all that another one can, and promises no less, only it is searched:
  - What a follower has its leader hears at once. Hearing forbids nothing, and what it allows, an answer
    or a transaction, may come at any later moment: as late as if the message had been.
  - An agent that is killed begins anew, so it may begin anew from any step.
  - A daemon hears at once that `state` names it, and that it waits for its new sync follower alone:
    until then it waits for more, and could answer nothing that it cannot answer now.
And states that differ only in what no later step looks at are one, `settled`. (That the nodes' names
may be exchanged would save three states in ten, and cost more than that.)

A journal is a tuple: -E begins the reign of epoch E, a positive number is a change.
"""

import argparse
import gc
import sys
from collections import deque, namedtuple

NODES = "abc"
# The bounds of a history: changes, changes of who may lead, claims, machines that lose power, daemons
# killed.
Bounds = namedtuple("Bounds", "changes turns claims powers kills")
# Of the searches without one of the rules: they break soon.
FEW = Bounds(1, 1, 1, 1, 0)
FURTHER = {
    "claim-rises": FEW._replace(claims=2),
    "confirm-compares": FEW._replace(claims=2, powers=0),
    "epoch-synced": FEW._replace(turns=2),
}
# Without these two both nodes that may lead do so in epoch 2. No change is made, so only that is wrong.
TWICE = ("claim-rises", "claim-is-confirmed")
TWICE_BOUNDS = Bounds(0, 0, 2, 0, 0)
# The whole goes as far as the furthest of them.
SHORT = Bounds(1, 2, 2, 1, 0)
LONG = (SHORT._replace(changes=2), SHORT._replace(kills=1), Bounds(1, 3, 1, 1, 1))

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

# etcd: what `state` says, all it ever said (a revision is a place in that). claimed: the highest epoch
# that was ever claimed; above `epoch`: that reign is not begun, as far as is known.
State = namedtuple("State", "epoch leader sync claimed")
# A daemon. durable: records that surely are on its disk. leads: its epoch, 0: it follows. epoch: the
# highest it was told of. waits: for whose answers; got: how much each of NODES has acknowledged to
# it; held: its changes not yet answered. synced: the epoch in which it once had all of its leader's,
# 0: it has not since its start, LONG_AGO: nobody leads in that epoch any more. It waits for itself
# while it was not told for whom to wait.
Daemon = namedtuple("Daemon", "log durable leads epoch waits got held synced")
LONG_AGO = -1
NOTHING = (0,) * len(NODES)
NO_STEPS = (None,) * len(NODES)
# step: what its agent is about: None, ("promote", revision, epoch), ("confirm", revision, epoch),
# ("add", revision, node, mark), ("added", None, node, epoch), ("drop", revision), ("dropped", None,
# epoch). turns: states but those of claims. answerers: who was told that it leads, and so answers
# what comes next.
World = namedtuple(
    "World",
    "states turns claims daemons steps answered alone lost answerers changes powers kills",
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
    follower = Daemon((-1,), 1, 0, 1, frozenset(), NOTHING, frozenset(), 1)
    leader = follower._replace(leads=1, waits=frozenset({1}), got=(0, 1, 1))
    return World(
        (State(1, 0, 1, 1),), 0, 0, (leader, follower, follower), NO_STEPS,
        frozenset(), frozenset(), frozenset(), frozenset({(1, 0)}), 0, 0, 0,
    )  # fmt: skip


class Search:
    def __init__(self, without=(), bounds=SHORT):
        self.without = without
        self.bounds = bounds
        # Whether no epoch is claimed twice, and whether what `state` once said is over.
        self.fresh = self.rule("claim-compares") and self.rule("claim-rises")
        self.last_only = self.rule("claim-compares") and self.rule("change-compares")
        self.seen = 0

    def rule(self, name):
        return name not in self.without

    # ---- which states are one ----

    def settled(self, world):
        """The same world without what no step and no judge looks at any more: two that differ in that
        alone go on alike."""
        states, _, _, daemons, steps = world[:5]
        last = len(states) - 1
        if steps != NO_STEPS:
            steps = tuple(
                [
                    step and self.settled_step(world, daemon, step, last)
                    for step, daemon in zip(steps, daemons)
                ]
            )
        leads = [daemon.leads for daemon in daemons if daemon.leads]
        coming = leads + [step[2] for step in steps if step and step[0] == "promote"]
        settled = [
            self.settled_daemon(world, daemon, step, leads, coming)
            for daemon, step in zip(daemons, steps)
        ]
        if self.last_only and last:
            states = states[last:]
        return World(states, *world[1:3], tuple(settled), steps, *world[5:])

    def settled_step(self, world, daemon, step, last):
        """None: it comes to nothing, as an agent that is killed."""
        kind, revision = step[:2]
        if revision is None:
            return step
        if kind == "promote":
            goes_on = daemon.epoch < step[2]
        elif kind == "confirm":
            current = revision == last or not self.rule("confirm-compares")
            goes_on = current and world.turns < self.bounds.turns
        else:
            goes_on = revision == last or not self.rule("change-compares")
        if not goes_on:
            return None
        return (kind, max(revision - last, -1), *step[2:]) if self.last_only and last else step

    def settled_daemon(self, world, daemon, step, leads, coming):
        """What is durable matters while a power cut is left; an epoch, as far as one that anybody leads
        in, or will, is below it; what a follower has, when a step or an answer may ask for as much."""
        log, durable, own, epoch, waits, got, held, synced = daemon
        if world.powers == self.bounds.powers:
            durable = 0
        if synced and self.fresh and synced not in leads:
            synced = LONG_AGO
        if not own and self.fresh:
            known, epoch = epoch, 0
            for other in coming:
                if epoch <= other < known:
                    epoch = other + 1
        if got != NOTHING:
            asked = [log.index(change) + 1 for change in held]
            if own:
                asked.append(len(log))
            if step and step[0] == "add":
                asked.append(step[3])
            least = min(asked, default=0)
            got = tuple([end if asked and end >= least else 0 for end in got])
        new = (log, durable, own, epoch, waits, got, held, synced)
        return daemon if new == daemon else Daemon._make(new)

    # ---- what may happen ----

    def steps_of(self, world):
        yield from self.client(world)
        for f in range(len(NODES)):
            yield from self.follow(world, f)
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
                    answered = world.answered | {(change, daemon.leads)}
                    yield (
                        f"{NODES[node]} answers change {change} in epoch {daemon.leads}",
                        after._replace(answered=answered, alone=alone),
                    )

    def follow(self, world, f):
        """A follower goes on, a record at a time, behind anybody who leads, who hears what it has."""
        own = world.daemons[f]
        for leader, daemon in enumerate(world.daemons):
            older = daemon.leads < own.epoch
            if leader == f or not daemon.leads or (older and self.rule("no-older-epoch")):
                continue
            if own.leads and older:
                # Without the rule: a leader that takes what an older one sends, after its own.
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
        got = put(daemon.got, f, max(end, daemon.got[f]))
        after = self.set_daemon(after, leader, got=got)
        yield f"{NODES[f]} has {end} records of {NODES[leader]}", after

    def accidents(self, world):
        for node, daemon in enumerate(world.daemons):
            stopped = {"leads": 0, "waits": frozenset(), "held": frozenset(), "got": NOTHING}
            if world.kills < self.bounds.kills:
                # An ex-leader has all that it answered.
                synced = daemon.leads
                after = self.set_daemon(world, node, synced=synced, **stopped)
                yield f"{NODES[node]} is killed", after._replace(kills=world.kills + 1)
            if world.powers < self.bounds.powers:
                for end in range(daemon.durable, len(daemon.log) + 1):
                    yield self.power_cut(world, node, end, stopped)

    def power_cut(self, world, node, end, stopped):
        """Its journal ends there now: anywhere after what had to be on the disk."""
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
        """It may be killed at any moment, and begins anew then: it may always do that."""
        step = world.steps[node]
        if step is not None:
            yield from getattr(self, "go_on_" + step[0])(world, node, step)
        yield from self.promote(world, node)
        yield from self.change_sync(world, node)

    def set_step(self, world, node, step):
        return world._replace(steps=put(world.steps, node, step))

    def may_lead(self, world, node, state):
        daemon = world.daemons[node]
        if self.rule("named") and node not in (state.leader, state.sync):
            return False
        if not self.rule("in-sync"):
            return True
        alone = state.leader == node and state.sync is None
        return alone or daemon.synced != 0

    def revisions(self, world, name):
        """Which of the states an agent may have read still decides: the last, by the rule."""
        return range(len(world.states) - 1 if self.rule(name) else 0, len(world.states))

    def turn(self, world, state):
        return world._replace(states=world.states + (state,), turns=world.turns + 1)

    def promote(self, world, node):
        state = world.states[-1]
        if world.claims == self.bounds.claims:
            return
        if world.daemons[node].leads == state.epoch == state.claimed:
            return
        for revision in self.revisions(world, "claim-compares"):
            state = world.states[revision]
            if self.may_lead(world, node, state):
                epoch = (state.claimed if self.rule("claim-rises") else state.epoch) + 1
                states = world.states + (state._replace(claimed=epoch),)
                after = self.set_step(world, node, ("promote", len(states) - 1, epoch))
                yield (
                    f"{NODES[node]}'s agent claims epoch {epoch}",
                    after._replace(claims=world.claims + 1, states=states),
                )

    def go_on_promote(self, world, node, step):
        """Its daemon begins the reign, or not: then the agent gives up, as one that is killed."""
        daemon = world.daemons[node]
        _, revision, epoch = step
        if not self.rule("claim-is-confirmed"):
            world = world._replace(answerers=world.answerers | {(epoch, node)})
        log = daemon.log + (-epoch,)
        after = self.set_daemon(
            world, node, log=log, leads=epoch, epoch=epoch,
            durable=self.durable(log, len(daemon.log), daemon.durable),
            waits=frozenset({node} if self.rule("claim-is-confirmed") else {}),
            got=NOTHING, held=frozenset(), synced=epoch,
        )  # fmt: skip
        yield (
            f"{NODES[node]} begins epoch {epoch}",
            self.set_step(after, node, ("confirm", revision, epoch)),
        )

    def go_on_confirm(self, world, node, step):
        epoch = step[2]
        after = self.set_step(world, node, None)
        if world.daemons[node].leads == epoch:
            after = self.set_daemon(after, node, waits=frozenset())
            after = after._replace(answerers=world.answerers | {(epoch, node)})
        yield (
            f"state says that {NODES[node]} leads in epoch {epoch}",
            self.turn(after, State(epoch, node, None, epoch)),
        )

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
            step = ("add", revision, other, len(daemon.log))
            yield f"{NODES[node]} waits for {NODES[other]}, too", self.set_step(after, node, step)
        if state.sync is not None:
            after = world
            if not self.rule("drop-told-last"):
                after = self.set_daemon(world, node, waits=frozenset())
            yield (
                f"{NODES[node]}'s agent is to drop {NODES[state.sync]}",
                self.set_step(after, node, ("drop", revision)),
            )

    def go_on_add(self, world, node, step):
        _, revision, other, mark = step
        daemon, state = world.daemons[node], world.states[revision]
        if daemon.got[other] < mark and self.rule("add-has-all"):
            return
        after = self.turn(world, state._replace(sync=other))
        if daemon.leads == state.epoch and other in daemon.waits:
            after = self.set_daemon(after, node, waits=frozenset({other}))
            after = self.set_step(after, node, None)
        else:
            after = self.set_step(after, node, ("added", None, other, state.epoch))
        yield f"state says that {NODES[other]} is {NODES[node]}'s sync follower", after

    def go_on_added(self, world, node, step):
        _, _, other, epoch = step
        after = self.set_step(world, node, None)
        if world.daemons[node].leads == epoch:
            after = self.set_daemon(after, node, waits=frozenset({other}))
        yield f"{NODES[node]} waits for {NODES[other]} alone", after

    def go_on_drop(self, world, node, step):
        state = world.states[step[1]]
        after = self.turn(world, state._replace(sync=None))
        after = self.set_step(after, node, ("dropped", None, state.epoch))
        yield f"state says that {NODES[node]} has no sync follower", after

    def go_on_dropped(self, world, node, step):
        after = self.set_step(world, node, None)
        if world.daemons[node].leads == step[2]:
            after = self.set_daemon(after, node, waits=frozenset())
        yield f"{NODES[node]} waits for nobody", after

    # ---- what must hold ----

    def wrong(self, world):
        epochs = [epoch for epoch, _ in world.answerers]
        if len(epochs) != len(set(epochs)):
            return "two nodes answer in one epoch"
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
        first = self.settled(begin())
        came = {first: None}
        queue = deque([first])
        while queue:
            world = queue.popleft()
            for name, after in self.steps_of(world):
                after = self.settled(after)
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


def check_without(names, bounds, show=False):
    search = Search(names, bounds)
    found = search.run()
    what = " and ".join(names)
    rules = "; ".join(RULES[name] for name in names)
    if not found:
        print(f"without {what} nothing breaks in {search.seen} states: {rules}")
        return False
    print(f"without {what}: {found[0]}, after {len(found[1])} steps ({rules})")
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
    parser.add_argument("--long", action="store_true", help="longer histories, daemons killed: minutes")
    given = parser.parse_args()
    # A search makes no cycles, and many tuples that each collection would go through.
    gc.disable()
    if given.rule:
        bounds = FURTHER.get(given.rule, FEW)
        return 0 if check_without((given.rule,), bounds, show=True) else 1
    good = all([check_without((name,), FURTHER.get(name, FEW)) for name in RULES])
    good = check_without(TWICE, TWICE_BOUNDS) and good
    for bounds in LONG if given.long else (SHORT,):
        good = check_all(bounds) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
