#!/usr/bin/env python3
"""Daemons with an agent each, and etcd: whatever is killed, stopped or cut off, nothing that was
acknowledged is lost and nothing is counted twice, and writes come back.

    tests/repl/agents.py [--directory DIR] [--seed N] [--rounds N] [--nodes N] [--real] [--only FAULT]

Every round something fails, for up to two leases, and heals. Then writes must be acknowledged again
within three leases; reads must never stop while a node lives. In the end, on every node:
acknowledged <= value <= sent, each acknowledged member is found, all nodes export the same, and
each epoch began once. --real: with Debian's etcd in place of the stand-in (etcd.py).
"""
import argparse
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import etcd  # noqa: E402
import machine  # noqa: E402
import pair  # noqa: E402
from victim import Failure, seed_of_run  # noqa: E402

TTL_S = 2
PATIENCE = float(os.environ.get("ROLLCALL_TEST_PATIENCE", "1"))
BACK_S = 3 * TTL_S * PATIENCE
SILENT_S = 2 * TTL_S * PATIENCE  # of reads, over all nodes
UP_S = 30 * PATIENCE
ASK_S = 1
FLOODS, FLOOD = 40, b"".join(  # 2 MiB and more of journal, of no writer's ids
    b"set user:999998.unread 0 0 4 noreply\r\n%d\r\n" % (1000 + i) for i in range(2500))


def flood(port):
    """More than a journal has room for on a full disk; nobody counts it."""
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), ASK_S) as link:
            for _ in range(FLOODS):
                link.sendall(FLOOD)


class Link(pair.Relay):
    """Cut in no, one or both directions."""

    def __init__(self, node):
        self.ways = set()
        super().__init__(node)

    def holds(self, way, near):
        return way in self.ways


class Etcd:
    """What a link to etcd leads to."""

    def __init__(self, member):
        self.member = member

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.member.port), ASK_S)


class Agent:
    """A node's agent, with a link to etcd and one for those that follow its node."""
    log = "agent-log"
    around = []

    def __init__(self, node, member, *more):
        self.node, self.process, self.more = node, None, more
        self.to_etcd, self.to_node = Link(Etcd(member)), Link(node)
        self.to_members = [self.to_etcd]
        self.address = "127.0.0.1:%d" % self.to_node.port
        self.urls = "http://127.0.0.1:%d" % self.to_etcd.port

    def end_links(self):
        for link in self.to_members + [self.to_node]:
            link.ended = True

    def command(self, *words):
        return [os.path.join(os.environ["ROLLCALL_BUILD"], "rollcall"), "agent", "-s",
                "127.0.0.1:%d" % self.node.port, "--address", self.address,
                "--etcd", self.urls, "--ttl", "%ds" % TTL_S, *self.more,
                *words]

    def log_path(self):
        return os.path.join(self.node.folder.path, self.log)

    def start(self):
        with open(self.log_path(), "ab") as log:
            self.process = subprocess.Popen(self.around + self.command(), stdout=log, stderr=log, env=self.node.environment)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def output(self):
        with open(self.log_path(), encoding="utf-8", errors="replace") as file:
            return file.read()

    def run(self, *words):
        return subprocess.run(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, text=True)


class Writer(pair.Writer):
    """Goes to the next node when one refuses, or is gone."""

    def __init__(self, number, nodes, seed):
        self.at = number
        super().__init__(number, nodes, seed)

    def batch(self):
        return super().batch()[:24]

    def take(self, verb, key, said):
        before = self.refused
        super().take(verb, key, said)
        if self.refused > before:
            raise OSError("refused")  # others of the batch are unanswered, as after a lost connection

    def run(self):
        while not self.ended:
            self.at = (self.at + 1) % len(self.nodes)
            try:
                with socket.create_connection(("127.0.0.1", self.nodes[self.at].port), ASK_S) as link:
                    self.talk(link)
            except (OSError, ValueError):
                time.sleep(0.02)

    def count(self):
        return sum(self.acked.values()) + len(self.members)


class Reader(threading.Thread):
    """Asks each node that should live; how long none has answered."""

    def __init__(self, world, pace_s=0.02):
        """world: .nodes, .down, .restarts."""
        super().__init__(daemon=True)
        self.pace_s = pace_s
        self.world, self.ended, self.answers, self.worst = world, False, 0, 0.0
        self.since = time.monotonic()
        self.start()

    def look(self, node):
        try:
            with socket.create_connection(("127.0.0.1", node.port), ASK_S) as link:
                link.sendall(b"get feed:1001.like\r\n")
                return link.recv(4096).endswith(b"END\r\n")
        except OSError:
            return False

    def run(self):
        while not self.ended:
            lives = [node for node in self.world.nodes if node not in self.world.down]
            if any([self.look(node) for node in lives]) or not lives or self.world.restarts:
                self.answers += bool(lives)
                self.since = time.monotonic()
            self.worst = max(self.worst, time.monotonic() - self.since)
            time.sleep(self.pace_s)


