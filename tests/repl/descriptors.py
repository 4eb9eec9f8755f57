#!/usr/bin/env python3
"""A copy of more files than descriptors may be open: nobody notices it, and nothing stays behind.

    tests/repl/descriptors.py [--tables N] [--descriptors N] [--directory DIR]

$ROLLCALLD and $ROLLCALL_BUILD as in pair.py. Two daemons, each with a hard limit of --descriptors
that it may not raise, and a soft one of half of that, which it raises:

1. Ids are written until --tables tables are dumped. Then clients take all places that there are.
2. A follower comes, and gets a copy. Until it has it, ids of dumped tables are read and changed,
   and new ones written, so that tables are dumped and files replaced.
3. No read, dump or checkpoint has failed and nobody was refused; one copy was enough; the follower
   has every value; files that stayed for the copy are gone.

Larger, by hand: tests/repl/descriptors.py --tables 3000 --descriptors 1024
"""
import argparse
import os
import subprocess
import sys

import pair
from pair import Failure, Node, wait_for
from victim import limited_program

SLOTS = 7  # wide ones: few ids fill a table
IDS_A_TABLE = 850  # about
BLOCK = 100  # commands sent together
STRIDE = 97  # of the ids that are read, so that each block is of many tables
CHANGED = 2000  # the first ids, of a few tables
FREE = 8  # places that are left for the follower, and for asking
REFUSED = b"ERROR Too many open connections\r\n"
TABLE_BYTES = 64 << 10
COPY_S = 1  # it takes so long, about
READ_OF = 16  # of the follower's ids one in so many is read
FIGURES = ("dump_failures", "checkpoint_failures", "cold_failed", "cold_bad_pages")


class Limited(Node):
    def configure(self, rate=0, follow=None):
        slots = "".join(", %s: 63" % chr(ord("a") + i) for i in range(SLOTS))
        super().configure(follow=follow, keep="64MiB, copy-rate: %d" % rate, every="300ms", slots=slots,
                          memory="2GiB")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def soft_limit(self):
        with open("/proc/%d/limits" % self.process.pid, encoding="ascii") as file:
            return next(int(line.split()[3]) for line in file if line.startswith("Max open files"))

    def check(self, client, limit):
        figures = client.figures()
        for name in FIGURES:
            if figures.get(name, 0):
                raise Failure("%s of %s: %d\n%s" % (name, self.name, figures[name],
                                                    self.output()[-2000:]))
        if self.descriptors() > limit:
            raise Failure("%s has %d descriptors" % (self.name, self.descriptors()))
        return figures

    def table_files(self):
        return sum(name.endswith(".table") for name in os.listdir(self.folder.data))


class Client:
    """One that stays."""

    def __init__(self, node):
        self.link = node.connect()

    def ask(self, request, lines):
        """So many lines; fewer: it was closed."""
        self.link.sendall(request)
        said = b""
        while said.count(b"\r\n") < lines:
            piece = self.link.recv(1 << 16)
            if not piece:
                break
            said += piece
        return said.split(b"\r\n")[:-1]

    def figures(self):
        self.link.sendall(b"stats\r\n")
        said = b""
        while not said.endswith(b"END\r\n"):
            piece = self.link.recv(1 << 16)
            if not piece:
                raise Failure("closed while asked for figures")
            said += piece
        rows = [row.decode().split(" ", 2) for row in said.split(b"\r\n")]
        return {row[1]: int(row[2]) for row in rows if len(row) == 3 and row[2].isdigit()}


