#!/usr/bin/env python3
"""The table of exit statuses in tools/README.md, against both programs.

Each cell of the table names causes. For each of them the test has commands that bring it about, and what they exit
with is compared with the table's first column. So a cause that the table names and nothing here brings about fails, and
so does one that is brought about here and that the table does not name. Each verb meets every cause it can meet,
and its help names each status it was seen to end with. $ROLLCALLD names the daemon, $ROLLCALL the tool.
"""
import concurrent.futures
import contextlib
import http.server
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "admin"))
import admin_site as site  # noqa: E402

TOOL = os.environ["ROLLCALL"]
DAEMON = os.environ["ROLLCALLD"]
TABLE = os.path.join(TOP, "tools", "README.md")
NONE = "/nonexistent"
PID_MAX = 4194304  # of Linux: no process has it
AT_ONCE = 4
LINES, COLUMNS = 24, 80  # a screen
# What a verb is asked, where it asks a daemon: its arguments after the address
ASKED = {"status": (), "top": ("--looks", "1"), "tables": (), "hot": (), "get": ("feed:1",),
         "conf": ("diff", "$config"),
         "plan": ("--ids-per-day", "1M", "--slots", "like:18"), "bench": ("--requests", "10"), "export": ("feed",),
         "load": ("feed", "$rows"), "backup": ("$new",), "promote": (), "follow": ("127.0.0.1:2",),
         "agent": ("status",)}
UNBOUNDED = ("bench", "backup")  # which have no --timeout
PATIENCE = ("--timeout", "0.2")


def table():
    """{program: {cause: status}} of the document."""
    with open(TABLE, encoding="utf-8") as file:
        lines = file.read().splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("| status |"))
    heads = [cell.strip(" `") for cell in lines[begin].strip("|").split("|")]
    causes = {program: {} for program in heads[1:]}
    for line in lines[begin + 2:]:
        if not line.startswith("|"):
            break
        status, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        for program, cell in zip(heads[1:], cells):
            for cause in re.sub(r" \(.*?\)|\. .*", "", cell).split("; "):
                if cause:
                    assert cause not in causes[program], cause
                    causes[program][cause] = int(status)
    return causes


def asking(verb, server):
    """The command by which a verb asks a daemon."""
    flag = {"plan": ("--from", server), "bench": (server,)}.get(verb, ("-s", server))
    return (verb, *flag, *ASKED[verb])


class Etcd(http.server.BaseHTTPRequestHandler):
    """One that wants a login."""

    def do_POST(self):
        body = b'{"error": "etcdserver: user name is empty", "code": 3, "message": "etcdserver: user name is empty"}'
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Scene:
    """Daemons of several minds, a backup, sound and damaged, and files."""

    def __init__(self):
        self.good = site.Site("list-keys: yes\n" + site.CONFIG, data=True)
        self.folder = self.good.folder
        self.good.incr("feed", range(1, 3000))
        self.files = {"$new": os.path.join(self.folder, "new"), "$config": self.good.write("file.yaml", site.CONFIG),
                      "$rows": self.good.write("rows.csv", "id,like\n1,2\n"),
                      "$typo": self.good.write("typo.csv", "id,liek\n1,2\n"),
                      "$bad": self.good.write("bad.csv", "id,like\n1,2\nnone,2\n"),
                      "$mistake": self.good.write("mistake.yaml", "nonsense: 1\n"),
                      "$sound": os.path.join(self.folder, "sound"),
                      "$damaged": os.path.join(self.folder, "damaged")}
        self.shy = site.Site("list-keys: no\nauth-file: $FOLDER/users\n" + site.CONFIG,
                             files=[("users", "ops:right\n"), ("wrong", "ops:left\n")])
        for name in ("users", "wrong"):
            self.files["$" + name] = os.path.join(self.shy.folder, name)
        self.at = {"$at": "%s:%d" % self.good.daemon.address, "$shy": "%s:%d" % self.shy.daemon.address}
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            self.at["$nobody"] = "127.0.0.1:%d" % closed.getsockname()[1]
        self.silent = socket.socket()
        self.silent.bind(("127.0.0.1", 0))
        self.silent.listen(1024)
        self.at["$silent"] = "127.0.0.1:%d" % self.silent.getsockname()[1]
        self.etcd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Etcd)
        threading.Thread(target=self.etcd.serve_forever, daemon=True).start()
        self.at["$etcd"] = "http://127.0.0.1:%d" % self.etcd.server_port
        self.run(TOOL, "backup", "-s", "$at", "$sound")
        shutil.copytree(self.files["$sound"], self.files["$damaged"])
        for name in os.listdir(self.files["$damaged"]):
            self.damage(os.path.join(self.files["$damaged"], name))

    @staticmethod
    def damage(path):
        with open(path, "r+b") as file:
            content = bytearray(file.read())
            for at in range(40, min(len(content), 8192)):
                content[at] ^= 0x55
            file.seek(0)
            file.write(content)

    def words(self, command):
        return [self.files.get(word) or self.at.get(word) or word for word in command]

    def run(self, *command):
        environ = dict(os.environ)
        if "repair" in command:  # as root it becomes another user: the leak checker may not look at it
            environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))
        done = subprocess.run(self.words(command), capture_output=True, text=True, timeout=site.ANSWER_S,
                              stdin=subprocess.DEVNULL, check=False, env=environ)
        return done.returncode, done.stdout + done.stderr

    def end(self):
        self.etcd.shutdown()
        self.silent.close()
        self.shy.end()
        self.good.end()


