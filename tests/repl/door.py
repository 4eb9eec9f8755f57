#!/usr/bin/env python3
"""A follower at the door: TLS, a login, and each mistake of an operator: one clear word, nothing changed.

    tests/repl/door.py [--directory DIR]

$ROLLCALLD names the daemon. Skipped without the program openssl.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recovery"))
import pair as nodes  # noqa: E402
from victim import Failure  # noqa: E402

SKIPPED = 77
LEADER = """listen: ["localhost:%(tls)d", "notls:127.0.0.1:%(port)d"]
replication: {name: one}
tls: {enabled: yes, certificate: %(path)s/one.crt, key: %(path)s/one.key}
"""
FOLLOWER = """listen: ["notls:127.0.0.1:%(port)d"]
replication: {name: %(name)s, group: %(group)s, follow: "%(follow)s"%(more)s}
tls: {enabled: yes, certificate: %(path)s/two.crt, key: %(path)s/two.key, ca: %(path)s/one.crt}
"""
REST = """threads: 1
memory: 320MiB
data: %(data)s
spaces:
  feed: {kind: counter, slots: {like: 20}, table-size: 64KiB, tables: 4}
"""


def certificate(folder, name, host):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=x", "-addext", "subjectAltName=" + host,
                    "-out", os.path.join(folder, name + ".crt"), "-keyout", os.path.join(folder, name + ".key")],
                   check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for end in (".crt", ".key"):
        os.chmod(os.path.join(folder, name + end), 0o644)


class Door:
    """A leader with TLS on one port, and a follower that is configured anew for each mistake."""

    def __init__(self, directory):
        self.one, self.two = nodes.Node(directory, "one"), nodes.Node(directory, "two")
        self.path, self.tls = self.one.folder.path, nodes.free_port()
        self.written = "0"  # at the follower
        certificate(self.path, "one", "IP:127.0.0.1")
        certificate(self.path, "two", "DNS:two")

    def write(self, name, text, mode=0o644):
        """Of the one who reads it: root's tests have the daemon be another user."""
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        if os.geteuid() == 0:
            shutil.chown(path, nodes.USER)
        os.chmod(path, mode)
        return path

    def lead(self, more=""):
        values = {"tls": self.tls, "port": self.one.port, "path": self.path, "data": self.one.folder.data}
        self.write("config.yaml", (LEADER + REST + more) % values)
        self.one.launch()
        nodes.wait_for(lambda: "it does not listen: " + self.one.output(), self.listens)

    def listens(self):
        if self.one.process.poll() is not None:
            raise Failure("the leader ended")
        return "listening on 127.0.0.1:%d" % self.one.port in self.one.output().rpartition("loaded ")[2]

    def configure(self, follow, more="", name="two", group="rollcall"):
        values = {"port": self.two.port, "path": self.path, "data": self.two.folder.data, "follow": follow,
                  "more": more, "name": name, "group": group}
        with open(self.two.folder.config, "w", encoding="ascii") as file:
            file.write((FOLLOWER + REST) % values)

    def refused(self, words, *how, **more):
        """It says so in `stats replication` and once in the log, and takes nothing."""
        self.configure(*how, **more)
        self.two.start()
        nodes.wait_for(lambda: "%r is not the trouble: %s" % (words, self.two.stats()),
                       lambda: words in self.two.stats()["trouble"])
        found = self.two.stats()
        if found["state"] != "follower-connecting" or found["written"] != self.written:
            raise Failure("%s: %s" % (words, found))
        self.two.stop()

    def streams(self, *how, **more):
        self.configure(*how, **more)
        self.two.start()
        self.is_level()

    def is_level(self):
        nodes.wait_for(lambda: "no stream: %s" % self.two.stats(),
                       lambda: self.two.stats()["state"] == "follower-streaming")
        if self.two.ask(b"get feed:7", b"END\r\n") != b"VALUE feed:7 0 1\r\n5\r\nEND\r\n":
            raise Failure("feed:7 is not here")
        self.written = self.two.stats()["written"]

    def end(self):
        for node in (self.one, self.two):
            if node.process is not None and node.process.poll() is None:
                node.kill()
            node.folder.remove()


def mistakes(door):
    """Nothing is changed by any of them, and the right configuration then streams."""
    door.lead()
    if door.one.ask(b"set feed:7 0 0 1\r\n5") != b"STORED\r\n":
        raise Failure("nothing can be stored")
    here = "127.0.0.1:%d" % door.tls
    door.refused("group other was asked for", here, group="other")
    door.refused("one is the name of this node", here, name="one")
    door.refused("certificate is refused: hostname mismatch", "localhost:%d" % door.tls)
    door.refused("the TLS handshake failed", "127.0.0.1:%d" % door.one.port)
    door.refused("it cannot be reached: Connection refused", "127.0.0.1:%d" % nodes.free_port())
    door.streams(here)
    door.two.stop()
    door.streams("notls:127.0.0.1:%d" % door.one.port)
    door.two.stop()
    door.one.stop()


def login(door):
    """A wrong password, then the right one after SIGHUP."""
    door.write("users", "two:secret\n", 0o600)
    user = door.write("user", "two:wrong\n", 0o600)
    door.lead("auth-file: %(path)s/users\n")
    here = "127.0.0.1:%d" % door.tls
    door.refused("unauthenticated", here)
    door.configure(here, ", credentials: " + user)
    door.two.start()
    nodes.wait_for(lambda: "it is let in: %s" % door.two.stats(),
                   lambda: "replication.credentials is not let in" in door.two.stats()["trouble"])
    door.write("user", "two:secret\n", 0o600)
    door.two.process.send_signal(signal.SIGHUP)
    door.is_level()
    door.two.stop()
    if "secret" in door.two.output() or "wrong " in door.two.output():
        raise Failure("a password is in the log")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    options = parser.parse_args()
    if shutil.which("openssl") is None:
        print("skipped: no openssl")
        return SKIPPED
    door = Door(options.directory)
    try:
        mistakes(door)
        login(door)
    except Failure as problem:
        if "built without TLS" in door.one.output():
            print("skipped: a build without TLS")
            return SKIPPED
        print("%s\n--- one ---\n%s\n--- two ---\n%s" % (problem, door.one.output()[-3000:],
                                                        door.two.output()[-5000:]))
        return 1
    finally:
        door.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
