"""peer.py: the programs that drive clients, and twemproxy in front of daemons.

CLIENTS is the one list of client libraries; tools/conformance has the packages of each.
"""
import os
import selectors
import shutil
import socket
import subprocess
import tempfile
import time

from checks import Wrong
from ports import free_port

HERE = os.path.dirname(os.path.abspath(__file__))
ANSWER_S = 20
SILENCES_MAX = 2
BUILD_S = 240
START_S = 20
POLL_S = 0.01
PYTHON = "/usr/bin/python3"  # Debian's: the modules are its
SPY = "/usr/share/java/spymemcached.jar"


class Client:
    """A library: how its program is started ($W is the work folder) and what it speaks."""

    def __init__(self, command, ways, build=None, environment=None, not_proxied=(), note=None):
        """`not_proxied`: columns in which the client itself does not work behind twemproxy."""
        self.command, self.ways, self.build = command, ways, build
        self.environment, self.not_proxied = environment or {}, not_proxied
        self.note = note

    def filled(self, words, work):
        return [word.replace("$W", work).replace("$HERE", HERE) for word in words]

    def variables(self, work):
        return dict(os.environ, LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1",
                    **{name: value.replace("$W", work) for name, value in self.environment.items()})

    def prepare(self, work):
        """Compiles what has to be; a text if that fails."""
        if not self.build:
            return None
        try:
            done = subprocess.run(self.filled(self.build, work), env=self.variables(work), cwd=work,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=BUILD_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return str(problem)
        return done.stdout.decode("utf-8", "replace") if done.returncode else None


TEXT, BINARY = ("text",), ("binary",)
GO = {"GOPATH": "/usr/share/gocode", "GO111MODULE": "off", "GOCACHE": "$W/go", "GOFLAGS": "",
      "GOPROXY": "off"}
UNORDERED = ("slot many", "record many", "member many")
UNORDERED_NOTE = ("it loses values that do not come in the order it asked for, and twemproxy gives "
                  "them in that of the servers (the same with memcached behind it)")
PREPEND_NOTE = "its prepend sends an append (the same with memcached)"
NODE = {"NODE_PATH": "$W/node_modules"}
CLIENTS = {
    "pymemcache": Client([PYTHON, "$HERE/pymemcache_client.py"], TEXT),
    "pylibmc": Client([PYTHON, "$HERE/pylibmc_client.py"], TEXT + BINARY),
    "php-memcached": Client(["php", "$HERE/memcached.php"], TEXT + BINARY),
    "Cache::Memcached": Client(["perl", "$HERE/memcached.pl"], TEXT),
    "Cache::Memcached::Fast": Client(["perl", "$HERE/memcached.pl"], TEXT, not_proxied=UNORDERED,
                                     note=UNORDERED_NOTE),
    "memcached.js": Client(["node", "$HERE/memcached.js"], TEXT, environment=NODE),
    "memjs": Client(["node", "$HERE/memjs.js"], BINARY, environment=NODE, note=PREPEND_NOTE),
    "dalli": Client(["ruby", "$HERE/dalli.rb"], BINARY),
    "gomemcache": Client(["$W/gomemcache"], TEXT, environment=GO,
                         build=["go", "build", "-o", "$W/gomemcache", "$HERE/gomemcache.go"]),
    "spymemcached": Client(["java", "-cp", "$W:" + SPY, "Spymemcached"], TEXT + BINARY,
                           build=["javac", "-cp", SPY, "-d", "$W", "$HERE/Spymemcached.java"]),
}


class Peer:
    """A running program of a client; one that does not answer is ended, and started again once."""

    def __init__(self, name, work, address, protocol):
        client = CLIENTS[name]
        self.command = client.filled(client.command, work)
        self.command += [address[0], str(address[1]), protocol, name]
        self.environment = client.variables(work)
        self.process, self.silences = None, 0
        self.errors = tempfile.TemporaryFile()

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, bufsize=0)

    def stop(self):
        if self.process is None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process = None

    def last_words(self):
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace").strip()[-500:]

    def ask(self, *words):
        if self.silences == SILENCES_MAX:
            raise Wrong("%s: not tried, the client does not answer" % words[0])
        try:
            if self.process is None:
                self.start()
            self.process.stdin.write("\t".join(words).encode() + b"\n")
            answer = self.line()
        except (OSError, EOFError, TimeoutError) as problem:
            self.silences += 1
            self.stop()
            raise Wrong("%s: no answer (%s) %s" % (words[0], problem, self.last_words()))
        return answer.decode("utf-8", "replace").split("\t")

    def line(self):
        """Nothing comes that was not asked for: what has come is one line, or the beginning of it."""
        data, until = b"", time.monotonic() + ANSWER_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not data.endswith(b"\n"):
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise TimeoutError("%d s" % ANSWER_S)
                piece = os.read(self.process.stdout.fileno(), 1 << 18)
                if not piece:
                    raise EOFError("it ended")
                data += piece
        return data[:-1]


class Twemproxy:
    """nutcracker in front of `daemons`, in the foreground, with hash tag {}."""

    def __init__(self, work, daemons):
        program = shutil.which("nutcracker") or "/usr/sbin/nutcracker"
        self.address = ("127.0.0.1", free_port())
        servers = "".join("   - 127.0.0.1:%d:1 shard%d\n" % (daemon.address[1], nth)
                          for nth, daemon in enumerate(daemons))
        path = os.path.join(work, "twemproxy.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write("counts:\n  listen: 127.0.0.1:%d\n  hash: murmur\n  hash_tag: \"{}\"\n"
                       "  distribution: ketama\n  timeout: 10000\n  auto_eject_hosts: false\n"
                       "  servers:\n%s" % (self.address[1], servers))
        self.log = os.path.join(work, "twemproxy.log")
        self.process = subprocess.Popen(
            [program, "-c", path, "-o", self.log, "-a", "127.0.0.1", "-s", str(free_port())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait()

    def wait(self):
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(self.address, 1).close()
                return
            except OSError:
                time.sleep(POLL_S)
        self.stop()
        with open(self.log, encoding="utf-8", errors="replace") as file:
            raise RuntimeError("twemproxy did not start:\n" + file.read())

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(START_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
