#!/usr/bin/env python3
"""Two daemons, one follows the other: kills, copies, promotions under load.

    tests/repl/pair.py [--directory DIR] [--seed N] [--only PART] [--rounds N]

Every writer has ids and members of its own and notes what it sends before it does. In the end, on
every node: acknowledged <= value <= sent, every acknowledged member is found, and both nodes export
the same. $ROLLCALLD names the daemon, $ROLLCALL_BUILD the folder of the build (rollcall is there).
"""
import argparse
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recovery"))
from victim import Failure, Folder, seed_of_run  # noqa: E402
from ports import free_port  # noqa: E402

ANSWER_S = 20
START_S = 60
HELD_PACE_S = 0.02  # while a link is held, for seconds: what is judged is not how much was written
PACE_S = 0.002  # between two batches: a copy takes longer than the journal lasts otherwise
LEVEL_S = 60  # until a follower has caught up
USER = "nobody"
REFUSED = 4  # EXIT_STATUS_REFUSED
CONFIG = """threads: 2
memory: %(memory)s
listen: 127.0.0.1:%(port)d
data: %(data)s
journal: {segment: 1MiB, buffer: 1MiB, sync: %(sync)s}
checkpoint: {every: %(every)s, journal: 2MiB}
replication: {name: %(name)s, keep: %(keep)s%(follow)s%(ack)s}
spaces:
  feed:
    kind: counter
    slots: {like: 20, read: 10%(slots)s}
    table-size: 64KiB
    tables: 4
    oldest: dump
  liked:
    kind: phantom
    deletes: yes
    table-size: 64KiB
    tables: 4
    oldest: dump
  user:
    kind: counter
    slots: {unread: 16}
    ids: any
    max-id: 1000000
    table-size: 1MiB
%(more)s"""
MORE = "  late: {kind: counter, slots: {n: 8}, table-size: 64KiB, tables: 4}\n"


class Skipped(Exception):
    """A part cannot be run here."""


