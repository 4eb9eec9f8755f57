#!/usr/bin/env python3
"""The verbs of rollcall that ask a running daemon, each as an operator would type it.

$ROLLCALLD names the daemon, $ROLLCALL the tool.
"""
import fcntl
import json
import os
import pty
import re
import select
import socket
import struct
import subprocess
import sys
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "admin"))
import admin_site as site  # noqa: E402

TOOL = os.environ["ROLLCALL"]
DAEMON = os.environ["ROLLCALLD"]
DONE, NEGATIVE, USAGE, NO_ANSWER, REFUSED = range(5)
CODES = {NEGATIVE: "failed", USAGE: "usage", NO_ANSWER: "no_answer", REFUSED: "refused"}
COLUMNS, ROWS = 80, 24
POLL_S = 0.05  # before a verb asks again: its start costs more than its answer
SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


def run(*words, status=DONE, env=None):
    """(stdout, stderr) of a verb that must end with the status."""
    ended = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=site.ANSWER_S,
                           env={**os.environ, "NO_COLOR": "1", **(env or {})}, check=False)
    assert ended.returncode == status, (words, ended)
    if status not in (DONE, NEGATIVE) and "--json" in words:  # the error is the answer, and one is on stderr
        said = json.loads(ended.stdout)
        assert said["schema_version"] == 1 and said["error"]["code"] == CODES[status], ended
        assert ended.stderr.endswith("rollcall: %s\n" % said["error"]["message"]), ended
    elif status not in (DONE, NEGATIVE):
        assert ended.stdout == "", ended
    return ended.stdout, ended.stderr


def told(*words, **more):
    return json.loads(run(*words, "--json", **more)[0])


class Both:
    """A daemon and its two addresses: of the memcached protocol, and of the status page."""

    def __init__(self, here):
        self.here = here
        self.direct = "%s:%d" % here.daemon.address
        self.page = "http://127.0.0.1:%d" % here.port


def test_status(both):
    for server in (both.direct, both.page):
        out, _ = run("status", "-s", server)
        assert out.startswith("127.0.0.1:"), out
        assert re.search(r"^feed +counter +40\.0k", out, re.M), out
        assert max(map(len, out[out.index("SPACE ") :].splitlines())) <= COLUMNS, out
        view = told("status", "-s", server)
        feed = next(space for space in view["spaces"] if space["name"] == "feed")
        assert view["schema_version"] == 1 and view["state"] == "serving"
        assert feed["held"] == 40000 and feed["kind"] == "counter", feed
        assert feed["slots"] == "repost:4 like:20" and feed["any_ids"] is False
        assert feed["table_list"][-1]["last_id"] == 40000
        assert view["disk"]["journal_head"] > 0
    # both ways say the same of what does not change
    spaces = [told("status", "-s", server)["spaces"] for server in (both.direct, both.page)]
    held = [{space["name"]: space["held_bytes"] for space in side} for side in spaces]
    assert held[0] == held[1] and held[0]["feed"] > 0 and held[0]["other"] > 0, held
    assert "status page alone tells" in run("status", "-s", both.direct)[0]
    assert "status page alone tells" not in run("status", "-s", both.page)[0]
    direct, page = told("tables", "-s", both.direct), told("tables", "-s", both.page)
    for ours, theirs in zip(direct["spaces"], page["spaces"]):
        for table, other in zip(ours["table_list"], theirs["table_list"]):
            for name in ("serial", "state", "first_id", "last_id", "records", "capacity"):
                assert table.get(name, 0) == other[name], (name, table, other)
    # what is wrong comes first
    both.here.say("set feed:1 0 0 1\r\nx")
    out, _ = run("status", "-s", both.page)
    until = time.monotonic() + site.ANSWER_S
    while "refused 1 operation" not in out:
        assert time.monotonic() < until, out
        time.sleep(POLL_S)
        out, _ = run("status", "-s", both.page)
    assert re.search(r"^Needs attention\n(  \d\. .*\n)*  \d\. feed refused 1 operation", out, re.M), out


