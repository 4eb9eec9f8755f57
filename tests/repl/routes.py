#!/usr/bin/env python3
"""conf/fleet's configurations for other routers: memcached's proxy and mcrouter, each where it can be had.

    tests/repl/routes.py [--directory DIR]

Behind memcached's proxy are two shards of Main, HA and two L1, and two generations: who reads and writes
where, while nodes are killed, hang or hand the lead over; an increment is never sent twice. $MEMCACHED_PROXY
names the program, else it is memcached, if that has the proxy (Debian's has it from 13 on). mcrouter is in
no Debian: where it is installed it judges its files.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import cluster  # noqa: E402
import pair  # noqa: E402
from victim import Failure  # noqa: E402

LEAST = (1, 6, 40)  # of memcached, for route_leader
SHARDS = 2
X = 5000000000
ANSWER_S = 20


def proxy_program():
    """The program, and why there is none."""
    name = os.environ.get("MEMCACHED_PROXY", "memcached")
    if shutil.which(name) is None:
        return None, "memcached is not installed"
    says = [subprocess.run([name, word], stdout=subprocess.PIPE, check=False, text=True).stdout
            for word in ("-h", "-V")]
    version = tuple(int(part) for part in re.findall(r"\d+", says[1])[:3])
    if "proxy_config" not in says[0]:
        return None, "memcached %s is built without its proxy" % ".".join(map(str, version))
    if version < LEAST:
        return None, "the proxy of memcached %s does not show a route what was refused" % ".".join(map(str, version))
    return name, None


def expect(door, line, said, end=b"\r\n"):
    answer = door.ask(line, end)
    if answer != said:
        raise Failure("%s: %r is answered %r, not %r" % (door.name, line, answer, said))


def value(key, number):
    text = b"%d" % number
    return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(text), text)


class Shard:
    """Main and HA, which may both lead, and two that follow HA."""

    def __init__(self, directory, name):
        self.main, self.ha, self.l1a, self.l1b = self.nodes = [
            pair.Node(directory, "%s-%s" % (name, part)) for part in ("main", "ha", "l1a", "l1b")]

    def start(self):
        for node, before in zip(self.nodes, (None, self.main, self.ha, self.ha)):
            node.configure(follow=before, more="refusals: server\n")
            node.start()

    def level(self):
        for node in self.nodes[1:]:
            pair.level(self.main, node)

    def end(self):
        for node in self.nodes:
            if node.process is not None and node.process.poll() is None:
                node.kill()
            node.folder.remove()


class Router:
    """The proxy, with a file of conf/fleet in which each of its lists of backends has those of this test."""

    def __init__(self, program, folder, sample, pools):
        self.port = pair.free_port()
        text = cluster.Cluster.sample(sample)
        for name, nodes in pools.items():
            places = ", ".join('"127.0.0.1:%d"' % node.port for node in nodes)
            text, count = re.subn(r"(\b%s = \{ backends = \{)[^}]*" % name, r"\g<1> %s " % places, text)
            if count != 1:
                raise Failure("conf/fleet/%s has no pool %s" % (sample, name))
        path = os.path.join(folder, sample)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        routes = os.path.join(cluster.FLEET, "proxy-routes.lua")
        user = ["-u", pair.USER] if os.geteuid() == 0 else []
        self.process = cluster.Process(folder, sample, [
            program, *user, "-l", "127.0.0.1", "-p", str(self.port), "-t", "2", "-o",
            "proxy_config=routelib:%s,proxy_arg=%s" % (routes, path)])
        self.door = cluster.Door(sample, self.port, ANSWER_S)

    def start(self):
        self.process.start()

        def answers():
            try:
                return self.door.ask(b"mn") == b"MN\r\n"
            except OSError:
                return False
        pair.wait_for(lambda: "no answer:\n" + self.log(), answers)

    def log(self):
        with open(os.path.join(self.process.folder, self.process.name + ".log"), encoding="utf-8") as file:
            return file.read()[-2000:]


def gets(nodes):
    return [int(node.stats(b"")["cmd_get"]) for node in nodes]


def page(door, ids):
    said = door.ask(b"get " + b" ".join(b"feed:{%d}.like" % i for i in ids), b"END\r\n")
    return said.count(b"VALUE ")


def layers(program, folder, shards):
    """Main-HA-L1: who is asked, while nodes are gone, hang, or the lead has moved."""
    main, ha = [shard.main for shard in shards], [shard.ha for shard in shards]
    l1 = [shard.l1a for shard in shards], [shard.l1b for shard in shards]
    router = Router(program, folder, "memcached-proxy.lua", {"main": main, "ha": ha, "l1a": l1[0], "l1b": l1[1]})
    router.start()
    door, ids = router.door, range(1001, 1041)
    try:
        for i in ids:
            expect(door, b"set feed:{%d}.like 0 0 1\r\n5" % i, b"STORED\r\n")
            expect(door, b"incr feed:{%d}.like 1" % i, b"6\r\n")
        for shard in shards:
            shard.level()
        before = gets(main + ha)
        for i in ids:
            expect(door, b"get feed:{%d}.like" % i, value(b"feed:{%d}.like" % i, 6), b"END\r\n")
        if 0 in gets(l1[0] + l1[1]) or gets(main + ha) != before:
            raise Failure("reads went to %s, and not to L1 alone" % gets(main + ha + l1[0] + l1[1]))
        moved(door, shards[0], ids)
        for node in l1[0] + l1[1] + [main[1], ha[0]]:
            node.kill()
        pair.wait_for("reads go on at Main and HA", lambda: page(door, ids) == len(ids))
    finally:
        router.process.kill()


def of_shard(shard, ids):
    """An id of that shard."""
    for i in ids:
        if b"VALUE" in shard.main.ask(b"get feed:{%d}.like" % i, b"END\r\n"):
            return i
    raise Failure("a shard has no id")


def moved(door, shard, ids):
    """Main hangs, and HA comes to lead: what Main did not answer is not sent to HA, what it refuses then is."""
    i = of_shard(shard, ids)
    key = b"feed:{%d}.like" % i
    pair.level(shard.main, shard.ha)
    shard.main.process.send_signal(signal.SIGSTOP)
    shard.ha.rollcall("promote", "--force")
    said = door.ask(b"incr %s 1" % key)
    if not said.startswith(b"SERVER_ERROR"):
        raise Failure("a node that hangs: %r" % said)
    expect(shard.ha, b"get " + key, value(key, 6), b"END\r\n")
    shard.main.kill()
    shard.main.configure(follow=shard.ha, more="refusals: server\n")
    shard.main.start()
    pair.level(shard.ha, shard.main)
    pair.wait_for("it reaches both again", lambda: door.ask(b"set feed:{%d}.read 0 0 1\r\n2" % i) == b"STORED\r\n")
    expect(door, b"incr %s 1" % key, b"7\r\n")
    expect(door, b"incr %s 1" % key, b"8\r\n")
    pair.level(shard.ha, shard.main)
    for node in (shard.main, shard.ha):
        expect(node, b"get " + key, value(key, 8), b"END\r\n")


def generations(program, folder, shards):
    """Ids from X on are on other machines, and a page is of both."""
    pools = {"main1": [shards[0].main], "ha1": [shards[0].ha], "main2": [shards[1].main], "ha2": [shards[1].ha]}
    router = Router(program, folder, "generations.lua", pools)
    router.start()
    old, new = (1, 77, X - 1), (X, X + 1)
    try:
        for i in old + new:
            expect(router.door, b"set feed:{%d}.like 0 0 1\r\n3" % i, b"STORED\r\n")
        if page(router.door, old + new) != 5:
            raise Failure("a page of both generations is not whole")
        for shard, own in zip(shards, (old, new)):
            for i in old + new:
                found = b"VALUE" in shard.main.ask(b"get feed:{%d}.like" % i, b"END\r\n")
                if found != (i in own):
                    raise Failure("%s %s feed:%d" % (shard.main.name, "has" if found else "lacks", i))
    finally:
        router.process.kill()


def mcrouter_files():
    """They are JSON that names no pool it does not have; what mcrouter says of them, where it is installed."""
    for name in ("mcrouter.json", "mcrouter-generations.json"):
        text = cluster.Cluster.sample(name)
        pools = json.loads(text)["pools"]
        named = set(re.findall(r"PoolRoute\|(\w+)", text))
        if named != set(pools) or len({len(pool["servers"]) for pool in pools.values()}) != 1:
            raise Failure("%s: pools %s, named are %s" % (name, sorted(pools), sorted(named)))
        if shutil.which("mcrouter"):
            said = subprocess.run(["mcrouter", "--validate-config=exit", "-p", str(pair.free_port()), "-f",
                                   os.path.join(cluster.FLEET, name)], check=False, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            if said.returncode != 0:
                raise Failure("mcrouter does not take %s: %s" % (name, said.stdout[-2000:]))
    if not shutil.which("mcrouter"):
        print("SKIP: mcrouter: not installed, and in no Debian: its files were only read")


def run_part(part, program, directory):
    shards = [Shard(directory, "shard-%d" % number) for number in range(SHARDS)]
    folder = tempfile.mkdtemp(prefix="rollcall-routes-", dir=directory)
    os.chmod(folder, 0o755)
    try:
        for shard in shards:
            shard.start()
        part(program, folder, shards)
        print("%s: passed" % part.__name__, flush=True)
    finally:
        for shard in shards:
            shard.end()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    options = parser.parse_args()
    mcrouter_files()
    program, why = proxy_program()
    if program is None:
        print("SKIP: memcached's proxy: %s" % why)
        return 77
    for part in (layers, generations):
        run_part(part, program, options.directory)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as problem:
        print("FAILED: %s" % problem)
        sys.exit(1)