def of_each(server, verbs=ASKED):
    return [asking(verb, server) for verb in verbs]


def wait_bounded():
    """Verbs whose own patience is long are given less where they take it."""
    return [(*asking(verb, "$silent"), *(() if verb in UNBOUNDED else PATIENCE)) for verb in ASKED]


def causes_of_tool(verbs):
    """{cause: commands}; new DIRs are of each its own, and those that one has for itself while it works."""
    return {
        "done": [*((verb, "--help") for verb in verbs), ("--help",), ("-V",), ("help", "load"),
                 *of_each("$at", ("status", "top", "tables", "hot", "get", "plan", "bench", "export", "load")),
                 ("conf", "diff", "-s", "$at", "$running"), ("completion", "bash"), ("backup", "-s", "$at", "$new-1"),
                 ("restore", "$sound", "$new-2"), ("load", "-s", "$at", "liked", "-f", "csv", "-c", "id,member", "-")],
        "sound": [("verify", "$sound"), ("repair", "$sound-2"), ("inspect", "$sound/MANIFEST")],
        "damage": [("verify", "$damaged"), ("repair", "$damaged-2"), ("inspect", "$damaged/MANIFEST"),
                   ("restore", "$damaged-but", "$new-3"), ("backup", "--data", "$damaged-3", "$new-4")],
        "a wrong or failed reply": [("bench", "$shy", "--requests", "10")],
        "a negative answer": [("get", "-s", "$at", "--fail-missing", "feed:999999"),
                              ("conf", "diff", "-s", "$at", "$mine"), ("plan", "--from", "$plain")],
        "a mistake in the arguments": [
            *((verb, "--nonsense") for verb in verbs), (), ("nonsense",), ("get",), ("verify",), ("inspect",),
            ("load",), ("load", "feed", "-"), ("restore", "$sound"), ("export",), ("export", "--to", "x", "feed"),
            ("conf", "dif"), ("completion", "tcsh"), ("plan",), ("follow",), ("agent", "nonsense"), ("backup",),
            ("promote", "now"), ("agent", "-s", "$at", "status"), ("backup", "-s", "$plain", "$new-5"),
            ("backup", "-s", "$at", "$sound"), ("restore", "$sound", "$sound"),
            ("repair", "--drop-from", "x", "$sound"), ("status", "--timeout", "0"), ("export", "--timeout", "x", "feed"),
            ("load", "--timeout", "0", "feed", "-"),
            ("load", "--offline", "$new-6", "feed", "$rows")],
        "no such file, directory or process, or none of ours": [
            ("bench", "$at", "--pid", str(PID_MAX)),
            *((*asking(verb, "$at"), "--auth-file", NONE) for verb in ASKED if verb not in ("bench",)),
            ("conf", "diff", "-s", "$at", NONE), ("verify", NONE), ("repair", NONE), ("inspect", NONE),
            ("inspect", "$rows"), ("verify", "$empty"), ("load", "-s", "$at", "-f", "csv", "feed", NONE),
            ("load", "-s", "$at", "feed", "$rows", NONE + ".csv"), ("restore", NONE, "$new-7"),
            ("load", "--offline", "$new-8", "--config", NONE, "feed", "$rows"),
            ("load", "--offline", "$new-9", "--config", "$config", "feed", NONE + ".csv"),
            ("backup", "--data", NONE, "$new-10"), ("export", "-s", "$at", "-o", NONE + "/x", "feed")],
        "no such space or column": [
            ("get", "-s", "$at", "nosuch:1"), ("tables", "-s", "$at", "nosuch"), ("export", "-s", "$at", "nosuch"),
            ("export", "-s", "$at", "liked"), ("load", "-s", "$at", "nosuch", "$rows"),
            ("load", "-s", "$at", "other", "$rows"), ("load", "-s", "$at", "feed", "$typo"),
            ("load", "-s", "$at", "--columns", "id,liek", "feed", "$rows"),
            ("load", "--offline", "$new-11", "--config", "$config", "nosuch", "$rows"),
            ("load", "--offline", "$new-12", "--config", "$config", "feed", "$typo")],
        "no connection": [(*command, *(PATIENCE if command[0] in ("load", "export") else ()))
                          for command in of_each("$nobody")] +
                         [("agent", "--group", "g", "--etcd", "http://$nobody", "status")],
        "no answer in time": wait_bounded(),
        "the daemon wants a login": of_each("$shy", [verb for verb in ASKED if verb != "bench"]) +
                                    [("get", "-s", "$shy", "--auth-file", "$wrong", "feed:1")],
        "the daemon refuses": [("promote", "-s", "$at"), ("follow", "-s", "$at", "127.0.0.1:2"),
                               ("export", "-s", "$shy", "--auth-file", "$users", "feed")],
        "etcd refuses": [("agent", "--group", "g", "--etcd", "$etcd", "status")],
        "`load`: all lines were read, some of them refused, no more than `--max-errors`": [
            ("load", "-s", "$at", "--max-errors", "1", "feed", "$bad")],
        "`load`: given up, as more were refused": [("load", "-s", "$at", "feed", "$bad")],
    }