class Node:
    """A daemon of a name, with a directory and a port that are its own for good."""

    def __init__(self, parent, name):
        self.folder, self.name, self.port = Folder(parent), name, free_port()
        self.process, self.logs, self.environment = None, 0, None

    def configure(self, follow=None, ack_by=None, keep="64MiB", every="2s", sync="everysec",
                  slots="", more="", memory="512MiB", agent=False):
        values = {
            "memory": memory,
            "slots": slots, "more": more,
            "port": self.port, "data": self.folder.data, "name": self.name, "keep": keep,
            "every": every, "sync": sync,
            "follow": ", follow: \"127.0.0.1:%d\"" % follow.port if follow else "",
            "ack": ", ack: replica, ack-by: %s, ack-timeout: 2s" % ack_by if ack_by else ""}
        if agent:
            group = ", group: " + agent if isinstance(agent, str) else ""
            values.update(follow=", follow: agent" + group, ack=", ack: replica, ack-timeout: 2s")
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(CONFIG % values)

    def log_path(self):
        return os.path.join(self.folder.path, "log")

    def output(self):
        with open(self.log_path(), "rb") as file:
            return file.read().decode("utf-8", "replace")

    def launch(self):
        command = [os.environ["ROLLCALLD"], "--config", self.folder.config]
        if os.geteuid() == 0:
            command += ["-u", USER]
        with open(self.log_path(), "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)

    def start(self):
        self.launch()
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                self.stats()
                return
            except (OSError, Failure):
                time.sleep(0.01)
        raise Failure("%s does not start:\n%s" % (self.name, self.output()))

    def reload(self):
        before = self.output().count("reload: ")
        self.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "%s does not reload:\n%s" % (self.name, self.output()[-2000:]),
                 lambda: "reload: done" in "reload: ".join(
                     [""] + self.output().split("reload: ")[before + 1:]))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        if self.process.wait(START_S) != 0:
            raise Failure("%s ended with %d:\n%s" % (self.name, self.process.returncode,
                                                     self.output()))

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), ANSWER_S)

    def ask(self, line, end=b"\r\n"):
        with self.connect() as link:
            link.sendall(line + b"\r\n")
            said = b""
            while not said.endswith(end):
                piece = link.recv(1 << 16)
                if not piece:
                    break
                said += piece
            return said

    def stats(self, what=b" replication"):
        said = self.ask(b"stats" + what, b"END\r\n")
        rows = (row.split(b" ", 2) for row in said.split(b"\r\n"))
        found = {row[1].decode(): row[2].decode() for row in rows if len(row) == 3}
        if not found:
            raise Failure("stats answers %r" % said)
        return found

    def rollcall(self, verb, *words, status=0):
        done = subprocess.run([os.path.join(os.environ["ROLLCALL_BUILD"], "rollcall"), verb,
                               "--server", "127.0.0.1:%d" % self.port, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != status:
            raise Failure("%s of %s ends with %d: %s" % (verb, self.name, done.returncode,
                                                         done.stderr.decode()))
        return (done.stderr if status else done.stdout).decode()

    def export(self, space):
        return self.rollcall("export", space)


def wait_for(what, holds, seconds=LEVEL_S):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return
        time.sleep(0.02)
    raise Failure("in vain: " + what() if callable(what) else "in vain: " + what)


def level(leader, follower):
    """The follower has carried out all that the leader has."""
    def holds():
        try:
            there, here = leader.stats(), follower.stats()
        except (OSError, Failure):
            return False
        return here.get("state") == "follower-streaming" and int(here["applied"]) == int(there["written"])
    wait_for(lambda: "%s is not level:\n%s\n%s" % (follower.name, follower.stats(),
                                                   follower.output()[-3000:]), holds)


class Writer(threading.Thread):
    """Increments of its own ids, members of its own, pipelined; goes on when a node is back."""

    def __init__(self, number, nodes, seed):
        super().__init__(daemon=True)
        self.number, self.nodes, self.rng = number, nodes, random.Random(seed)
        self.sent, self.acked, self.members = {}, {}, set()
        self.next_id, self.ended, self.paused = 0, False, False
        self.pace = PACE_S
        self.trouble, self.refused = None, 0
        self.start()

    def batch(self):
        lines = []
        for _ in range(20):
            self.next_id += 1
            fresh = 1000 + 8 * self.next_id + self.number
            old = 1000 + 8 * max(1, self.next_id - self.rng.randrange(3000)) + self.number
            user = 8 * self.rng.randrange(20000) + self.number
            lines.append((b"incr", b"feed:%d.like" % fresh))
            lines.append((b"incr", b"feed:%d.read" % old))
            lines.append((b"incr", b"user:%d.unread" % user))
            lines.append((b"set", b"liked:%d:u%d" % (fresh, self.rng.randrange(100))))
        return lines

    def take(self, verb, key, said):
        if verb == b"set":
            if said == b"STORED\r\n":
                self.members.add(key)
                return
        elif said[:1].isdigit():
            value, before = int(said), self.acked.get(key, 0)
            if value <= before:
                self.trouble = "%s: %d behind %d" % (key, value, before)
            self.acked[key] = before + 1
            return
        self.refused += 1
        if not said.startswith(b"SERVER_ERROR"):
            self.trouble = "%s: %r" % (key, said)

    def talk(self, link):
        sent = self.sent
        while not self.ended and not self.paused:
            lines = self.batch()
            text = []
            for verb, key in lines:
                if verb == b"incr":
                    sent[key] = sent.get(key, 0) + 1
                    text.append(b"incr %s 1\r\n" % key)
                else:
                    text.append(b"set %s 0 0 1\r\n1\r\n" % key)
            link.sendall(b"".join(text))
            if not self.hear(link, lines):
                return
            time.sleep(self.pace)

    def hear(self, link, lines):
        """An answer each, taken as it comes; False: the link ended before all of them had."""
        waiting, rest = iter(lines), b""
        left = len(lines)
        while left:
            piece = link.recv(1 << 16)
            if not piece:
                return False
            *whole, rest = (rest + piece).split(b"\r\n")
            left -= len(whole)
            if left < 0 or (rest and not left):
                self.trouble = "more is answered than was asked: %r" % piece
                return False
            for said in whole:
                self.take(*next(waiting), said + b"\r\n")
        return True

    def run(self):
        while not self.ended:
            if self.paused:
                time.sleep(0.01)
                continue
            try:
                with self.nodes[0].connect() as link:
                    self.talk(link)
            except OSError:
                time.sleep(0.01)

    def finish(self):
        self.ended = True
        self.join(ANSWER_S)
        if self.trouble:
            raise Failure("writer %d: %s" % (self.number, self.trouble))


class Relay(threading.Thread):
    """What lies between two nodes: it passes on, or cuts, holds, tears a byte out of, one way."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.port = node, free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.links, self.held, self.flip, self.ended = [], None, False, False
        self.start()

    def run(self):
        while not self.ended:
            ends = [end for pair in self.links for end, way in zip(pair, (1, 2)) if not self.holds(way, pair[0])]
            try:
                ready = select.select([self.listener] + ends, [], [], 0.02)[0]
            except (OSError, ValueError):
                continue  # another thread has cut them
            for end in ready:
                if end is self.listener:
                    self.accept()
                else:
                    self.pass_on(end)
        self.cut()

    def holds(self, way, near):
        """Does nothing of that way come through, from or to `near`? 1: to the node, 2: from it."""
        return self.held == way

    def hear(self, near, said):
        """What comes from it."""

    def accept(self):
        try:
            near, _ = self.listener.accept()
        except OSError:
            return
        try:
            link = near, self.node.connect()
        except OSError:
            near.close()
            return
        for end in link:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.links.append(link)

    def pass_on(self, end):
        for near, far in self.links:
            if end in (near, far) and not self.holds(1 if end is near else 2, near):
                try:
                    said = end.recv(1 << 16)
                    if end is near:
                        self.hear(near, said)
                    if said and self.flip and end is far and len(said) > 4096:
                        said, self.flip = said[:2000] + bytes([said[2000] ^ 4]) + said[2001:], False
                    (far if end is near else near).sendall(said)
                except OSError:
                    said = b""
                if not said:
                    self.drop((near, far))
                return

    def drop(self, link):
        try:
            self.links.remove(link)
        except ValueError:
            return  # another thread has cut it
        for end in link:
            end.close()

    def cut(self):
        for pair in self.links:
            for end in pair:
                end.close()
        self.links = []


class Pair:
    """Leader and follower; nodes[0] is who leads, where writers go."""

    def __init__(self, options):
        self.rng = random.Random(options.seed)
        self.options = options
        self.nodes = [Node(options.directory, "one"), Node(options.directory, "two")]
        self.writers = []

    def lead(self, **first):
        """Each node follows the one before it; writers begin. first: more of nodes[0]'s configuration."""
        self.nodes[0].configure(**first)
        for before, node in zip(self.nodes, self.nodes[1:]):
            node.configure(follow=before)
        for node in self.nodes:
            node.start()
        self.write()

    def stop(self):
        """Who follows ends before whom it follows."""
        for node in self.nodes[::-1]:
            node.stop()

    def wait_in_sync(self):
        wait_for(lambda: "not in sync:\n" + "\n".join(node.output()[-2000:] for node in self.nodes),
                 lambda: self.nodes[0].stats().get("in_sync") == "1")

    def write(self, count=2):
        self.writers = [Writer(i, self.nodes, self.rng.random()) for i in range(count)]

    def finish(self):
        for writer in self.writers:
            writer.finish()

    def pause(self, paused):
        for writer in self.writers:
            writer.paused = paused

    def hurry(self, pace_s):
        """So long do writers rest between two batches from now on."""
        for writer in self.writers:
            writer.pace = pace_s

    def check_values(self, node, lost_allowed=0):
        """acknowledged <= value <= sent, for each id; every member that was acknowledged."""
        short = 0
        for writer in self.writers:
            keys = sorted(writer.sent)
            found = {}
            for at in range(0, len(keys), 100):
                said = node.ask(b"get " + b" ".join(keys[at:at + 100]), b"END\r\n").split(b"\r\n")
                for head, value in zip(said[::2], said[1::2]):
                    if head.startswith(b"VALUE"):
                        found[head.split()[1]] = int(value)
            for key in keys:
                value, acked = found.get(key, 0), writer.acked.get(key, 0)
                short += max(0, acked - value)
                if value > writer.sent[key]:
                    raise Failure("%s of %s is %d, sent %d" % (key, node.name, value,
                                                              writer.sent[key]))
            short += self.check_members(node, sorted(writer.members))
        if short > lost_allowed:
            raise Failure("%s lacks %d acknowledged changes" % (node.name, short))
        return short

    @staticmethod
    def check_members(node, members):
        short = 0
        for at in range(0, len(members), 100):
            part = members[at:at + 100]
            said = node.ask(b"get " + b" ".join(part), b"END\r\n")
            short += len(part) - said.count(b"VALUE ")
        return short

    def check_equal(self, spaces=("feed", "user")):
        one, two = self.nodes
        level(one, two)
        for space in spaces:
            first, second = one.export(space), two.export(space)
            if first != second:
                raise Failure("exports of %s differ: %d and %d bytes, in %s" % (
                    space, len(first), len(second), one.folder.path))

    def end(self):
        for node in self.nodes:
            if node.process is not None and node.process.poll() is None:
                node.kill()

    def remove(self):
        for node in self.nodes:
            node.folder.remove()


# ---- the parts ----

def kills(pair):
    """Either is killed at any time; nothing that was acknowledged is lost, and both become equal."""
    one, two = pair.nodes
    pair.lead()
    for _ in range(pair.options.rounds):
        time.sleep(pair.rng.uniform(0.1, 0.6))
        node = pair.rng.choice(pair.nodes)
        node.kill()
        node.start()
    pair.finish()
    pair.check_equal()
    pair.check_values(one)
    pair.check_values(two)
    refused = two.ask(b"incr feed:1 1")
    if refused != b"SERVER_ERROR not the leader; it is 127.0.0.1:%d\r\n" % one.port:
        raise Failure("a follower says %r to an incr" % refused)
    pair.stop()


def copies(pair):
    """The journal's beginning is gone: a copy comes, and again when the follower was away."""
    one, two = pair.nodes
    one.configure(keep="0", every="300ms")
    one.start()
    pair.write()
    wait_trimmed(one, 0)
    wait_for("dumped tables to copy", lambda: int(one.stats(b"")["dump_files"]) >= 2)
    two.configure(follow=one)
    two.start()
    level_under_load(two)
    two.kill()
    wait_trimmed(one, int(one.stats()["written"]))  # two has no more than that
    two.start()
    level_under_load(two)
    pair.finish()
    pair.check_equal()
    pair.check_values(two)
    if int(two.stats()["fetched_copies"]) == 0 and "a copy" not in two.output():
        raise Failure("no copy was made")
    pair.stop()


def reloaded(pair):
    """A reload of another file does not change whom a node follows, nor does a copy that it takes then."""
    one, two = pair.nodes
    relay = Relay(one)
    one.configure(keep="0")
    two.configure(follow=relay)
    one.start()
    two.start()
    pair.write()
    level_under_load(two)
    two.configure()
    two.reload()
    relay.held = 2
    relay.cut()
    wait_trimmed(one, int(two.stats()["written"]))
    relay.held = None
    relay.cut()
    wait_for(lambda: "no copy:\n" + two.output()[-3000:], lambda: "takes its place" in two.output())
    level_under_load(two)
    pair.finish()
    pair.check_equal()
    pair.check_values(two)
    relay.ended = True
    pair.stop()


def wait_trimmed(node, lsn):
    """Its journal, which nothing keeps, begins above the LSN: who stands there must have a copy."""
    wait_for("a trimmed journal", lambda: int(node.stats(b"")["journal_oldest"]) > lsn)


def level_under_load(node):
    def holds():
        try:
            return node.stats().get("state") in ("follower-streaming", "follower-behind")
        except (OSError, Failure):
            return False
    wait_for(lambda: "no stream:\n" + node.output()[-3000:], holds)


def promotions(pair):
    """The leader is killed, the follower promoted, the old one follows: nothing is lost."""
    for node, other in zip(pair.nodes, pair.nodes[::-1]):
        node.configure(ack_by=other.name)
    pair.nodes[1].configure(follow=pair.nodes[0], ack_by=pair.nodes[0].name)
    pair.nodes[0].start()
    pair.nodes[1].start()
    pair.write()
    for _ in range(pair.options.rounds):
        leader, follower = pair.nodes
        pair.wait_in_sync()
        time.sleep(pair.rng.uniform(0.05, 0.4))
        leader.kill()
        said = follower.rollcall("promote", "--force")
        if " leads in epoch " not in said:
            raise Failure("promote: %r\n%s" % (said, follower.output()[-3000:]))
        pair.nodes.reverse()
        leader.configure(follow=follower, ack_by=follower.name)
        leader.start()
    pair.wait_in_sync()
    pair.finish()
    pair.check_equal()
    for node in pair.nodes:
        pair.check_values(node)
    for node in pair.nodes:
        node.stop()


def roles(pair):
    """What would be lost is said, and refused; a running leader follows, and its own end is cut,
    for good."""
    one, two = pair.nodes
    pair.lead()
    level_under_load(two)
    pair.pause(True)
    level(one, two)
    for words in (("promote",), ("follow", "127.0.0.1:%d" % two.port)):
        said = one.rollcall(*words, status=REFUSED)
        if "this node leads" not in said or (words[0] == "follow" and "does not lead" not in said):
            raise Failure("a leader says %r to %s" % (said, words[0]))
    two.kill()
    pair.pause(False)
    before = int(one.stats()["written"])
    wait_for("what only the leader has", lambda: int(one.stats()["written"]) > before + 4096)
    pair.finish()
    one.ask(b"incr feed:1.like 5")
    two.configure()  # it leads: the other one's end is not here
    two.start()
    said = one.rollcall("follow", "127.0.0.1:%d" % two.port, status=REFUSED)
    lost = re.search(r"(\d+) bytes of this node's journal are not at", said)
    if lost is None or not 4096 < int(lost[1]) < int(one.stats()["written"]):
        raise Failure("what would be lost: %r" % said)
    one.rollcall("follow", "--force", "127.0.0.1:%d" % two.port)
    pair.nodes.reverse()
    level(two, one)
    pair.writers = []
    if "cut" not in one.output() and "a copy" not in one.output():
        raise Failure("nothing was cut:\n" + one.output())
    pair.check_equal()
    one.kill()  # before as much has come as was cut
    one.configure(follow=two)
    one.start()
    level(two, one)
    pair.check_equal()
    two.stop()
    one.stop()


def unheard(pair):
    """The leader begins epochs that its follower has not heard of, counts on, and is gone. The one that
    is promoted reigns under another epoch; the old leader follows it, with what that one has."""
    one, two = pair.nodes
    one.configure()
    two.configure(follow=one)
    one.start()
    two.start()
    level(one, two)
    two.kill()
    for _ in range(2):
        one.kill()
        one.start()
        for _ in range(100):
            one.ask(b"incr feed:1000.like 1")
    unheard_epoch = int(one.stats()["epoch"])
    one.kill()
    two.start()
    two.rollcall("promote", "--force")
    if int(two.stats()["epoch"]) <= unheard_epoch:
        raise Failure("it reigns in epoch %s, as the other did" % two.stats()["epoch"])
    for _ in range(300):
        two.ask(b"incr feed:1001.like 1")
    one.configure(follow=two)
    one.start()
    pair.nodes.reverse()
    pair.check_equal()
    values = [node.ask(b"get feed:1000.like", b"END\r\n") for node in pair.nodes]
    if values != [b"END\r\n"] * 2:
        raise Failure("what nobody else has is there: %r" % values)
    pair.stop()


def lead_both(one, two, **more):
    """Each is promoted while the other is away, so in one epoch. Returns where the journal of `two` ends,
    which is stopped; `more`: of both configurations."""
    one.configure(**more)
    two.configure(follow=one, **more)
    one.start()
    two.start()
    level(one, two)
    one.stop()
    two.rollcall("promote", "--force")
    two.ask(b"set feed:1.like 0 0 1\r\n7")
    written = int(two.stats()["written"])
    two.stop()
    one.configure(follow=two, **more)
    one.start()
    one.rollcall("promote", "--force")
    return written


def two_leaders(pair):
    """Each is promoted while the other is away, so in one epoch. The one that is to follow then says so, after
    a restart, too, and answers with what it has; with an empty directory it follows."""
    one, two = pair.nodes
    lost = lead_both(one, two)
    if one.stats()["epoch"] != "1000":
        raise Failure("it leads in epoch %s" % one.stats()["epoch"])
    pair.write()
    wait_for("more than the other has", lambda: int(one.stats()["written"]) > lost + 4096)
    two.configure(follow=one)
    two.start()
    for _ in range(2):
        wait_for(lambda: "not diverged:\n%s" % two.output()[-3000:], lambda: is_diverged(two))
        if two.ask(b"get feed:1.like", b"END\r\n") != b"VALUE feed:1.like 0 1\r\n7\r\nEND\r\n":
            raise Failure("what only the follower had is gone")
        two.stop()
        two.start()
    two.kill()
    shutil.rmtree(two.folder.data)
    two.folder.own(two.folder.data)
    two.start()
    level_under_load(two)
    pair.finish()
    pair.check_equal()
    pair.check_values(two)
    pair.stop()


def little_kept(pair):
    """The same, and hardly any journal is kept: what there is of it is compared before anything is taken,
    and where nothing is, where each has the epoch begin. Nothing is thrown away."""
    one, two = pair.nodes
    lost = lead_both(one, two, keep="0")
    for _ in range(100):
        one.ask(b"incr feed:2.like 1")
    two.configure(follow=one, keep="0")
    stays_apart(two, "it has other records than this node")
    pair.write()
    wait_trimmed(one, lost)
    pair.finish()
    stays_apart(two, "epoch 1000 begins at LSN")
    one.stop()


def stays_apart(node, why):
    """It starts, says that, and has what only it had."""
    node.start()
    wait_for(lambda: "not diverged:\n%s" % node.output()[-3000:], lambda: is_diverged(node))
    if not node.stats()["trouble"].startswith(why):
        raise Failure("it is in other trouble: %s" % node.stats()["trouble"])
    if node.ask(b"get feed:1.like", b"END\r\n") != b"VALUE feed:1.like 0 1\r\n7\r\nEND\r\n":
        raise Failure("what only the follower had is gone")
    node.stop()


def is_diverged(node):
    found = node.stats()
    return found["state"] == "diverged" and "empty the data directory of the one that is wrong" in found["trouble"]


def changes(pair):
    """The leader gets a slot, then a space, while it is written to and the follower is killed."""
    one, two = pair.nodes
    pair.lead()
    level_under_load(two)
    one.configure(slots=", share: 8")
    one.reload()
    for number in range(200):
        one.ask(b"incr feed:%d.share 1" % (1000 + 8 * number))
    two.configure(follow=one, slots=", share: 8", more=MORE)
    two.reload()
    one.configure(slots=", share: 8", more=MORE)
    one.reload()
    for number in range(200):
        if not one.ask(b"incr late:%d.n 1" % number)[:1].isdigit():
            raise Failure("the space that was added takes nothing")
    time.sleep(pair.rng.uniform(0, 0.3))
    two.kill()
    two.start()
    pair.finish()
    pair.check_equal(("feed", "user", "late"))
    if two.ask(b"get feed:1000.share", b"END\r\n").split(b"\r\n")[1:2] != [b"1"]:
        raise Failure("the follower does not know the slot")
    pair.check_values(two)
    pair.stop()


def links(pair):
    """The link is cut, held one way until either side gives it up, and a byte of it is turned."""
    one, two = pair.nodes
    relay = Relay(one)
    one.configure(keep="4GiB")  # a link that was held is long: no copy shall be needed
    two.configure(follow=relay)
    one.start()
    two.start()
    pair.write()
    level_under_load(two)
    for fault in ("cut", 1, "flip", 2, "cut"):
        level_under_load(two)
        time.sleep(pair.rng.uniform(0.1, 0.5))
        before = two.output().count("following")
        if fault == "cut":
            relay.cut()
        elif fault == "flip":
            relay.flip = True
        else:
            relay.held = fault
            pair.hurry(HELD_PACE_S)
        wait_for(lambda: "%s was not noticed:\n%s" % (fault, two.output()[-2000:]),
                 lambda: two.output().count("following") > before)
        pair.hurry(PACE_S)
        relay.held = None
    pair.finish()
    pair.check_equal()
    pair.check_values(two)
    if "checksum" not in two.output():
        raise Failure("the byte that was turned was taken:\n" + two.output())
    relay.ended = True
    pair.stop()


PARTS = {"unheard": unheard, "changes": changes, "links": links, "roles": roles, "kills": kills, "copies": copies, "reloaded": reloaded, "promotions": promotions,
         "two_leaders": two_leaders, "little_kept": little_kept}


def run_part(part, options):
    pair = Pair(options)
    try:
        part(pair)
    except Failure:
        for node in pair.nodes:
            node.folder.keep()
            print("kept: %s" % node.folder.path)
        raise
    finally:
        for writer in pair.writers:
            writer.ended = True
        pair.end()
        pair.remove()


def main(parts, rounds):
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(parts))
    parser.add_argument("--rounds", type=int, default=rounds)
    options = parser.parse_args()
    options.seed = seed_of_run(options.seed)
    for name in [options.only] if options.only else parts:
        try:
            run_part(parts[name], options)
            print("%s: passed" % name)
        except Skipped as problem:
            print("%s: skipped: %s" % (name, problem))
        except Failure as failure:
            print("%s, seed %d: %s" % (name, options.seed, failure))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(PARTS, 5))
