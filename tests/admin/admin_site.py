"""admin_site.py: a daemon with its status page, and questions to it, for the tests of this folder."""
import atexit
import base64
import http.client
import os
import re
import shutil
import socket
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "protocol"))
import run as protocol  # noqa: E402

SKIPPED = 77
ANSWER_S = 30
REPORT = re.compile(r"Sanitizer|runtime error|check failed|CHECK|Assertion")
CONFIG = """threads: 2
memory: 256MiB
max-connections: 200
admin: 127.0.0.1:0
spaces:
  feed:
    kind: counter
    slots: {repost: 4, like: 20}
    table-size: 64KiB
    tables: 4
  liked:
    kind: phantom
    deletes: yes
    table-size: 64KiB
    tables: 4
  full:
    kind: counter
    slots: {read: 20}
    table-size: 64KiB
    tables: 2
    oldest: refuse
  other:
    kind: plain
    memory: 8MiB
"""
DATA = """data: %s
journal: {segment: 1MiB, buffer: 1MiB}
checkpoint: {every: 100ms}
cold: {threads: 2, cache: 1MiB, overlay: 1MiB}
"""


def follower_of(here, text=None):
    """A daemon, named two, that follows a Site with data whose name is one."""
    line = "replication: {name: two, follow: \"127.0.0.1:%d\"}\n" % here.daemon.address[1]
    return Site((text or CONFIG) + line, data=True)


def led_by_word():
    """A daemon that leads in epoch 5, once its agent says so, which nobody has yet; its name is three."""
    here = Site(CONFIG + "replication: {name: three, follow: agent, ack: replica}\n", data=True)
    assert here.command("promote 1 5 force") == "OK 5 0\r\n"
    return here


class Options:
    connect = None


class Site:
    """A daemon with configuration `text`, in a folder of its own; data: with a data directory."""

    def __init__(self, text=CONFIG, data=False, files=()):
        self.folder = tempfile.mkdtemp(prefix="rollcall-admin-")
        os.chmod(self.folder, 0o711)
        for name, content in files:
            self.write(name, content)
        if data:
            directory = os.path.join(self.folder, "data")
            os.mkdir(directory, 0o700)
            if os.geteuid() == 0:
                shutil.chown(directory, protocol.USER)
            text = DATA % directory + text
        options = Options()
        options.config = self.write("config.yaml", text.replace("$FOLDER", self.folder))
        try:
            self.daemon = protocol.Daemon(options, [])
        except protocol.Mismatch:
            shutil.rmtree(self.folder)
            raise
        atexit.register(self.abandon)
        match = re.search(r"status page on http://127\.0\.0\.1:(\d+)/", self.daemon.output())
        assert match, self.daemon.output()
        self.port = int(match.group(1))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o644)
        return path

    def abandon(self):
        """A test has failed, or ended it already."""
        self.daemon.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self):
        problem = self.daemon.stop(False)
        output = self.daemon.output()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert problem is None, problem
        assert not REPORT.search(output), output

    # ---- HTTP ----

    def ask(self, path, method="GET", user=None, headers=None):
        """(code, headers, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        headers = dict(headers or {})
        if user:
            headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.headers, body

    def text(self, path):
        code, _, body = self.ask(path)
        assert code == 200, (path, code, body)
        return body.decode()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), ANSWER_S)

    def metrics(self):
        """{'name{labels}': value} of an answer younger than any change before the call."""
        time.sleep(1.05)  # one answer a second is made
        rows = (line.rsplit(" ", 1) for line in self.text("/metrics").splitlines()
                if line and line[0] != "#")
        return {name: float(value) for name, value in rows}

    # ---- memcached ----

    def say(self, *lines):
        """Sends requests, returns all answers up to that of the last, which is a mn."""
        with socket.create_connection(self.daemon.address, ANSWER_S) as client:
            client.sendall(b"".join(line.encode() + b"\r\n" for line in lines) + b"mn\r\n")
            data = b""
            while not data.endswith(b"MN\r\n"):
                piece = client.recv(1 << 16)
                assert piece, data
                data += piece
        return data[:-4].decode("latin-1")

    def command(self, line):
        """The answer to a line after which the daemon closes."""
        with socket.create_connection(self.daemon.address, ANSWER_S) as client:
            client.sendall(line.encode() + b"\r\n")
            with client.makefile("rb") as answer:
                return answer.read().decode()

    def agent_says(self, ms, waits):
        """That it leads for so long, and for whom its answers wait."""
        until = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000) + ms
        answer = self.command("lead 1 5 %d %s" % (until, waits))
        assert answer.startswith("OK "), answer

    def incr(self, space, ids, slot="like"):
        return self.say(*("incr %s:%d.%s 1" % (space, number, slot) for number in ids))
