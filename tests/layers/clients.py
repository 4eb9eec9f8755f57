"""clients.py: clients of several daemons behind one set of calls, for run.py.

Each is made of the daemons' ports; a call says which of them, from 0. Keys and values are text.

    get(at, keys)               {key: (value, token)} of those that are there
    store(at, verb, key, value) set, add, replace: whether it was stored
    cas(at, key, token, value)  "stored", "exists" or "missing"
    count(at, verb, key, delta) incr, decr: the number; None: nothing was there
    delete(at, key), touch(at, key, exptime)    whether it was there
"""
import os
import socket
import subprocess
import time

HOST = "127.0.0.1"
ANSWER_S = 20  # the longest wait for one answer
AGAIN_S = 0.05
LATER = ("busy", "no table free")


class Wrong(Exception):
    """An answer that no such call may have."""


class Patient:
    """A client that tries again what was refused, and so not done, for want of a table or disk."""

    def __init__(self, client):
        self.client, self.name = client, type(client).__name__

    def __getattr__(self, name):
        call = getattr(self.client, name)

        def patient(*arguments):
            until = time.monotonic() + ANSWER_S
            while True:
                try:
                    return call(*arguments)
                except Exception as problem:
                    if time.monotonic() > until or not any(word in str(problem) for word in LATER):
                        raise
                    time.sleep(AGAIN_S)

        return patient


class Pymemcache:
    """Each daemon by a client of pymemcache."""

    def __init__(self, ports):
        from pymemcache.client.base import Client  # its absence is the caller's to tell
        self.peers = [Client((HOST, port), default_noreply=False, timeout=ANSWER_S,
                             no_delay=True) for port in ports]

    def get(self, at, keys):
        return {key: (value.decode(), token.decode())
                for key, (value, token) in self.peers[at].gets_many(keys).items()}

    def store(self, at, verb, key, value):
        return getattr(self.peers[at], verb)(key, value)

    def cas(self, at, key, token, value):
        return {True: "stored", False: "exists", None: "missing"}[
            self.peers[at].cas(key, value, token)]

    def count(self, at, verb, key, delta):
        return getattr(self.peers[at], verb)(key, delta)

    def delete(self, at, key):
        return self.peers[at].delete(key)

    def touch(self, at, key, exptime):
        return self.peers[at].touch(key, exptime)

    def close(self):
        for peer in self.peers:
            peer.close()


class Libmemcached:
    """All of them by one process of the program libmemcached, which is built beside the daemon."""

    def __init__(self, ports, dialect):
        self.process = subprocess.Popen(
            [self.program(), dialect] + [str(port) for port in ports], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, universal_newlines=True, bufsize=1)

    @staticmethod
    def program():
        return os.path.join(os.environ["ROLLCALL_BUILD"], "tests", "layers", "libmemcached")

    def ask(self, at, *words):
        self.process.stdin.write("%d %s\n" % (at, " ".join(words)))
        answer = self.process.stdout.readline().split()
        if not answer or "ERROR" in answer:
            raise Wrong("%s: %s" % (" ".join(words), " ".join(answer)))
        return answer

    def get(self, at, keys):
        words = self.ask(at, "get", *keys)[1:]
        return {words[i + 1]: (words[i + 2], words[i]) for i in range(0, len(words), 3)}

    def store(self, at, verb, key, value):
        return self.ask(at, verb, key, value) == ["STORED"]

    def cas(self, at, key, token, value):
        word = self.ask(at, "cas", key, token, value)[0]
        return {"STORED": "stored", "EXISTS": "exists", "NOTFOUND": "missing"}[word]

    def count(self, at, verb, key, delta):
        word = self.ask(at, verb, key, str(delta))[0]
        return None if word == "NOTFOUND" else int(word)

    def delete(self, at, key):
        return self.ask(at, "delete", key) == ["STORED"]

    def touch(self, at, key, exptime):
        return self.ask(at, "touch", key, str(exptime)) == ["STORED"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(ANSWER_S)
        self.process.stdout.close()


class Lines:
    """Text commands as they are, on a connection a daemon."""

    def __init__(self, ports):
        self.peers = [socket.create_connection((HOST, port), ANSWER_S) for port in ports]
        for peer in self.peers:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.files = [peer.makefile("rb") for peer in self.peers]

    def ask(self, at, line):
        """One line for one line."""
        self.peers[at].sendall(line.encode() + b"\r\n")
        answer = self.line(at)
        if "ERROR" in answer:
            raise Wrong("%s: %s" % (line, answer))
        return answer

    def set_many(self, at, values):
        """values: by key. All of them at once; what was refused for now once more."""
        commands = ["set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value)
                    for key, value in values.items()]
        self.peers[at].sendall("".join(commands).encode())
        answers = {key: self.line(at) for key in values}
        bad = {key: answer for key, answer in answers.items() if answer != "STORED"}
        for key, answer in bad.items():
            if not any(word in answer for word in LATER):
                raise Wrong("set %s: %s" % (key, answer))
        if bad:
            time.sleep(AGAIN_S)
            self.set_many(at, {key: values[key] for key in bad})

    def line(self, at):
        return self.files[at].readline().decode().rstrip("\r\n")

    def read(self, at, line):
        """A classic read: values by key."""
        self.peers[at].sendall(line.encode() + b"\r\n")
        found = {}
        while True:
            words = self.line(at).split()
            if words == ["END"]:
                return found
            if not words or words[0] != "VALUE":
                raise Wrong("%s: %s" % (line, words))
            found[words[1]] = self.line(at)

    def close(self):
        for peer, file in zip(self.peers, self.files):
            file.close()
            peer.close()


class Meta(Lines):
    """The meta commands."""

    MODES = {"set": "S", "add": "E", "replace": "R"}

    def get(self, at, keys):
        asked = "".join("mg %s v c k q\r\n" % key for key in keys) + "mn"
        self.peers[at].sendall(asked.encode() + b"\r\n")
        found = {}
        while True:
            words = self.line(at).split()
            if words == ["MN"]:
                return found
            if not words or words[0] != "VA":
                raise Wrong("mg: %s" % words)
            flags = {word[0]: word[1:] for word in words[2:]}
            found[flags["k"]] = (self.line(at), flags["c"])

    def store(self, at, verb, key, value):
        line = "ms %s %d M%s\r\n%s" % (key, len(value), self.MODES[verb], value)
        return self.ask(at, line) == "HD"

    def cas(self, at, key, token, value):
        answer = self.ask(at, "ms %s %d C%s\r\n%s" % (key, len(value), token, value))
        return {"HD": "stored", "EX": "exists", "NF": "missing"}[answer]

    def count(self, at, verb, key, delta):
        answer = self.ask(at, "ma %s D%d M%s v" % (key, delta, "I" if verb == "incr" else "D"))
        return None if answer == "NF" else int(self.line(at))

    def delete(self, at, key):
        return self.ask(at, "md " + key) == "HD"

    def touch(self, at, key, exptime):
        return self.ask(at, "mg %s T%d" % (key, exptime)) == "HD"
