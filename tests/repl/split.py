#!/usr/bin/env python3
"""tools/split under load: a follower becomes a shard of its own for half of the ids, by conf/fleet/split.yaml.

    tests/repl/split.py [--directory DIR] [--seed N] [--rounds N]

Writers go through twemproxy the whole time. In the end nothing that was acknowledged is lost and nothing
is counted twice; each half was written on its own shard alone, as `rollcall export --hash` sees it. In
each further round one of those that take part is killed or stopped on the way, and the script is run again.
"""
import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import cluster  # noqa: E402
import pair  # noqa: E402
from victim import Failure, seed_of_run  # noqa: E402

DONE, REFUSED, STOPPED = 0, 4, 6
SPACES = ("feed", "user")
SPLIT_S = 120
RUNS_MAX = 30
EVEN = 0.4  # of what there was at the split, each half has at least that share
# Has Debian's twemproxy read another file: the old one is gone when the new one listens.
ROUTES = """set -eu
cd %(folder)s
if [ -s pid ]; then
    old=$(cat pid)
    kill -9 "$old" 2>/dev/null || true
    while kill -0 "$old" 2>/dev/null; do sleep 0.02; done
    rm -f pid
fi
%(nutcracker)s -d -c "$1" -p %(folder)s/pid -o %(folder)s/twemproxy.log -a 127.0.0.1 -s %(stats)d
until (exec 3<>/dev/tcp/127.0.0.1/%(port)d) 2>/dev/null; do sleep 0.02; done
"""