class World:
    def __init__(self, options):
        self.options, self.rng = options, random.Random(options.seed)
        self.member = etcd.Real() if options.real else etcd.Fake()
        self.nodes = [pair.Node(options.directory, "node-%d" % i) for i in range(options.nodes)]
        self.agents, self.writers, self.reader = [], [], None
        library = machine.build(self.nodes[0].folder.path)
        self.machines = {node: machine.Machine(library, node.folder.path, node.name) for node in self.nodes}
        for node, around in self.machines.items():
            node.environment = around.environment
        self.down = set()  # nodes that are killed or stopped
        self.restarts = False  # all were killed: nobody need answer
        self.slowest = 0.0

    # ---- who is who ----

    def leader(self):
        """The one that takes writes now, by itself; None: nobody."""
        for node in self.nodes:
            try:
                if node not in self.down and node.stats().get("state") == "leader":
                    return node
            except (OSError, Failure):
                pass
        return None

    def await_leader(self):
        """A busy machine may have fenced the one there is for a moment."""
        found = []
        pair.wait_for(lambda: "nobody leads:\n" + self.outputs(), lambda: found.append(self.leader()) or found[-1], UP_S)
        return found[-1]

    def agent(self, node):
        return self.agents[self.nodes.index(node)]

    def follower(self, leader):
        return self.rng.choice([node for node in self.nodes if node is not leader])

    # ---- begin ----

    def begin(self):
        self.member.start()
        for node in self.nodes:
            node.configure(agent=True)
            node.start()
            self.agents.append(Agent(node, self.member))
            self.agents[-1].start()
        said = self.agents[0].run("--init")
        if said.returncode != 0:
            raise Failure("--init: %s" % said.stdout)
        again = self.agents[1].run("--init")
        if again.returncode != pair.REFUSED:
            raise Failure("a second --init: %d, %s" % (again.returncode, again.stdout))
        self.await_pair()
        self.writers = [Writer(i, self.nodes, self.rng.random()) for i in range(2)]
        self.reader = Reader(self)

    def await_pair(self):
        """Somebody leads, and another one is waited for and in sync."""
        def holds():
            leader = self.leader()
            found = leader.stats() if leader else {}
            return found.get("in_sync") == "1" and found["waits_for"].startswith("node-")
        pair.wait_for(lambda: "no leader with a sync follower:\n" + self.outputs(), holds, UP_S)

    def outputs(self):
        text = []
        for node, agent in zip(self.nodes, self.agents):
            text += ["%s:" % node.name, node.output()[-2500:], agent.output()[-2500:]]
        return "\n".join(text)

    # ---- time ----

    def rest(self, least=0.1, most=2.0):
        time.sleep(self.rng.uniform(least * TTL_S, most * TTL_S))

    def acknowledged(self):
        return sum(writer.count() for writer in self.writers)

    def await_writes(self):
        before, began = self.acknowledged(), time.monotonic()
        pair.wait_for(lambda: "no write is acknowledged for %.1f s:\n%s" % (BACK_S, self.outputs()),
                      lambda: self.acknowledged() > before, BACK_S)
        self.slowest = max(self.slowest, time.monotonic() - began)

    # ---- faults: each ends healed ----

    def kill(self, *nodes):
        self.down.update(nodes)
        for node in nodes:
            node.kill()

    def start(self, *nodes):
        for node in nodes:
            node.start()
        self.down.difference_update(nodes)

    def stopped(self, processes, nodes=()):
        self.down.update(nodes)
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        self.rest()
        for process in processes:
            process.send_signal(signal.SIGCONT)
        self.down.difference_update(nodes)

    def kill_leader(self, leader):
        self.kill(leader)
        self.rest(0, 1.5)
        self.start(leader)

    def kill_follower(self, leader):
        node = self.follower(leader)
        self.kill(node)
        self.rest(0, 1.5)
        self.start(node)

    def kill_machine(self, leader):
        """The leader and its agent."""
        self.agent(leader).kill()
        self.kill(leader)
        self.rest(0, 2.5)
        self.start(leader)
        self.agent(leader).start()

    def kill_all(self, _):
        self.restarts = True
        for agent in self.agents:
            agent.kill()
        self.kill(*self.nodes)
        self.start(*self.nodes)
        for agent in self.agents:
            agent.start()
        self.restarts = False

    def kill_agent(self, leader):
        agent = self.agent(self.rng.choice(self.nodes + [leader] * 2))
        agent.kill()
        self.rest(0, 1.5)
        agent.start()

    def stop_leader(self, leader):
        self.stopped([leader.process], [leader])

    def stop_follower(self, leader):
        node = self.follower(leader)
        self.stopped([node.process], [node])

    def stop_machine(self, leader):
        self.stopped([leader.process, self.agent(leader).process], [leader])

    def stop_agents(self, leader):
        agents = [self.agent(leader)] + self.agents[:self.rng.randrange(len(self.agents) + 1)]
        self.stopped([agent.process for agent in agents])

    def stop_etcd(self, _):
        self.member.stop()
        self.rest()
        self.member.cont()

    def kill_etcd(self, _):
        self.member.kill()
        self.rest(0, 1.5)
        self.member.start()

    def cut(self, *links):
        ways = self.rng.choice(({1}, {2}, {1, 2}))
        for link in links:
            link.ways = ways
        self.rest()
        for link in links:
            link.ways = set()

    def cut_nodes(self, leader):
        self.cut(self.agent(leader).to_node)

    def cut_etcd(self, leader):
        self.cut(self.agent(leader).to_etcd)

    def cut_off(self, leader):
        """The leader's machine from all others."""
        self.cut(self.agent(leader).to_etcd, self.agent(leader).to_node)

    def full_follower(self, leader):
        """The sync follower has no room for good, and the leader's lease ends: it leads again when it can."""
        waits_for = leader.stats()["waits_for"]
        node = next((node for node in self.nodes if node.name == waits_for), None) or self.follower(leader)
        pair.level_under_load(node)  # one that begins anew has looked for room before, and ends
        self.machines[node].fill(True)
        if self.rng.random() < 0.5:
            flood(leader.port)
        link = self.agent(leader).to_etcd
        link.ways = {1, 2}
        self.rest(1.2)
        link.ways = set()
        self.await_writes()
        self.machines[node].fill(False)

    def full_leader(self, leader):
        """Its disk is full for good: another node leads."""
        self.machines[leader].fill(True)
        flood(leader.port)
        self.await_writes()
        self.machines[leader].fill(False)

    FAULTS = (kill_leader, kill_follower, kill_machine, kill_all, kill_agent, stop_leader,
              stop_follower, stop_machine, stop_agents, stop_etcd, kill_etcd, cut_nodes, cut_etcd,
              cut_off, full_follower, full_leader)

    # ---- the whole ----

    def run(self):
        faults = [fault for fault in self.FAULTS
                  if not self.options.only or fault.__name__ == self.options.only]
        for number in range(self.options.rounds):
            if number % len(faults) == 0:
                self.rng.shuffle(faults)
            fault = faults[number % len(faults)]
            leader = self.await_leader()
            if self.options.verbose:
                print("%d: %s, %s leads" % (number, fault.__name__, leader.name), flush=True)
            fault(self, leader)
            self.await_writes()
            if self.rng.random() < 0.7:  # else the next one comes before all is well
                self.await_pair()
            else:
                self.await_leader()
            self.check_reads()

    def check_reads(self):
        if self.reader.worst > SILENT_S:
            raise Failure("no node answered a read for %.1f s" % self.reader.worst)

    def check(self):
        for writer in self.writers:
            writer.finish()
        self.await_pair()
        leader = self.leader()
        for node in self.nodes:
            if node is not leader:
                pair.level(leader, node)
        exports = {space: {node.export(space) for node in self.nodes} for space in ("feed", "user")}
        if any(len(of) != 1 for of in exports.values()):
            raise Failure("exports differ, in %s" % [node.folder.path for node in self.nodes])
        judge = pair.Pair.__new__(pair.Pair)
        judge.writers = self.writers
        for node in self.nodes:
            judge.check_values(node)
        self.check_epochs()

    def check_epochs(self):
        """No epoch began at two nodes, by what their daemons logged."""
        began = {}
        for node in self.nodes:
            for line in node.output().splitlines():
                if "this node leads" in line:
                    epoch = int(line.split("epoch=")[1].split()[0])
                    if began.setdefault(epoch, node.name) != node.name:
                        raise Failure("epoch %d began at %s and %s" % (epoch, node.name, began[epoch]))
        return len(began)

    def end(self):
        for writer in self.writers:
            writer.ended = True
        if self.reader:
            self.reader.ended = True
        for agent in self.agents:
            agent.kill()
            agent.end_links()
        for node in self.nodes:
            if node.process is not None and node.process.poll() is None:
                node.kill()
        self.member.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=300 if os.environ.get("ROLLCALL_TEST_LONG") else 6)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--only", choices=sorted(fault.__name__ for fault in World.FAULTS))
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.seed = seed_of_run(options.seed)
    if options.real and not etcd.installed():
        print("SKIP: etcd is not installed (Debian: etcd-server)")
        return 77
    world = World(options)
    try:
        world.begin()
        world.run()
        world.check()
    except Failure as failure:
        for node in world.nodes:
            node.folder.keep()
        print("seed %d: %s\nkept: %s" % (options.seed, failure,
                                         [node.folder.path for node in world.nodes]))
        return 1
    finally:
        world.end()
    print("%d rounds, %d epochs: %d changes acknowledged, none lost, none twice; writes back after "
          "at most %.1f s, reads after %.1f s" % (options.rounds, world.check_epochs(),
                                                 world.acknowledged(), world.slowest,
                                                 world.reader.worst))
    for node in world.nodes:
        node.folder.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