class Work:
    """What goes on beside the copy."""

    def __init__(self, node):
        self.node, self.clients = node, []
        self.values, self.last, self.turn = {}, 0, 0

    def load(self, tables):
        """Into the directory, before the daemon starts."""
        self.last = tables * IDS_A_TABLE
        self.values.update((one, one) for one in range(1, self.last + 1))
        folder = self.node.folder
        program = os.path.join(os.environ["ROLLCALL_BUILD"], "rollcall")
        subprocess.run([program, "load", "feed", "-q", "--offline", folder.data, "--config", folder.config,
                        "--format", "csv", "--columns", "id,a", "-"], check=True,
                       input=b"".join(b"%d,%d\n" % one for one in self.values.items()),
                       stdout=subprocess.DEVNULL)
        owner = os.stat(folder.data)
        for name in os.listdir(folder.data):
            os.chown(os.path.join(folder.data, name), owner.st_uid, owner.st_gid)

    def come_in(self):
        """Takes all places, and gives some back."""
        self.control = Client(self.node)
        while True:
            client = Client(self.node)
            said = client.ask(b"version\r\n", 1)
            if said == [REFUSED.rstrip()]:
                break
            if not said[0].startswith(b"VERSION"):
                raise Failure("a client hears %r" % said)
            self.clients.append(client)
        self.taken = len(self.clients)
        for client in self.clients[:FREE]:
            client.link.close()
        del self.clients[:FREE]
        wait_for("free places", lambda: self.control.figures()["curr_connections"] <= len(self.clients) + 1)

    def read(self, client, ids):
        said = client.ask(b"get" + b"".join(b" feed:%d.a" % one for one in ids) + b"\r\n",
                          2 * len(ids) + 1)
        if said[1:-1:2] != [b"%d" % self.values[one] for one in ids]:
            raise Failure("ids from %d are not as they were written: %r" % (ids[0], said[:4]))

    def add(self, client, ids):
        said = client.ask(b"".join(b"incr feed:%d.a 1\r\n" % one for one in ids), len(ids))
        for one, answer in zip(ids, said, strict=True):
            self.values[one] = self.values.get(one, 0) + 1
            if answer != b"%d" % self.values[one]:
                raise Failure("incr feed:%d.a: %r" % (one, answer))

    def go_on(self):
        """A turn of each client's."""
        client = self.clients[self.turn % len(self.clients)]
        cold = [(self.turn * BLOCK + i) * STRIDE % self.last + 1 for i in range(BLOCK)]
        self.turn += 1
        self.read(client, cold)
        self.add(client, [self.turn % CHANGED + 1])
        self.add(client, range(self.last + 1, self.last + 1 + BLOCK))
        self.last += BLOCK


def run(options, one, two):
    os.environ["ROLLCALLD"] = limited_program(one.folder, options.descriptors // 2,
                                              options.descriptors)
    one.configure(rate=options.tables * TABLE_BYTES // COPY_S)
    work = Work(one)
    work.load(options.tables)
    one.start()
    if one.soft_limit() != options.descriptors:
        raise Failure("the limit is %d" % one.soft_limit())
    work.come_in()
    before = one.check(work.control, options.descriptors)
    two.configure(follow=one)
    two.start()
    most = 0

    def streams():
        nonlocal most
        work.go_on()
        most = max(most, one.check(work.control, options.descriptors)["table_files"])
        try:
            return two.stats().get("state") == "follower-streaming"
        except (OSError, Failure):
            return False  # it begins anew, with the copy
    wait_for(lambda: "no copy comes\n%s\n%s" % (one.output()[-2000:], two.output()[-2000:]), streams)
    after = one.check(work.control, options.descriptors)
    if one.stats()["copies"] != "1" or "stayed for a copy" not in one.output():
        raise Failure("%s copies\n%s" % (one.stats()["copies"], one.output()[-2000:]))
    refused = after["rejected_connections"] - before["rejected_connections"]
    if refused or after["dumps"] == before["dumps"]:
        raise Failure("%d clients refused, %d tables dumped meanwhile" % (
            refused, after["dumps"] - before["dumps"]))
    pair.level(one, two)
    client, ids = Client(two), sorted(work.values)
    ids = ids[:CHANGED] + ids[CHANGED::READ_OF]
    for begin in range(0, len(ids), BLOCK):
        work.read(client, ids[begin:begin + BLOCK])
    two.check(client, options.descriptors)
    wait_for("files that no manifest names to go",
             lambda: one.table_files() == work.control.figures()["table_files"])
    print("%d ids, %d clients, %d turns beside the copy, at most %d table files, then %d" % (
        work.last, work.taken, work.turn, most, one.table_files()))
    two.stop()
    one.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=180)
    parser.add_argument("--descriptors", type=int, default=160)
    parser.add_argument("--directory")
    options = parser.parse_args()
    nodes = [Limited(options.directory, "one"), Limited(options.directory, "two")]
    try:
        run(options, *nodes)
        return 0
    except Failure as failure:
        print("FAILED: %s" % failure)
        return 1
    finally:
        for node in nodes:
            if node.process is not None and node.process.poll() is None:
                node.kill()
            node.folder.remove()


if __name__ == "__main__":
    sys.exit(main())
