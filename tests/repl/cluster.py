#!/usr/bin/env python3
"""A whole fleet on this machine: three etcd, two shards of a leader, its sync follower and a follower
for reads (L1), an agent beside each, HAProxy with the role check, and twemproxy in front.

    tests/repl/cluster.py [--directory DIR] [--seed N] [--serve | --layers | --faults ROUNDS]

Without either it is a test: writes and reads go through, also after a leader was killed. --serve: it
says how to talk to it, and stops all of it on Ctrl-C (tools/cluster). --faults: in each round something
fails under load (faults.py); in the end nothing that was acknowledged is lost, nothing is counted
twice, and the nodes of a shard hold the same. --layers: layers.py.
"""
import argparse
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import agents  # noqa: E402
import etcd  # noqa: E402
import machine  # noqa: E402
import pair  # noqa: E402
from victim import Failure, seed_of_run  # noqa: E402

MEMBERS, SHARDS, ROUNDS_LONG = 3, 2, 300
WAIT_S = 60 * agents.PATIENCE
PROBE = b"incr user:999999.unread 1"  # of no writer's ids
PROGRAMS = {"etcd": "etcd-server", "haproxy": "haproxy", "nutcracker": "nutcracker"}
FLEET = os.path.join(os.path.dirname(os.path.dirname(HERE)), "conf", "fleet")


def program(name):
    return shutil.which(name) or shutil.which(os.path.join("/usr/sbin", name))


class Process:
    """A program in the foreground, with a log, and perhaps a port."""

    def __init__(self, folder, name, command):
        self.folder, self.name, self.command, self.process = folder, name, command, None
        self.port = self.link = None

    def start(self):
        with open(os.path.join(self.folder, self.name + ".log"), "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def connect(self):
        return Port(self.port).connect()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Port:
    """What a link leads to."""

    def __init__(self, port):
        self.port = port

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), agents.ASK_S)


def members(folder, faults):
    """One process of etcd each, with the URLs of all. With faults each has a link, by which others reach it."""
    own = [pair.free_port() for _ in range(MEMBERS)]
    links = [agents.Link(Port(port)) if faults else None for port in own]
    urls = ["http://127.0.0.1:%d" % (link.port if link else port) for port, link in zip(own, links)]
    peers = ",".join("etcd-%d=%s" % (i, url) for i, url in enumerate(urls))
    found = []
    for i, (port, link) in enumerate(zip(own, links)):
        name, client = "etcd-%d" % i, pair.free_port()
        url = "http://127.0.0.1:%d" % client
        found.append(Process(folder, name, [
            program("etcd"), "--name", name, "--data-dir", os.path.join(folder, name),
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", "http://127.0.0.1:%d" % port,
            "--initial-advertise-peer-urls", urls[i], "--initial-cluster", peers,
            "--heartbeat-interval", "50", "--election-timeout", "500", "--auto-compaction-retention", "1"]))
        found[-1].port, found[-1].link = client, link
    return found


class Agent(agents.Agent):
    """Of a node, with every member of etcd; with faults by a link of its own to each."""

    def __init__(self, node, cluster):
        members = cluster.members
        self.node, self.process = node, None
        self.more = ["--follows-only"] if node.name.endswith("l1") else []
        self.to_members = [agents.Link(member) for member in members] if cluster.library else []
        self.to_node = machine.Paths(node)
        self.address = "127.0.0.1:%d" % self.to_node.port
        self.urls = ",".join("http://127.0.0.1:%d" % one.port for one in self.to_members or members)


class Shard:
    """Three nodes: two that may lead, and one for reads."""

    def __init__(self, cluster, name):
        self.name, self.cluster = name, cluster
        self.writes, self.reads = pair.free_port(), pair.free_port()
        self.nodes = [pair.Node(cluster.folder, "%s-%s" % (name, part)) for part in ("a", "b", "l1")]
        self.admin = {node: pair.free_port() for node in self.nodes}
        self.agents = [Agent(node, cluster) for node in self.nodes]
        self.down, self.restarts = set(), False  # nodes that a fault has taken; never all of them
        self.machines = {}
        if cluster.library:
            self.machines = {node: machine.Machine(cluster.library, cluster.folder, node.name) for node in self.nodes}
        for node, around in self.machines.items():
            node.environment = around.environment

    def start(self):
        for node, agent in zip(self.nodes, self.agents):
            node.configure(agent=self.name, more="admin: 127.0.0.1:%d\n" % self.admin[node])
            node.start()
            agent.start()
        said = self.agents[0].run("--init")
        if said.returncode != 0:
            raise Failure("--init: %s" % said.stdout)

    def leader(self):
        for node in self.nodes:
            try:
                if node.stats().get("state") == "leader":
                    return node
            except (OSError, Failure):
                pass
        return None

    def await_whole(self):
        def holds():
            leader = self.leader()
            return leader is not None and leader.stats()["in_sync"] == "1" and (
                leader.stats()["waits_for"].startswith(self.name))
        pair.wait_for(lambda: "%s: no leader with a sync follower:\n%s" % (self.name, self.outputs()),
                      holds, WAIT_S)

    def outputs(self):
        return "\n".join(node.output()[-1500:] + agent.output()[-1500:]
                         for node, agent in zip(self.nodes, self.agents))


