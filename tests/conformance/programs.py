"""programs.py: suites and tools that are programs of their own, and what twemproxy does with ids.

Each function yields (test, result), result as Checks.run has it.
"""
import os
import re
import socket
import subprocess
import tempfile

TEST_S = 60
ANSWER_S = 10
CAPABLE = {"ascii": 27, "binary": 27}
IDS = range(900001, 900121)


def run(*command, stdin=b""):
    """(exit code, output); the code is None when it did not end."""
    try:
        done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=TEST_S, check=False)
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode("utf-8", "replace")
    return done.returncode, done.stdout.decode("utf-8", "replace")


def memccapable(address):
    """All its tests; a test that it does not get to fails too."""
    for protocol, count in CAPABLE.items():
        code, output = run("memccapable", "-h", address[0], "-p", str(address[1]),
                           "-a" if protocol == "ascii" else "-b", "-t", "5")
        found = re.findall(r"^(%s .*?)\s*\[(pass|FAIL|skip)\]" % protocol, output, re.M)
        for name, result in found:
            yield name, "ok" if result == "pass" else "it says " + result
        for nth in range(len(found), count):
            yield "%s, the %dth test" % (protocol, nth + 1), "not reached (exit %s)" % code


def judged(good, code, output):
    return "ok" if good else "exit %s: %s" % (code, " ".join(output.split())[:300] or "nothing")


MEMCACHED_TOOL = "/usr/share/memcached/scripts/memcached-tool"  # Debian's


def libmemcached_tools(address):
    """What each tool is for; and those of memcached's own that read a list to its end."""
    server = "--servers=%s:%d" % address
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tools-key")
        with open(path, "w", encoding="ascii") as file:
            file.write("as a file")
        counter = os.path.join(folder, "feed:4711.like")
        with open(counter, "w", encoding="ascii") as file:
            file.write("7")
        steps = (
            ("memcping", (server,), 0, ""),
            ("memcstat", (server,), 0, "version: 1.6.45"),
            ("memccp", (server, path), 0, ""),
            ("memccat", (server, "tools-key"), 0, "as a file"),
            ("memcexist", (server, "tools-key"), 0, ""),
            ("memctouch", (server, "--expire=100", "tools-key"), 0, ""),
            ("memcrm", (server, "tools-key"), 0, ""),
            ("memcexist", (server, "tools-key"), 1, ""),
            ("memctouch", (server, "--expire=100", "feed:4711"), 1, ""),
            ("memcexist", (server, "feed:4711.like"), 1, ""),
            ("memcexist", (server, "--binary", "feed:4711"), 1, ""),
            ("memccp", (server, counter), 0, ""),
            ("memcexist", (server, "feed:4711.like"), 0, ""),
            ("memcexist", (server, "--binary", "feed:4711.like"), 0, ""),
            ("memcexist", (server, "feed:4711"), 0, ""),
            ("memccp", (server, "--binary", path), 0, ""),
            ("memccat", (server, "--binary", "tools-key"), 0, "as a file"),
            ("memcslap", (server, "--concurrency=2", "--execute-number=500", "--test=set"), 0, ""),
            ("memcflush", (server,), 0, ""),
            ("memccat", (server, "tools-key"), 1, ""),
        )
        for nth, (tool, words, code_wanted, text) in enumerate(steps):
            code, output = run(tool, *words)
            yield "%s (%d)" % (tool, nth + 1), judged(
                (code == code_wanted) and text in output, code, output)
        code, output = run("memccp", server, path)
        for tool, words in (("memcdump", (server,)),
                            ("perl", (MEMCACHED_TOOL, "%s:%d" % address, "keys")),
                            ("perl", (MEMCACHED_TOOL, "%s:%d" % address, "dump"))):
            code, output = run(tool, *words)
            yield " ".join((tool,) + words[2:]), judged(
                code == 0 and "tools-key" in output, code, output)
        for mode in ("display", "stats", "settings", "sizes"):
            code, output = run("perl", MEMCACHED_TOOL, "%s:%d" % address, mode)
            yield "memcached-tool " + mode, judged(code == 0 and output, code, output)


class Line:
    """The text protocol, a command at a time."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, ANSWER_S)
        self.file = self.socket.makefile("rb")

    def ask(self, text):
        self.socket.sendall(text.encode() + b"\r\n")
        return self.file.readline().decode().strip()

    def get(self, *keys):
        self.socket.sendall(("get %s\r\n" % " ".join(keys)).encode())
        found, line = {}, self.file.readline()
        while line.startswith(b"VALUE "):
            found[line.split()[1].decode()] = self.file.readline().strip().decode()
            line = self.file.readline()
        return found if line == b"END\r\n" else line.decode()

    def close(self):
        self.file.close()
        self.socket.close()


def write_ids(proxy):
    """One slot, one other, and one member of each id, through the proxy; what did not work."""
    for number in IDS:
        answers = (
            proxy.ask("set feed:{%d} 0 0 4\r\n1,,," % number),
            proxy.ask("incr feed:{%d}.like %d" % (number, number)),
            proxy.ask("add liked:{%d}:u9 0 0 1\r\n1" % number),
            proxy.ask("add liked:{%d}:u9 0 0 1\r\n1" % number),
        )
        if answers != ("STORED", str(number), "STORED", "NOT_STORED"):
            return "%d: %s" % (number, answers)
    return "ok"


def twemproxy(address, daemons):
    """Every post as a whole on one of the three daemons, some on each, and gets over all of them."""
    proxy = Line(address)
    shards = [Line(daemon.address) for daemon in daemons]
    try:
        yield "writes of %d ids" % len(IDS), write_ids(proxy)
        wanted = {}
        for number in IDS:
            wanted["feed:{%d}" % number] = "1,,%d," % number
            wanted["feed:{%d}.like" % number] = str(number)
            wanted["liked:{%d}:u9" % number] = "1"
        found = proxy.get(*wanted)
        yield "one get of %d keys" % len(wanted), "ok" if found == wanted else "another answer"
        parts = [shard.get(*wanted) for shard in shards]
        yield "some on every daemon", "ok" if all(parts) else str([len(part) for part in parts])
        yield "a post on one daemon", whole(parts)
        yield "nothing twice", ("ok" if sum(map(len, parts)) == len(wanted)
                                else str([len(part) for part in parts]))
    finally:
        for line in (proxy, *shards):
            line.close()


def whole(parts):
    for number in IDS:
        held = [sum("{%d}" % number in key for key in part) for part in parts]
        if sorted(held) != [0, 0, 3]:
            return "%d: %s keys on the three" % (number, held)
    return "ok"