def test_tables(both):
    for server in (both.direct, both.page):
        out, _ = run("tables", "-s", server, "feed")
        rows = [line.split() for line in out.splitlines()]
        assert rows[0][:2] == ["SPACE", "TABLE"] and {row[0] for row in rows[1:]} == {"feed"}
        assert [int(row[1]) for row in rows[1:]] == list(range(len(rows) - 1)), out
        assert rows[1][2] == "on_disk" and rows[-1][2] == "open", out
        assert int(rows[1][3]) == 1 and int(rows[-1][4]) == 40000, out
        assert "liked" in run("tables", "-s", server)[0]
        run("tables", "-s", server, "nosuch", status=USAGE)


def test_hot(both):
    for server in (both.direct, both.page):
        out, _ = run("hot", "-s", server)
        assert re.search(r"^id +\d+ % +feed:77$", out, re.M), out
        assert re.search(r"^member +\d+ % +liked:\*:bob$", out, re.M), out
        hot = told("hot", "-s", server)
        assert hot["schema_version"] == 1
        assert hot["ids"][0]["key"] == "feed:77" and hot["ids"][0]["share"] > 0.05


def test_get(both):
    at = ("-s", both.direct)
    out, _ = run("get", *at, "123", "feed:40000", "123:bob", "liked:123:eve")
    lines = out.splitlines()
    assert lines[0].startswith("feed:123  repost=-  like=1  (table 0, on_disk, ids 1 to "), out
    assert lines[1].startswith("full:123  not there"), out
    assert lines[2].startswith("feed:40000  repost=-  like=1  (table "), out
    assert "ids" in lines[2] and " to 40000)" in lines[2] and ", open, " in lines[2], out
    assert lines[3].startswith("liked:123:bob  there") and lines[4].startswith("liked:123:eve  not"), out
    keys = told("get", *at, "feed:123")["keys"]
    assert keys[0]["slots"] == {"repost": None, "like": 1} and keys[0]["table"]["serial"] == 0
    run("get", *at, "feed:999999999")
    run("get", *at, "--fail-missing", "feed:999999999", status=NEGATIVE)
    for words in (("nosuch:1",), ("x",), ("feed:1:u",), ("123:a b",), ("-1",), ()):
        run("get", *at, *words, status=USAGE)
    _, err = run("get", "-s", both.page, "1", status=USAGE)
    assert "has no keys" in err, err


def test_conf(both):
    here = both.here
    config = os.path.join(here.folder, "config.yaml")
    at = ("conf", "diff", "-s", both.direct)
    # the daemon of this test has flags of its own, which the file does not know
    flags = {one["key"] for one in told(*at, config, status=NEGATIVE)["differences"]}
    assert flags <= {"listen", "user"}, flags
    with open(config, encoding="utf-8") as file:
        text = file.read()
    other = here.write("other.yaml", text.replace("tables: 4", "tables: 6", 1).replace("  full:", "  fuller:")
                       .replace("admin: 127.0.0.1:0\n", ""))
    keys = {one["key"]: one for one in told(*at, other, status=NEGATIVE)["differences"]}
    assert keys["spaces.feed.tables"] == {"key": "spaces.feed.tables", "file": "6", "running": "4"}
    assert keys["spaces.fuller.kind"]["running"] is None and "space_full_kind" in keys, keys
    out, _ = run(*at, other, status=NEGATIVE)
    assert "spaces.feed.tables\n  file:    6\n  running: 4\n" in out, out
    assert keys["admin"] == {"key": "admin", "file": None, "running": "127.0.0.1:0"}, keys
    assert "admin\n  file:    (not set)\n  running: 127.0.0.1:0\n" in out and "NULL" not in out, out
    _, err = run(*at, here.write("bad.yaml", text + "nonsense: 1\n"), status=USAGE)
    assert "bad.yaml:" in err and "nonsense" in err, err
    run(*at, "/nonexistent", status=USAGE)
    run("conf", "dif", other, status=USAGE)
    run("conf", "diff", status=USAGE)