class Door:
    """A port of a proxy, as a node that can be asked."""

    def __init__(self, name, port, answer_s=pair.ANSWER_S):
        self.name, self.port, self.answer_s = name, port, answer_s

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), self.answer_s)

    ask = pair.Node.ask


class PatientDoor(Door):
    """One that is asked again when a proxy has no answer: for a moment it may hold a node for dead."""

    def ask(self, line, end=b"\r\n"):
        said = []

        def answers():
            try:
                said[:] = [Door.ask(self, line, end)]
                return said[0].endswith(end)
            except OSError:
                return False
        pair.wait_for(lambda: "%s: no answer but %s" % (self.name, said), answers, WAIT_S)
        return said[0]


class Cluster:
    def __init__(self, options):
        self.options, self.rng = options, random.Random(options.seed)
        self.folder = tempfile.mkdtemp(prefix="rollcall-cluster-", dir=options.directory)
        os.chmod(self.folder, 0o711)
        self.library = machine.build(self.folder) if options.faults else None
        self.members = members(self.folder, options.faults)
        self.shards = [Shard(self, "shard-%d" % i) for i in range(SHARDS)]
        self.writes, self.reads = Door("writes", pair.free_port()), Door("reads", pair.free_port())
        self.status = pair.free_port()
        self.proxies, self.writers, self.slowest = [], [], 0.0
        self.wait_s, self.began = WAIT_S, time.monotonic()

    def start(self):
        for member in self.members:
            member.start()
        pair.wait_for("etcd does not answer: see %s" % self.folder, self.etcd_answers, WAIT_S)
        for shard in self.shards:
            shard.start()
        for shard in self.shards:
            shard.await_whole()
        self.start_proxies()
        for shard in self.shards:
            self.await_writes(shard)

    def etcd_answers(self):
        try:
            return etcd.call(self.members[0], "/v3/kv/range", {"key": etcd.text_of("/")})[0] == 200
        except (OSError, ValueError):
            return False

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path

    @staticmethod
    def sample(name):
        with open(os.path.join(FLEET, name), encoding="utf-8") as file:
            return file.read()

    def fleet(self, name, changes):
        """conf/fleet's file with the addresses of this machine: (what is there, what takes its place)."""
        text = self.sample(name)
        for pattern, place in changes:
            text, count = re.subn(pattern, place, text)
            if count == 0:
                raise Failure("conf/fleet/%s has no %s" % (name, pattern))
        return self.write(name, text)

    def start_proxies(self):
        haproxy, twemproxy = [(r"(listen status\n  bind )\S+", r"\g<1>127.0.0.1:%d" % self.status)], []
        for shard in self.shards:
            for part in ("writes", "reads"):
                port = getattr(shard, part)
                listen = r"(listen %s-%s\n  bind ):(\d+)" % (shard.name, part)
                at = re.search(listen, self.sample("haproxy.cfg")).group(2)
                haproxy.append((listen, r"\g<1>127.0.0.1:%d" % port))
                twemproxy.append((r"- 127\.0\.0\.1:%s:1 %s\n" % (at, shard.name),
                                  "- 127.0.0.1:%d:1 %s\n" % (port, shard.name)))
            haproxy += [(r"server %s \S+ port \d+" % node.name, "server %s 127.0.0.1:%d port %d" % (
                node.name, node.port, shard.admin[node])) for node in shard.nodes]
        for door in (self.writes, self.reads):
            twemproxy.append((r"(%s:\n  listen: )\S+" % door.name, r"\g<1>127.0.0.1:%d" % door.port))
        self.proxies = [
            Process(self.folder, "haproxy", [program("haproxy"), "-db", "-f",
                                             self.fleet("haproxy.cfg", haproxy)]),
            Process(self.folder, "twemproxy", [program("nutcracker"), "-c",
                                               self.fleet("twemproxy.yaml", twemproxy), "-a", "127.0.0.1",
                                               "-s", str(pair.free_port())])]
        for proxy in self.proxies:
            proxy.start()

    def await_writes(self, shard):
        """A write to that shard goes through HAProxy."""
        door, began = Door(shard.name, shard.writes, agents.ASK_S), time.monotonic()

        def holds():
            try:
                return door.ask(PROBE)[:1].isdigit() or door.ask(
                    PROBE.replace(b"incr", b"set").replace(b" 1", b" 0 0 1\r\n1")) == b"STORED\r\n"
            except OSError:
                return False
        pair.wait_for(lambda: "%s takes no writes:\n%s" % (shard.name, shard.outputs()), holds,
                      agents.BACK_S if self.writers else WAIT_S)
        self.slowest = max(self.slowest, time.monotonic() - began)

    def end(self):
        for writer in self.writers:
            writer.ended = True
        for shard in self.shards:
            for agent in shard.agents:
                agent.kill()
                agent.end_links()
            for node in shard.nodes:
                if node.process is not None and node.process.poll() is None:
                    node.kill()
        for process in self.proxies + self.members:
            process.kill()
            if process.link:
                process.link.ended = True

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- parts ----

    def stores(self, key):
        try:
            return self.writes.ask(b"set %s 0 0 1\r\n7" % key) == b"STORED\r\n"
        except OSError:
            return False

    def try_it(self):
        """What went in by one door comes out of the other, from the followers for reads."""
        for number in range(1001, 1041):
            key = b"feed:%d.like" % number
            # HAProxy that was just started takes every node for the leader until its first check.
            pair.wait_for("a write through twemproxy is refused", lambda: self.stores(key), WAIT_S)
            pair.wait_for("%r is not to be read" % key, lambda: b"\r\n7\r\n" in self.reads.ask(
                b"get %s" % key, b"END\r\n"))
        counts = [shard.nodes[2].stats(b"")["cmd_get"] for shard in self.shards]
        if "0" in counts:
            raise Failure("the followers for reads were asked %s times" % counts)
        page = urllib.request.urlopen("http://127.0.0.1:%d/" % self.status, timeout=WAIT_S).read()
        missing = [node.name for shard in self.shards for node in shard.nodes if node.name.encode() not in page]
        if missing:
            raise Failure("the status page lacks %s" % missing)
        leader = self.shards[0].leader()
        leader.kill()
        self.await_writes(self.shards[0])
        self.shards[0].nodes[2].kill()  # reads go on at the other
        pair.wait_for("reads go on", lambda: self.reads.ask(
            b"get feed:1001.like feed:1002.like feed:1003.like feed:1004.like", b"END\r\n").count(b"VALUE") == 4)

    def say(self):
        print("Write and read, any key, by twemproxy: 127.0.0.1:%d, and 127.0.0.1:%d for reads from L1."
              % (self.writes.port, self.reads.port))
        print("The whole (HAProxy): http://127.0.0.1:%d/   each node's own page stands beside it." % self.status)
        for shard in self.shards:
            print("\n%s   writes (HAProxy) 127.0.0.1:%d   reads 127.0.0.1:%d" % (
                shard.name, shard.writes, shard.reads))
            for node in shard.nodes:
                print("  %-12s 127.0.0.1:%d   http://127.0.0.1:%d/" % (node.name, node.port, shard.admin[node]))
            print("".join("  " + line + "\n" for line in
                          shard.agents[0].run("status").stdout.splitlines()), end="")
            print("  %s" % " ".join(shard.agents[0].command("status")))
        print("\ntry: printf 'incr feed:1.like 1\\r\\nget feed:1.like\\r\\nquit\\r\\n' | nc 127.0.0.1 %d" %
              self.writes.port)
        print("Logs and data are in %s; Ctrl-C stops and removes it all." % self.folder, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--faults", type=int, metavar="ROUNDS")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.seed = seed_of_run(options.seed)
    if os.environ.get("ROLLCALL_TEST_LONG") and not options.serve and not options.layers:
        options.faults = options.faults or ROUNDS_LONG
    missing = [PROGRAMS[name] for name in PROGRAMS if program(name) is None]
    if missing:
        print("SKIP: not installed: %s" % " ".join(missing))
        return 77
    cluster = Cluster(options)
    try:
        cluster.start()
        if options.serve:
            cluster.say()
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            signal.pause()
        elif options.faults:
            import faults
            silent = faults.Faults(cluster).run(options.faults)
            print("%d rounds: %d changes acknowledged, none lost, none twice; writes back after at most "
                  "%.1f s, reads after %.1f s" % (
                      options.faults, sum(writer.count() for writer in cluster.writers), cluster.slowest, silent))
        elif options.layers:
            import layers  # it has clients that need not be here
            print("\n".join(layers.run(cluster)))
        else:
            cluster.try_it()
            print("writes and reads went through, also without a leader and a follower")
    except KeyboardInterrupt:
        pass
    except Failure as failure:
        print("seed %d: %s\nkept: %s" % (options.seed, failure, cluster.folder))
        return 1
    finally:
        cluster.end()
    cluster.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
