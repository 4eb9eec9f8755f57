#!/usr/bin/env python3
"""`rollcall load --offline`: a daemon that starts with a filled directory has exactly the rows of the file.

    tests/transfer/offline.py

$ROLLCALLD and $ROLLCALL name the programs. All kinds of spaces, with tables that are dumped; what the
directory is then to backup, verify and to further changes; what is refused, and that a fill that was
killed at random is never served, and made again.
"""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import load  # noqa: E402
from load import DONE, FAILED, REFUSED, SECONDS_MAX, TOO_MANY, USAGE, Case, Failure  # noqa: E402

ROWS = 60000  # of which a table holds about 4,000
ENDED = "an offline load into it has not ended"


class Offline(Case):
    def fill(self, space, *arguments, status=DONE, stdin=None):
        return self.call("load", space, "--offline", self.folder.data, "--config", self.folder.config,
                         "-q", *arguments, status=status, stdin=stdin)

    def command(self, verb, *arguments):
        if "--offline" in arguments or verb not in ("load", "export"):
            return [super().command(verb)[0], verb, *arguments]
        return super().command(verb, *arguments)

    def stop(self):
        problem = self.daemon.stop(False)
        if problem:
            raise Failure(problem)

    def empty(self):
        shutil.rmtree(self.folder.data)
        self.folder.own(self.folder.data)

    def refused_by_daemon(self):
        self.daemon = load.Served(self.folder, self.server)
        if self.daemon.process.wait(SECONDS_MAX) == 0 or ENDED not in self.daemon.output():
            raise Failure("a directory that was not filled was served: " + self.daemon.output())

    def records(self, first=0, rows=ROWS):
        """Ids in two streams, far apart, with gaps; some values are beyond their slot."""
        for i in range(first, rows):
            number = i * 3 + (10 ** 12 if i > rows * 2 // 3 else 0)
            yield number, (i % 7 or "", i % 1000, i % 100 and i or i << 30, "" if i % 3 else i)

    def file(self, name, rows=ROWS):
        return self.write(name, "id\trepost\tcomment\tlike\tread\n" + "".join(
            "%d\t%s\n" % (number, "\t".join(map(str, values)))
            for number, values in self.records(rows=rows)))

    # ---- the cases ----

    def filled_and_served(self):
        path = self.file("feed.tsv")
        with open(path, encoding="ascii") as file:
            expected = file.read()
        self.fill("feed", path)
        if not any(name.startswith("feed-") for name, _ in self.folder.names()):
            raise Failure("no table file was made")
        self.call("verify", self.folder.data)
        self.start()
        self.same(self.call("export", "feed", "-f", "tsv", "-q"), expected)
        client = self.daemon.connect()
        client.ask(b"incr feed:3.like 5\r\n", (b"6\r\n",))
        client.ask(b"set feed:1.read 0 0 1\r\n9\r\n", (b"STORED\r\n",))
        client.ask(b"set feed:1000000999999.read 0 0 1\r\n8\r\n", (b"STORED\r\n",))
        client.socket.close()
        self.stop()
        self.call("verify", self.folder.data)
        self.start()
        self.expect({"feed:3": "1,1,6,", "feed:1": ",,,9", "feed:6": "2,2,2,",
                     "feed:1000000999999": ",,,8"})
        copy = self.path("backup")
        self.call("backup", "--data", self.folder.data, "-q", copy)
        self.call("verify", copy)
        self.stop()
        self.fill("feed", path, status=USAGE)  # it is not empty
        self.empty()

    def other_kinds(self):
        """Members, ids of any kind, and columns that are some of the slots; the same as online."""
        pairs = "".join("%d,u%d\n" % (i // 5, i * 7919 % 10007) for i in range(20000))
        users = "".join("%d,%d\n" % (i * 7, i) for i in range(100000))
        some = "".join("%d,%d,%s\n" % (i, i % 9, "" if i % 2 else i) for i in range(9000))
        for space, columns, rows in (("liked", "id,member", pairs), ("user", "id,fans", users),
                                     ("feed", "id,like,repost", some)):
            self.fill(space, "-f", "csv", "-c", columns, stdin=rows)
            self.start()
            if space == "liked":
                keys = ["liked:" + row.replace(",", ":") for row in rows.split()]
                self.same(len(self.get(keys)), len(set(keys)))
                self.same(self.get(["liked:0:u1", "liked:4000:u2"]), {})
                self.stop()
                self.empty()
                continue
            filled = self.call("export", space, "-q")
            self.stop()
            self.empty()
            self.start()
            self.call("load", space, "-f", "csv", "-c", columns, "-q", stdin=rows)
            self.same(filled, self.call("export", space, "-q"))
            self.stop()
            self.empty()

    def modes_and_rejects(self):
        self.fill("feed", self.write("whole.csv", "id,repost,comment,like,read\n1,2,3,4,5\n"),
                  self.write("part.csv", "id,like,repost\n2,7,\n3,8,9\n"))
        self.start()
        self.same(self.call("export", "feed", "-f", "tsv", "-q"),
                  "id\trepost\tcomment\tlike\tread\n1\t2\t3\t4\t5\n2\t\t\t7\t\n3\t9\t\t8\t\n")
        self.stop()
        self.empty()
        reject = self.path("offline.rejects")
        rows = "1,5\n1,6\nx,1\n2,\n3,7\n3,8\n9223372036854775808,1\n4,99999999999999999999\n"
        said = self.fill("feed", "-f", "csv", "-c", "id,like", "--max-errors", "4", "--reject", reject,
                         stdin=rows, status=REFUSED)
        if "line 3: not a number: id: x,1" not in said:
            raise Failure("it does not say what is wrong: " + said)
        with open(reject, encoding="ascii") as file:
            self.same(file.read(), "x,1\n2,\n9223372036854775808,1\n4,99999999999999999999\n")
        self.start()
        self.same(self.call("export", "feed", "-q"), '{"id":1,"like":6}\n{"id":3,"like":8}\n')
        self.stop()
        self.empty()
        self.fill("feed", "-f", "csv", "-c", "id,like", "--max-errors", "3", stdin=rows, status=TOO_MANY)
        self.refused_by_daemon()
        self.fill("feed", "-f", "csv", "-c", "id,like", "-m", "add", stdin="1,5\n1,6\n3,7\n")
        self.start()
        self.same(self.call("export", "feed", "-q"), '{"id":1,"like":5}\n{"id":3,"like":7}\n')
        self.stop()
        self.empty()

    def refusals(self):
        options = ("-f", "csv", "-c", "id,like")
        said = self.fill("feed", *options, stdin="4,1\n5,1\n3,1\n6,1\n", status=FAILED)
        if "line 3: id 3 comes after id 5" not in said:
            raise Failure("it does not say which line is out of order: " + said)
        self.refused_by_daemon()
        for verb in (("verify",), ("repair",), ("backup", self.path("none"), "--data")):
            done = subprocess.run(self.command(*verb, self.folder.data), capture_output=True,
                                  text=True, timeout=SECONDS_MAX, check=False)
            if done.returncode == DONE or ENDED not in done.stdout + done.stderr:
                raise Failure("%s took it: %s" % (verb[0], done.stdout + done.stderr))
        self.empty()
        for arguments in (("nope",), ("plain",), ("feed", "-m", "max"),
                          ("feed", "--checkpoint", self.path("none"))):
            self.fill(*arguments, *options, stdin="1,1\n", status=USAGE)
        self.call("load", "feed", "--offline", self.folder.data, *options, stdin="1,1\n", status=USAGE)
        self.empty()
        self.recycled(options)
        with open(os.path.join(self.folder.data, "notes"), "w", encoding="ascii") as file:
            file.write("mine")
        said = self.fill("feed", *options, stdin="1,1\n", status=USAGE)
        if "it is not empty, as it has notes" not in said:
            raise Failure("it does not say what is in the way: " + said)
        self.start()
        self.same(self.fill("feed", *options, stdin="1,1\n", status=USAGE).count("in use"), 1)
        self.stop()
        self.empty()

    def recycled(self, options):
        """A fill of more rows than the space holds loses none in silence."""
        rows = "".join("%d,1\n" % i for i in range(ROWS))
        with open(self.folder.config, encoding="ascii") as file:
            config = file.read()
        for oldest, status, words in (("refuse", TOO_MANY, "no table is free"),
                                      ("recycle", FAILED, "recycles its oldest tables")):
            with open(self.folder.config, "w", encoding="ascii") as file:
                file.write(config.replace("oldest: dump", "oldest: " + oldest))
            said = self.fill("feed", *options, stdin=rows, status=status)
            if words not in said:
                raise Failure("rows were lost with: " + said)
            self.refused_by_daemon()
            self.empty()
        self.last_row(options)
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(config)

    def last_row(self, options):
        """Of the rows that are too many by one the last has a table opened: the oldest goes."""
        done, failed = 1, ROWS
        while failed - done > 1:
            rows = (done + failed) // 2
            load_it = self.command("load", "feed", "--offline", self.folder.data, "--config",
                                   self.folder.config, "-q", *options)
            status = subprocess.run(load_it, input="".join("%d,1\n" % i for i in range(rows)), text=True,
                                    capture_output=True, timeout=SECONDS_MAX, check=False).returncode
            if status == DONE:
                done = rows
                self.start()
                self.same(self.call("export", "feed", "-q").count("\n"), rows)
                self.stop()
            else:
                self.same(status, FAILED)
                failed = rows
            self.empty()

    def killed(self):
        rows = 150000
        path = self.file("killed.tsv", rows)
        command = self.command("load", "feed", "-q", "--offline", self.folder.data, "--config",
                               self.folder.config, path)
        kills = served = 0
        done = False
        for attempt in range(40):
            process = subprocess.Popen(command)
            try:
                done = process.wait(self.rng.uniform(0.05, 0.3 + attempt * 0.2)) == DONE
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
            if os.path.exists(os.path.join(self.folder.data, "FILLING")):
                self.refused_by_daemon()
                served += 1
            elif os.path.exists(os.path.join(self.folder.data, "MANIFEST")):
                done = True  # it was killed after its last step
                break
        if served == 0 or not done:
            raise Failure("%d kills, and it ended with %d" % (kills, process.returncode))
        self.start()
        with open(path, encoding="ascii") as file:
            self.same(self.call("export", "feed", "-f", "tsv", "-q"), file.read())
        self.stop()
        return "%d kills" % kills

    def begin(self):
        with open(self.folder.config, "a", encoding="ascii") as file:
            file.write("  plain: {kind: plain, memory: 1MiB}\n")

    def cases(self):
        return (self.filled_and_served, self.other_kinds, self.modes_and_rejects, self.refusals,
                self.killed)


if __name__ == "__main__":
    sys.exit(Offline().run())
