"""faults.py: what can fail of the fleet of cluster.py, one thing after another, under load; each heals.

Processes are killed or stopped: a leader, any node, an agent, a machine, one, most or all of etcd. A machine's
disk is full, its clocks jump, or it slept. Links are cut, in one direction or both: between two nodes, between an
agent and members of etcd, between one of these and the others.
"""
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import agents  # noqa: E402
import cluster  # noqa: E402
import pair  # noqa: E402
from victim import Failure  # noqa: E402

WAYS = ({1}, {2}, {1, 2})
READ_S = 0.1
WALL_S, SLEPT_S = 86400, 3 * agents.TTL_S  # the most that a clock jumps


class Faults:
    def __init__(self, fleet):
        self.cluster, self.rng, self.turn = fleet, fleet.rng, []
        self.writers = fleet.writers

    def say(self, what, *names):
        if self.cluster.options.verbose:
            print("%.1f %s %s" % (time.monotonic() - self.cluster.began, what, " ".join(names)), flush=True)

    def shard(self):
        return self.rng.choice(self.cluster.shards)

    def leader(self, shard):
        return shard.leader() or shard.nodes[0]

    def rest(self):
        time.sleep(self.rng.uniform(0.1, 2) * agents.TTL_S)

    # ---- the faults: each returns when it has healed ----

    def processes(self):
        shard = self.shard()
        leader, at = self.leader(shard), self.rng.randrange(len(shard.nodes))
        members = self.cluster.members
        found = self.rng.choice([
            [leader], [shard.nodes[at]], [shard.agents[at]], [leader, shard.agents[shard.nodes.index(leader)]],
            [self.rng.choice(members)], self.rng.sample(members, 2), members])
        kills = self.rng.random() < 0.5
        self.say("kill" if kills else "stop", *[getattr(one, "name", None) or "agent of " + one.node.name
                                                for one in found])
        shard.down.update(one for one in found if one in shard.nodes)
        for one in found:
            if kills:
                one.kill()
            else:
                one.process.send_signal(signal.SIGSTOP)
        self.rest()
        for one in found:
            if kills:
                one.start()
            else:
                one.process.send_signal(signal.SIGCONT)
        shard.down.clear()

    def everything(self):
        """As after a power cut of the whole room: all processes but the proxies are killed."""
        shards = self.cluster.shards
        found = self.cluster.members + [one for shard in shards for one in shard.nodes + shard.agents]
        self.say("kill everything")
        for shard in shards:
            shard.restarts = True
        for one in found:
            one.kill()
        self.rest()
        for one in found:
            one.start()
        for shard in shards:
            shard.restarts = False

    def full(self):
        """Perhaps the leader is cut off meanwhile: the node is promoted, or is to follow, on a full disk."""
        shard = self.shard()
        node = self.rng.choice([self.leader(shard)] + shard.nodes)
        self.say("no room at", node.name)
        shard.machines[node].fill(True)
        agents.flood(shard.writes)
        if self.rng.random() < 0.5:
            self.cut_links(shard.agents[shard.nodes.index(self.leader(shard))].to_members)
        else:
            self.rest()
        shard.machines[node].fill(False)
        if node.process.poll() is not None:
            raise Failure("%s ended with %d:\n%s" % (node.name, node.process.returncode, node.output()[-2000:]))

    def clocks(self):
        shard = self.shard()
        node = self.rng.choice([self.leader(shard)] + shard.nodes)
        wall, slept = self.rng.randint(-WALL_S, WALL_S), self.rng.choice((0, self.rng.randint(1, SLEPT_S)))
        self.say("clocks jump by %d s, and %d s of sleep, at" % (wall, slept), node.name)
        shard.machines[node].jump(wall, slept)

    def cut_nodes(self):
        shard = self.shard()
        node, other = self.leader(shard), self.rng.choice(shard.nodes)
        if other is node:  # any two, then
            node, other = self.rng.sample(shard.nodes, 2)
        paths = shard.agents[shard.nodes.index(node)].to_node
        paths.cut_ways[other.name] = ways = self.rng.choice(WAYS)
        self.say("cut %s between" % ways, other.name, node.name)
        self.rest()
        paths.cut_ways.clear()

    def cut_links(self, links):
        ways = self.rng.choice(WAYS)
        for link in links:
            link.ways = ways
        self.rest()
        for link in links:
            link.ways = set()
        return ways

    def cut_etcd(self):
        shard = self.shard()
        agent = self.rng.choice([shard.agents[shard.nodes.index(self.leader(shard))]] + shard.agents)
        links = self.rng.sample(agent.to_members, self.rng.randint(1, len(agent.to_members)))
        self.say("cut the agent of %s from %d members" % (agent.node.name, len(links)))
        self.cut_links(links)

    def cut_member(self):
        member = self.rng.choice(self.cluster.members)
        self.say("cut the others from", member.name)
        self.cut_links([member.link])

    KINDS = (processes, processes, processes, everything, full, clocks, cut_nodes, cut_etcd, cut_member)

    # ---- the whole ----

    def next(self):
        """Each of them in turn, in any order."""
        if not self.turn:
            self.turn = list(self.KINDS)
            self.rng.shuffle(self.turn)
        return self.turn.pop()

    def run(self, rounds):
        """For how long no node of a shard answered reads, at most."""
        fleet = self.cluster
        self.writers += [agents.Writer(i, [fleet.writes], self.rng.random()) for i in range(2)]
        readers = [agents.Reader(shard, READ_S) for shard in fleet.shards]
        for _ in range(rounds):
            self.next()(self)
            pair.wait_for("etcd does not answer", fleet.etcd_answers, fleet.wait_s)
            for shard in fleet.shards:
                fleet.await_writes(shard)
                if self.rng.random() < 0.7:
                    shard.await_whole()
            self.check_reads(readers)
        for reader in readers:
            reader.ended = True
        self.check()
        return max(reader.worst for reader in readers)

    @staticmethod
    def check_reads(readers):
        """Reads never stop while any node of a shard lives."""
        for reader in readers:
            if reader.worst > agents.SILENT_S:
                raise Failure("no node of %s answered a read for %.1f s" % (reader.world.name, reader.worst))

    def check(self):
        for writer in self.writers:
            writer.finish()
        judge = pair.Pair.__new__(pair.Pair)
        judge.writers = self.writers
        for shard in self.cluster.shards:
            shard.await_whole()
            leader = shard.leader()
            for node in shard.nodes:
                if node is not leader:
                    pair.level(leader, node)
            for space in ("feed", "user"):
                if len({node.export(space) for node in shard.nodes}) != 1:
                    raise Failure("exports of %s differ in %s" % (space, self.cluster.folder))
        for door in (self.cluster.writes, self.cluster.reads):
            judge.check_values(cluster.PatientDoor(door.name, door.port, agents.ASK_S))