def test_tool(scene, wanted):
    verbs = sorted(set(re.findall(r"^  ([a-z]+) {2,}\S", scene.run(TOOL, "help")[1], re.M))) + ["help"]
    causes = causes_of_tool(verbs)
    assert set(causes) == set(wanted), set(causes) ^ set(wanted)
    helps = {verb: scene.run(TOOL, verb, "--help")[1] for verb in verbs}
    asks = {verb for verb in verbs if re.search(r"--server\b|--from ADDRESS|--from +a running", helps[verb])}
    assert asks | {"bench"} == set(ASKED), asks ^ set(ASKED)
    cases = [(cause, command) for cause in causes for command in causes[cause]]
    cases.sort(key=lambda case: case[0] != "no answer in time")  # the slow ones begin
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda case: scene.run(TOOL, *case[1]), cases))
    wrong = ["%s: exit status %d, not %d:\n%s" % (" ".join(command), status, wanted[cause], said)
             for (cause, command), (status, said) in zip(cases, ended) if status != wanted[cause]]
    assert not wrong, "\n".join(wrong)
    for cause, command in cases:
        told = re.search(r"Exit status.*", helps.get(command[0] if command else "", ""), re.S)
        if told:
            assert re.search(r"\b%d\b" % wanted[cause], told.group(0)), (command, wanted[cause], told.group(0))
    assert [verb for verb in verbs if "Exit status" not in helps[verb]] == ["help"], helps


def daemon_ends(scene, spoils):
    """How a daemon with data ends by SIGTERM; spoils: its directory is gone by then."""
    here = site.Site(site.CONFIG, data=True)
    here.incr("feed", range(1, 10))
    if spoils:
        data = os.path.join(here.folder, "data")
        while os.path.exists(data):  # it may be making files
            shutil.rmtree(data, ignore_errors=True)
    here.daemon.process.send_signal(signal.SIGTERM)
    status = here.daemon.process.wait(site.ANSWER_S)
    here.abandon()
    return status, here.daemon.output()


def test_daemon(scene, wanted):
    user = ("-u", site.protocol.USER) if os.geteuid() == 0 else ()
    causes = {
        "ended as asked": [lambda: daemon_ends(scene, False)],
        "could not make its last checkpoint": [lambda: daemon_ends(scene, True)],
        "printed what was asked": [("-V",), ("-h",), ("--help",), ("--config", "$config", "--check-config"),
                                   ("--config", "$config", "--print-config")],
        "could not start": [("--config", "$config", "-l", "$at", *user)],
        "a mistake in the flags": [("--nonsense",), ("-p", "x"), ("--set", "nonsense=1")],
        "a mistake in the configuration": [("--config", NONE), ("--config", "$mistake"),
                                           ("--config", "$mistake", "--check-config")],
    }
    assert set(causes) == set(wanted), set(causes) ^ set(wanted)
    for cause, commands in causes.items():
        for command in commands:
            status, said = command() if callable(command) else scene.run(DAEMON, *command)
            assert status == wanted[cause], (cause, command, status, said)
    told = scene.run(DAEMON, "-h")[1]
    assert all(re.search(r"Exit status:.*\b%d\b" % status, told) for status in wanted.values()), told