class Terminal:
    """A verb on a pseudo-terminal."""

    def __init__(self, *words, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(TOOL, [TOOL, *words], {**os.environ, "TERM": "xterm", **(env or {})})
        self.resize(COLUMNS, ROWS)
        self.bytes = b""

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_some(self):
        ready, _, _ = select.select([self.fd], [], [], site.ANSWER_S)
        assert ready, self.bytes[-2000:]
        try:
            self.bytes += os.read(self.fd, 65536)
        except OSError:  # it has ended
            return False
        return True

    def until(self, words):
        """Reads until they were seen in a screen that was drawn from now on."""
        start = len(self.bytes)
        while words not in self.bytes[start:]:
            assert self.read_some(), (words, self.bytes)

    def screens(self):
        """Lines of each whole screen that was drawn."""
        whole = self.bytes.split(b"\x1b[H")[1:-1]
        return [SEQUENCE.sub(b"", screen).decode().split("\r\n") for screen in whole]

    def press(self, key):
        os.write(self.fd, key)

    def end(self):
        while self.read_some():
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status


def test_top(both):
    for server, env in ((both.direct, {"NO_COLOR": "1"}), (both.page, {"NO_COLOR": ""})):
        top = Terminal("top", "-s", server, "--interval", "100ms", env=env)
        top.until(b"(full);")
        top.until(b"(full);")
        top.press(b"n")
        top.until(b"(name);")
        top.until(b"(name);")
        both.here.say(*("get feed:%d" % number for number in range(1, 1000)))
        top.press(b"m")
        top.until(b"(memory);")
        top.resize(60, 10)
        top.until(b"(memory);"[:1])
        top.press(b"q")
        assert top.end() == DONE
        by_name = [screen for screen in top.screens() if "(name);" in screen[-1]][-1]
        names = [line.split()[0] for line in by_name[by_name.index(next(
            line for line in by_name if line.startswith("SPACE"))) + 1 :][:4]]
        assert names == sorted(names) == ["feed", "full", "liked", "other"], by_name
        for screen in top.screens():
            assert len(screen) <= ROWS and max(map(len, screen)) <= COLUMNS, screen
        assert (b"\x1b[7m" in top.bytes) == (env["NO_COLOR"] == ""), env
        assert top.bytes.rstrip().endswith(b"\x1b[?25h\x1b[?1049l"), top.bytes[-40:]
    # a signal leaves the terminal as it was
    top = Terminal("top", "-s", both.direct)
    top.until(b"(full);")
    os.kill(top.pid, 15)
    assert top.end() == DONE and b"\x1b[?1049l" in top.bytes
    # without a terminal
    out, _ = run("top", "-s", both.direct, "--looks", "2", "--interval", "100ms")
    assert out.count("SPACE ") == 2 and "\x1b" not in out, out
    looks = [json.loads(line) for line in
             run("top", "-s", both.direct, "--looks", "3", "--interval", "100ms", "--json")[0].splitlines()]
    assert len(looks) == 3 and "reads_each_s" not in looks[0] and looks[2]["reads_each_s"] >= 0
    run("top", "-s", both.direct, status=USAGE)


def test_servers(both):
    _, err = run("status", "-s", "127.0.0.1:1", status=NO_ANSWER)
    assert "127.0.0.1:1" in err and "refused" in err, err
    run("status", "-s", "http://127.0.0.1:1", status=NO_ANSWER)
    run("status", "-s", "/nonexistent.sock", status=NO_ANSWER)
    run("status", "-s", "http://" + both.direct, status=NO_ANSWER)  # no HTTP there
    run("status", "-s", both.page[len("http://"):], status=NO_ANSWER)  # no memcached there
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        _, err = run("status", "-s", "127.0.0.1:%d" % silent.getsockname()[1], "--timeout", "0.2",
                     status=NO_ANSWER)
        assert "no answer within 0.2 s" in err, err
    with socket.socket() as other:  # a server of another kind
        other.bind(("127.0.0.1", 0))
        other.listen()
        with subprocess.Popen([TOOL, "status", "127.0.0.1:%d" % other.getsockname()[1]],
                              stderr=subprocess.PIPE, text=True) as asking:
            client, _ = other.accept()
            with client, client.makefile("rb") as lines:
                assert lines.readline() == b"stats\r\n"
                client.sendall(b"STAT pid 1\r\nEND\r\n")
                assert lines.readline() == b"stats hot\r\n"
                client.sendall(b"ERROR\r\n")
                _, err = asking.communicate(timeout=site.ANSWER_S)
            assert asking.returncode == REFUSED and "is it a rollcalld" in err, err
    _, err = run("stauts", status=USAGE)
    assert "did you mean status" in err, err
    _, err = run("status", "--jsno", status=USAGE)
    assert "did you mean --json" in err, err
    run("status", both.direct, "feed", status=USAGE)
    assert run("status", both.direct)[0].startswith(both.direct)
    # options before the verb, or some of them
    config = os.path.join(both.here.folder, "config.yaml")
    before = ("-s", both.direct, "--json", "--timeout", "3s")
    assert json.loads(run(*before, "status")[0])["schema_version"] == 1
    assert json.loads(run(*before[:3], "tables", *before[3:], "feed")[0])["spaces"][0]["name"] == "feed"
    assert "differences" in json.loads(run(*before, "conf", "diff", config, status=NEGATIVE)[0])
    assert run("--server=" + both.direct, "hot")[0].startswith("KIND")
    for verb in ("status", "top", "tables", "hot", "get", "conf", "plan"):
        asked = {"get": ("1",), "conf": ("diff", config)}.get(verb, ())
        at = ("-s", "127.0.0.1:1") if verb != "plan" else ("--from", "127.0.0.1:1")
        run(verb, *at, *asked, "--json", status=NO_ANSWER)
        run(verb, *at, *asked, "--json", "--nonsense", status=USAGE)
        run(verb, "--nonsense", "--json", status=USAGE)
    assert "usage: rollcall [options] VERB" in run(status=USAGE)[1]
    assert "unknown option --jsno" in run("--jsno", "status", status=USAGE)[1]
    for verb, wrong, meant in (("export", "--formt", "--format"), ("load", "--colums", "--columns"),
                               ("verify", "--quite", "--quiet"), ("bench", "--pipline", "--pipeline")):
        said = run(verb, wrong, "x", status=USAGE)[1]
        assert "unknown option %s; did you mean %s; see rollcall %s --help" % (wrong, meant, verb) in said, said
    assert "did you mean status" in run(*before, "stauts", status=USAGE)[1]
    run("status", "-s", status=USAGE)


def test_users():
    here = site.Site("auth-file: $FOLDER/users\nadmin-auth: $FOLDER/users\n" + site.CONFIG,
                     files=[("users", "ops:right:one\n"), ("wrong", "ops:left\n"), ("bad", "ops\n")])
    both = Both(here)
    users = os.path.join(here.folder, "users")
    for server in (both.direct, both.page):
        _, err = run("status", "-s", server, status=REFUSED)
        assert "--auth-file" in err, err
        run("status", "-s", server, "--json", status=REFUSED)
        run("status", "-s", server, "--auth-file", users)
        run("status", "-s", server, env={"ROLLCALL_AUTH_FILE": users})
        run("status", "-s", server, "--auth-file", os.path.join(here.folder, "wrong"), status=REFUSED)
    run("status", "-s", both.direct, "--auth-file", os.path.join(here.folder, "bad"), status=USAGE)
    run("status", "-s", both.direct, "--auth-file", "/nonexistent", status=USAGE)
    run("get", "-s", both.direct, "--auth-file", users, "feed:1")
    here.end()


def check_config(here, text):
    path = here.write("plan.yaml", text)
    checked = subprocess.run([DAEMON, "--config", path, "--check-config"], capture_output=True,
                             text=True, timeout=site.ANSWER_S, check=False)
    assert checked.returncode == 0, (text, checked)
    return checked.stdout


def test_plan(both):
    asked = ("--ids-per-day", "200M", "--days", "90", "--slots", "repost:14,like:18",
             "--pairs-per-day", "2G", "--pairs-days", "7")
    for more in ((), ("--memory", "64G"), ("--memory", "8G"), ("--data", ""), ("--recycle",),
                 ("--memory", "300G", "--disk", "100G"), ("--id-spacing", "4194304", "--deletes")):
        out, _ = run("plan", *asked, *more)
        checked = check_config(both.here, out)
        plan = told("plan", *asked, *more)
        together = float(re.search(r"together +([\d.]+) MiB", checked).group(1))
        # the daemon's own sum, but for the workers, one a processor
        assert abs(plan["memory_bytes"] / 2**20 - together) <= 64, (plan["memory_bytes"], checked)
        assert plan["configuration"] in out
        held = plan["dates"][-1]["spaces"]
        if not more or more[0] == "--memory":
            assert held["feed"]["held"] >= 90 * 200e6 and held["liked"]["held"] >= 7 * 2e9, held
        if more[:1] == ("--memory",):
            assert plan["memory_limit_bytes"] == int(more[1][:-1]) << 30
        if "--disk" in more:
            disk = next(one for one in plan["first"] if one["what"].startswith("the disk: "))
            assert 0 < disk["day"] < 90, plan["first"]
    for wrong in (("--ids-per-day", "1M"), (), ("--ids-per-day", "many", "--slots", "a:4"),
                  ("--ids-per-day", "1M", "--slots", "a:1"), ("--ids-per-day", "1M", "--slots", "a"),
                  ("--ids-per-day", "1M", "--slots", "a:4", "--memory", "1MiB"),
                  ("--ids-per-day", "1M", "--slots", "a:4,a:5"), ("--pairs-per-day", "-5")):
        _, err = run("plan", *wrong, status=USAGE)
        assert err.startswith("rollcall: ") and len(err) > 20, err
    # as a running daemon has it
    both.here.incr("full", range(1, 9), "read")
    until = time.monotonic() + site.ANSWER_S
    while told("status", "-s", both.direct)["spaces"][0]["added_each_s"] is None:
        assert time.monotonic() < until
        time.sleep(POLL_S)
    out, err = run("plan", "--from", both.direct, "--days", "10")
    assert "rollcall: full is not in the plan" in err and "feed is not" not in err and "other is" not in err, err
    check_config(both.here, out)
    assert "slots: {repost: 4, like: 20}" in out, out


def test_nodes(both):
    """A pair: each says whom it follows, both ways alike."""
    here = site.Site(site.CONFIG + "replication: {name: one}\n", data=True)
    there = site.follower_of(here)
    until = time.monotonic() + site.ANSWER_S
    while there.metrics()['rollcall_replication_state{state="streaming"}'] == 0:
        assert time.monotonic() < until, there.daemon.output()
    for server in Both(here).direct, Both(here).page:
        assert re.fullmatch(r"leads, epoch \d+; 1 follower", run("status", "-s", server)[0].splitlines()[1])
    for server in Both(there).direct, Both(there).page:
        out, _ = run("status", "-s", server)
        assert re.fullmatch(r"follows %s: streaming, .* behind; 0 followers" % Both(here).direct, out.splitlines()[1]), out
        nodes = told("status", "-s", server)["replication"]
        assert (nodes["role"], nodes["state"], nodes["trouble"], nodes["readable"]) == ("follower", "streaming", "", True)
    assert not run("status", "-s", both.direct)[0].splitlines()[1]
    led = site.led_by_word()
    for ms, waits, words in ((0, "", "; fenced: no changes; waits for unnamed, not in sync"),
                             (500000, "-", "; its agent's word: 4.. s"),
                             (500000, "two,four", "; its agent's word: 4.. s; waits for two,four, not in sync")):
        if ms:
            led.agent_says(ms, waits)
        for server in Both(led).direct, Both(led).page:
            until = time.monotonic() + site.ANSWER_S
            while not re.fullmatch("leads, epoch 5; 0 followers" + words, run("status", "-s", server)[0].splitlines()[1]):
                assert time.monotonic() < until, (words, run("status", "-s", server))
                time.sleep(POLL_S)
            assert told("status", "-s", server)["replication"].get("waits_for") == (waits or "unnamed").replace("-", "none")
    led.end()
    there.end()
    here.end()


def test_large_ids():
    """With --json-safe-ids no reader of JSON rounds an id."""
    here = site.Site()
    both = Both(here)
    large = 2**53 + 1
    here.say("incr feed:%d.like 3" % large)
    for safe, wanted in ((), large), (("--json-safe-ids",), str(large)):
        key = told("get", "-s", both.direct, *safe, "feed:%d" % large)["keys"][0]
        assert key["id"] == key["table"]["last_id"] == wanted and key["slots"]["like"] == 3, key
        for server in both.direct, both.page:
            spaces = {one["name"]: one for one in told("tables", "-s", server, *safe)["spaces"]}
            assert spaces["feed"]["table_list"][-1]["last_id"] == wanted, spaces
            told("hot", "-s", server, *safe)
        out = run("export", "-s", both.direct, *safe, "feed")[0]
        assert json.loads(out) == {"id": wanted, "like": 3}, out
    # its lines are read again, by load and by --resume
    path = here.write("safe.ndjson", out)
    said = run("load", "-s", both.direct, "--progress=json", "--mode", "max", "feed", path)[1]
    first, *_, last = [json.loads(line) for line in said.splitlines()]
    assert (first["event"], first["rows"]) == ("progress", 1) and first["each_s"] >= 0, said
    assert last["event"] == "end" and last["stored"] + last["kept"] == 1 and last["refused"] == 0, said
    run("load", "-s", both.direct, "--progress=xml", "feed", path, status=USAGE)
    here.say("incr feed:%d.like 1" % (large + 1))
    run("export", "-s", both.direct, "--json-safe-ids", "--resume", "-o", path, "feed")
    with open(path, encoding="utf-8") as file:
        assert [json.loads(line)["id"] for line in file] == [str(large), str(large + 1)]
    here.end()


def test_completion():
    for shell in ("bash", "zsh", "fish"):
        out, _ = run("completion", shell)
        for verb in ("status", "top", "plan", "completion", "verify"):
            assert verb in out, (shell, verb)
    run("completion", "tcsh", status=USAGE)
    # bash does what it says
    script = ('source <("$0" completion bash); rollcall() { "%s" "$@"; }; COMP_WORDS=(rollcall %s); '
              'COMP_CWORD=%d; _rollcall; echo "${COMPREPLY[@]}"')
    for words, at, wanted in (("sta", 1, "status"), ("plan --ids", 2, "--ids-per-day"),
                              ("-s h:1 --json sta", 4, "status"), ("--json conf d", 3, "diff"),
                              ("completion f", 2, "fish"), ("bench --pipe", 2, "--pipeline")):
        ended = subprocess.run(["bash", "-c", script % (TOOL, words, at), TOOL], capture_output=True,
                               text=True, timeout=site.ANSWER_S, check=True)
        assert ended.stdout.split() == [wanted], (words, ended)


def test_help():
    out, _ = run("help")
    verbs = re.findall(r"^  ([a-z]+) +\S", out.split("usage:")[1], re.M)
    assert "status" in verbs and "bench" in verbs and out.startswith("  rollcall status"), out
    for verb in set(verbs) - {"help"}:
        out, _ = run(verb, "-h")
        assert out.startswith("  rollcall %s" % verb) or verb == "completion", out
        assert "usage: rollcall %s" % verb in out
        assert run("help", verb)[0] == out
    assert run("version") == run("-V") == run("--version")


def test_no_verb():
    """What is wrong before the verb, or in its place, is said as that."""
    for words, wanted in (("-s", "-s needs a value, and a verb after it"),
                          ("--json --timeout", "--timeout needs a value, and a verb after it"),
                          ("--nonsense", "no verb after --nonsense; see rollcall help"),
                          ("-s status", "no verb after status; see rollcall help"),
                          ("--json", "no verb after --json; see rollcall help"),
                          ("--serv X status", '"X" is no verb; as the value of --serv it comes after the verb: '
                                              "rollcall VERB --serv X"),
                          ("--json help", "help takes no option, --json; usage: rollcall help [VERB]"),
                          ("--json statu", 'unknown verb "statu"; did you mean status; see rollcall help'),
                          ("--quiet verfy", 'unknown verb "verfy"; did you mean verify; see rollcall help'),
                          ("--server X statu", 'unknown verb "statu"; did you mean status; see rollcall help')):
        assert run(*words.split(), status=USAGE)[1] == "rollcall: %s\n" % wanted, words
    assert run(status=USAGE)[1].startswith("  rollcall status\n")


def main():
    test_help()
    test_no_verb()
    test_completion()
    test_users()
    test_large_ids()
    here = site.Site(data=True)
    both = Both(here)
    for first in range(0, 40000, 1000):
        here.say(*("incr feed:%d.like 1" % number for number in range(first + 1, first + 1001)))
        here.say(*("get feed:77" for _ in range(300)))
        here.say(*("add liked:%d:bob 0 0 1\r\n1" % number for number in range(first + 1, first + 301)))
    until = time.monotonic() + site.ANSWER_S
    while here.metrics()['rollcall_tables{space="feed",state="on_disk"}'] == 0:
        assert time.monotonic() < until, here.daemon.output()
    for test in (test_servers, test_tables, test_hot, test_get, test_conf, test_top, test_plan, test_nodes, test_status):
        test(both)
    here.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
