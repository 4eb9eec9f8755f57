#!/usr/bin/env python3
"""Lists of many keys need a bounded memory, however slowly they are read.

    tests/transfer/lists.py

$ROLLCALLD and $ROLLCALL name the programs. A space of counters, most of it dumped, and a plain one;
as many lists as there may be are read by turns, a little at a time: each is whole and in order, and
the daemon's peak stays below what the lists may have. A list that nobody reads any more costs nothing
once its connection ends.
"""
import operator
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from load import Case, Failure, judge, protocol  # noqa: E402

ROWS = 600000  # each some 90 bytes in a list; a table has most of them
PLAIN = 30000
LISTS = 4  # LISTER_LISTS_MAX
LIST_BYTES = 10 << 20  # of `memory` 320MiB, a 32nd
OTHER_BYTES = 24 << 20  # output of four connections, pages of dumped tables, the allocator's own
PIECE = 1 << 16
ID = re.compile(rb"^\d+", re.M)  # of a line of an export
CONFIG = """threads: 2
memory: 320MiB
data: %s
spaces:
  feed:
    kind: counter
    slots: {like: 20, read: 20}
    table-size: 4MiB
    tables: 2
    oldest: dump
  other: {kind: plain, memory: 32MiB}
"""


class Lists(Case):
    def memory(self, name):
        with open("/proc/%d/status" % self.daemon.process.pid, encoding="ascii") as file:
            return int(re.search(name + r":\s+(\d+) kB", file.read()).group(1)) << 10

    def forget_peak(self):
        with open("/proc/%d/clear_refs" % self.daemon.process.pid, "w", encoding="ascii") as file:
            file.write("5")

    def fill(self):
        rows = "".join("%d,%d,1\n" % (i * 5, i % 1000) for i in range(ROWS))
        program = os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))
        subprocess.run([program, "load", "feed", "--offline", self.folder.data, "--config",
                        self.folder.config, "-q", "-f", "csv", "-c", "id,like,read"],
                       input=rows, text=True, check=True, timeout=120)
        self.start()
        client = self.daemon.connect()
        for at in range(0, PLAIN, 500):
            client.ask(b"".join(b"set plain%d 0 0 200 noreply\r\n%s\r\n" % (i, b"x" * 200)
                                for i in range(at, at + 500)) + b"mn\r\n", (b"MN\r\n",))
        client.socket.close()

    def read_all(self, commands):
        """How many lines each of them is answered, a piece of each by turns; those of an export are in
        the order of their ids."""
        sockets = [self.daemon.connect().socket for _ in commands]
        rests, lines = [b""] * len(commands), [0] * len(commands)
        last = -1
        for connection, command in zip(sockets, commands):
            connection.sendall(command + b"\r\n")
        open_ones = list(range(len(commands)))
        while open_ones:
            for i in list(open_ones):
                piece = sockets[i].recv(PIECE)
                if not piece:
                    raise Failure("list %d was cut off" % i)
                whole, _, rests[i] = (rests[i] + piece).rpartition(b"\n")
                lines[i] += whole.count(b"\n") + 1
                if b"export" in commands[i]:
                    ids = [int(one) for one in ID.findall(whole)]
                    if not all(map(operator.lt, [last] + ids, ids)):
                        raise Failure("ids are not in order")
                    last = ids[-1] if ids else last
                if whole.endswith((b"END\r", b"EN\r")):
                    open_ones.remove(i)
        for connection in sockets:
            connection.close()
        return lines

    def bounded(self):
        self.forget_peak()
        before = self.memory("VmRSS")
        lines = self.read_all([b"lru_crawler metadump all", b"lru_crawler mgdump all",
                               b"lru_crawler export feed", b"lru_crawler mgdump all"])
        self.same(lines, [ROWS + PLAIN + 1, ROWS + PLAIN + 1, ROWS + 2, ROWS + PLAIN + 1])
        grown = self.memory("VmHWM") - before
        with open("/proc/%d/maps" % self.daemon.process.pid, encoding="utf-8") as maps:
            if "libasan" in maps.read():
                return "%d MiB, not judged: ASan holds what was freed" % (grown >> 20)
        if grown > LISTS * LIST_BYTES + OTHER_BYTES:
            raise Failure("four lists took %d MiB" % (grown >> 20))
        return "%d MiB for %d lists of %d keys" % (grown >> 20, LISTS, ROWS)

    def left(self):
        """Connections that end in the midst of their lists leave room for others."""
        for _ in range(3):
            sockets = [self.begin_list() for _ in range(LISTS)]
            extra, said = self.ask_list()
            if not said.startswith(b"BUSY"):
                raise Failure("there are more lists than there may be: %r" % said[:80])
            for connection in sockets + [extra]:
                connection.close()

    def ask_list(self):
        connection = self.daemon.connect().socket
        connection.sendall(b"lru_crawler export feed\r\n")
        return connection, connection.recv(PIECE)

    def begin_list(self):
        until = time.monotonic() + judge.ANSWER_S
        while time.monotonic() < until:
            connection, said = self.ask_list()
            if said.startswith(b"EXPORT feed"):
                return connection
            connection.close()
            time.sleep(protocol.POLL_S)
        raise Failure("lists of connections that ended are held")

    def begin(self):
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(CONFIG % self.folder.data)
        self.fill()

    def cases(self):
        return self.bounded, self.left


if __name__ == "__main__":
    sys.exit(Lists().run())