def in_use(scene, address, flags, others):
    """What a daemon says of an address that is taken; what it proposes is there, and helps."""
    user = ("-u", site.protocol.USER) if os.geteuid() == 0 else ()
    status, said = scene.run(DAEMON, "--config", "$config", *flags, *user)
    line = next(line for line in said.splitlines() if " in use" in line)
    assert status == 1 and address in line, (status, said)
    helped = scene.run(DAEMON, "--help")[1]
    proposed = re.findall(r"(?<= )(-\w\b|`\w+`|listen\b)", line)
    assert proposed == others, (line, others)
    for one in proposed:
        assert re.search(r"^ +%s\b" % re.escape(one.strip("`")), helped, re.M), (one, line)
    return line


def test_in_use(scene):
    host, port = scene.good.daemon.address
    path = os.path.join(scene.folder, "socket")
    taken = "%s:%d" % (host, port)
    line = in_use(scene, taken, ("-l", taken), ["-l", "-p", "listen"])
    assert "in use by another program, as memcached or another rollcalld" in line, line
    page = "127.0.0.1:%d" % scene.good.port
    in_use(scene, page, ("-l", "127.0.0.1:0", "--set", "admin=" + page), ["`admin`"])
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as other:
        other.bind(path)
        os.chmod(path, 0o777)
        other.listen()
        in_use(scene, path, ("-s", path), ["-s", "listen"])


def test_screen(scene):
    """-h fits a screen, where the shell's prompt has a line, too."""
    for program in (TOOL, DAEMON):
        status, said = scene.run(program, "-h")
        lines = said.splitlines()
        assert status == 0 and len(lines) < LINES and max(map(len, lines)) <= COLUMNS, said


def test_scripts():
    """--help of the scripts prints, and does nothing else, in a tree where nothing is built."""
    with tempfile.TemporaryDirectory() as folder:
        tools = os.path.join(folder, "tools")
        shutil.copytree(os.path.join(TOP, "tools"), tools, ignore=shutil.ignore_patterns("rollcall"))
        before = sorted(os.walk(folder))
        cases = [(name, "--help", 0) for name in ("test", "package", "conformance", "cluster")]
        for name, option, status in cases + [("test", "--nonsense", 2), ("package", "--nonsense", 2)]:
            done = subprocess.run([os.path.join(tools, name), option], capture_output=True, text=True,
                                  timeout=site.ANSWER_S, check=False)
            said = done.stdout if status == 0 else done.stderr
            assert done.returncode == status and "tools/" + name in said, (name, done)
        assert sorted(os.walk(folder)) == before


def main():
    wanted = table()
    scene = Scene()
    files = scene.files
    for number in range(1, 13):
        files["$new-%d" % number] = "%s-%d" % (files["$new"], number)
    for name in ("$sound", "$damaged"):
        files[name + "/MANIFEST"] = os.path.join(files[name], "MANIFEST")
    for name in ("$sound-2", "$damaged-2", "$damaged-3"):
        of, number = name.split("-")
        files[name] = shutil.copytree(files[of], files[of] + "-" + number)
    files["$damaged-but"] = files["$damaged"] + "-but"  # its list is sound
    shutil.copytree(files["$damaged"], files["$damaged-but"])
    shutil.copy(os.path.join(files["$sound"], "BACKUP"), files["$damaged-but"])
    files["$empty"] = os.path.join(scene.folder, "empty")
    os.mkdir(files["$empty"])
    plain = site.Site()
    scene.at["$plain"] = "%s:%d" % plain.daemon.address
    scene.at["http://$nobody"] = "http://" + scene.at["$nobody"]
    files["$mine"] = files["$config"]
    files["$running"] = scene.good.write("running.yaml", running(scene))
    test_scripts()
    test_screen(scene)
    test_in_use(scene)
    test_daemon(scene, wanted["rollcalld"])
    test_tool(scene, wanted["rollcall"])
    plain.end()
    scene.end()
    return 0


def running(scene):
    """The configuration of the daemon, with what its flags say."""
    with open(os.path.join(scene.folder, "config.yaml"), encoding="utf-8") as file:
        text = "listen: [\"%s\"]\n" % scene.at["$at"] + file.read()
    return text + ("user: %s\n" % site.protocol.USER if os.geteuid() == 0 else "")


if __name__ == "__main__":
    sys.exit(main())