class Fleet:
    """A leader and its follower, which are shard-0; a node that is shard-1; twemproxy."""

    def __init__(self, options, rng):
        self.rng = rng
        self.folder = tempfile.mkdtemp(prefix="rollcall-split-", dir=options.directory)
        os.chmod(self.folder, 0o711)
        self.leader, self.new, self.other = (pair.Node(self.folder, name) for name in ("a", "b", "other"))
        self.writes, self.reads = (cluster.Door(name, pair.free_port()) for name in ("writes", "reads"))
        self.inner, self.stats = {11330: pair.free_port(), 11340: pair.free_port()}, pair.free_port()
        self.writers = []
        with open(os.path.join(self.folder, "routes"), "w", encoding="ascii") as file:
            file.write(ROUTES % {"folder": self.folder, "nutcracker": cluster.program("nutcracker"),
                                 "stats": self.stats, "port": self.writes.port})

    def routes(self, name, second):
        """conf/fleet's file, with the addresses here, where that node is the second half."""
        with open(os.path.join(cluster.FLEET, "split.yaml"), encoding="utf-8") as file:
            text = file.read()
        ports = {11211: self.writes.port, 11212: self.reads.port, 11310: self.leader.port,
                 11320: self.leader.port, 11311: self.other.port, 11321: self.other.port,
                 11312: second.port, 11322: second.port, **self.inner}
        text = re.sub(r"^( *-? ?(?:listen: )?)[0-9.]+:(\d+)", lambda at: "%s127.0.0.1:%d" % (
            at.group(1), ports[int(at.group(2))]), text, flags=re.MULTILINE)
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(text)

    def switch(self, name):
        return "bash %s/routes %s" % (self.folder, name)

    def start(self):
        self.leader.configure()
        self.other.configure()
        self.new.configure(follow=self.leader)
        for node in (self.leader, self.other, self.new):
            node.start()
        self.routes("before", self.leader)
        self.routes("after", self.new)
        subprocess.run(self.switch("before"), shell=True, check=True, timeout=SPLIT_S)
        self.writers = [pair.Writer(i, [self.writes], self.rng.random()) for i in range(2)]
        pair.wait_for("some writes", lambda: sum(len(one.acked) for one in self.writers) > 2000)
        pair.level_under_load(self.new)

    def command(self, routes=None):
        return [sys.executable, os.path.join(TOP, "tools", "split"), "--leader", "127.0.0.1:%d" % self.leader.port,
                "--new", "127.0.0.1:%d" % self.new.port, "--routes", routes or self.switch("after")]

    def split(self, status=DONE, routes=None, more=()):
        done = subprocess.run(self.command(routes) + list(more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=SPLIT_S, check=False)
        if status is not None and done.returncode != status:
            raise Failure("split ends with %d, not %d:\n%s" % (done.returncode, status, done.stdout))
        return done.stdout

    def parts(self, node, part):
        return [node.rollcall("export", space, "--hash", "%d/2" % part) for space in SPACES]

    def judge(self):
        """After the split, under load: whose ids go where, and that all are there. Returns the bytes of
        the foreign half on either."""
        there, here = self.leader.stats(), self.new.stats()
        if (there["role"], here["role"]) != ("leader", "leader") or there["stream"] == here["stream"] or (
                int(here["reign"]) <= int(there["reign"])):
            raise Failure("after a split:\n%s\n%s" % (there, here))
        nodes = ((self.leader, 1), (self.new, 2))
        before = [self.parts(node, part) for node, part in nodes]
        foreign = [self.parts(node, 3 - part) for node, part in nodes]
        acked = sum(sum(one.acked.values()) for one in self.writers)
        pair.wait_for("writes after it", lambda: sum(sum(
            one.acked.values()) for one in self.writers) > acked + 2000)
        for writer in self.writers:
            writer.finish()
        for at, (node, part) in enumerate(nodes):
            if self.parts(node, 3 - part) != foreign[at]:
                raise Failure("%s was written to in the other half" % node.name)
            own = self.parts(node, part)
            if own == before[at]:
                raise Failure("%s was written to no more" % node.name)
        judge = pair.Pair.__new__(pair.Pair)
        judge.writers = self.writers
        for door in (self.writes, self.reads):
            judge.check_values(door)
        return [len(halves[0]) for halves in foreign]

    def end(self):
        for writer in self.writers:
            writer.ended = True
        for node in (self.leader, self.new, self.other):
            if node.process is not None and node.process.poll() is None:
                node.kill()
        try:
            with open(os.path.join(self.folder, "pid"), encoding="ascii") as file:
                os.kill(int(file.read()), signal.SIGKILL)
        except (OSError, ValueError):
            pass

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def plain(fleet):
    """Straight through; what it refuses before; what a second run says."""
    said = fleet.split(STOPPED, routes="exit 7")
    if "it ended with 7" not in said or fleet.new.stats()["role"] != "follower":
        raise Failure("with routes that cannot be changed: %s" % said)
    said = fleet.split()
    if "4/4" not in said:
        raise Failure("it says %s" % said)
    stream = fleet.new.stats()["stream"]
    if "Nothing was done" not in fleet.split() or fleet.new.stats()["stream"] != stream:
        raise Failure("it was split twice")
    sizes = fleet.judge()
    if min(sizes) < EVEN * sum(sizes):
        raise Failure("the halves were of %d and %d bytes" % tuple(sizes[::-1]))
    fleet.new.kill()
    fleet.new.start()  # its configuration still says whom it follows: nothing is thrown away
    said = fleet.split(STOPPED)
    if "promote --force" not in said:
        raise Failure("a node that began anew: %s" % said)
    fleet.new.rollcall("promote", "--force")
    if "leads stream" not in fleet.split() or not fleet.new.ask(b"set feed:1001.like 0 0 1\r\n1").startswith(b"STORED"):
        raise Failure("it does not lead again")


def refusals(fleet):
    leader, new, third = fleet.leader, fleet.new, pair.Node(fleet.folder, "third")

    def refused(words, nodes=None):
        said = fleet.split(REFUSED, routes="exit 9")
        if words not in said:
            raise Failure("%r is not said, but: %s" % (words, said))
    for writer in fleet.writers:
        writer.finish()
    third.configure(follow=new)
    third.start()
    try:
        pair.level(new, third)
        refused("third follows 127.0.0.1:%d" % new.port)
        answer = new.ask(b"promote 1 - new-stream force")
        if b"third follows this node" not in answer:
            raise Failure("a node that is followed: %r" % answer)
        fleet.leader, fleet.new = new, third
        refused("does not lead: it is follower")
        fleet.leader, fleet.new = leader, fleet.other
        fleet.split(DONE)  # by all it can see that one is split off already
    finally:
        fleet.leader, fleet.new = leader, new
        third.kill()
    for line in (b"promote 1 - force new-stream", b"promote 1 new-stream", b"promote 1 - new-stream twice",
                 b"follow-to 1 127.0.0.1:9 new-stream"):
        answer = new.ask(line)
        if not answer.startswith(b"SERVER_ERROR "):
            raise Failure("%r is answered %r" % (line, answer))
    leader.kill()
    leader.configure(ack_by="b")
    leader.start()
    pair.level(leader, new)
    refused("wait for b")


def stopped(fleet):
    """Somebody is killed or stopped on the way. The script is run until it is done."""
    victim = fleet.rng.choice(("script", "leader", "new", "new stopped"))
    script = subprocess.Popen(fleet.command() + ["--wait", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
    time.sleep(fleet.rng.uniform(0, 1.5))
    node = fleet.leader if victim == "leader" else fleet.new
    if victim == "script":
        script.kill()
    elif victim == "new stopped":
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(fleet.rng.uniform(0, 2))
        node.process.send_signal(signal.SIGCONT)
    else:
        node.kill()
        node.start()
    script.communicate(timeout=SPLIT_S)
    runs = 1
    while fleet.new.stats()["role"] != "leader":
        time.sleep(0.2)  # who was killed connects again
        said = fleet.split(None)
        if "this has it lead" in said:
            fleet.new.rollcall("promote", "--force")
        runs += 1
        if runs == RUNS_MAX:
            raise Failure("%s: it is not split after %d runs: %s" % (victim, runs, said))
    fleet.split()
    fleet.judge()
    return "%s, %d runs" % (victim, runs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=30 if os.environ.get("ROLLCALL_TEST_LONG") else 2)
    options = parser.parse_args()
    rng = random.Random(seed_of_run(options.seed))
    if cluster.program("nutcracker") is None:
        print("SKIP: not installed: nutcracker")
        return 77
    os.environ["ROLLCALL"] = os.path.join(os.environ["ROLLCALL_BUILD"], "rollcall")
    for part in [plain, refusals] + [stopped] * options.rounds:
        began = time.monotonic()
        fleet = Fleet(options, rng)
        try:
            fleet.start()
            said = part(fleet)
        except (Failure, OSError, subprocess.SubprocessError) as failure:
            print("FAIL %s: %s (kept: %s)" % (part.__name__, failure, fleet.folder))
            return 1
        finally:
            fleet.end()
        fleet.remove()
        print("ok   %-10s %5.1f s  %s" % (part.__name__, time.monotonic() - began, said or ""), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
