#!/usr/bin/env python3
"""README.md as a newcomer tries it: its commands and programs, as they are printed, give the answers printed there.

The daemon is started by README's first command with conf/rollcall.yaml; `stats spaces` says that it serves counters
and existence keys. Console blocks are typed and programs run, as typed.py says. A yaml block is appended to the
configuration, which is then read again. Only the port is another one. Commands that install are run with DESTDIR, or were run by the
build this test belongs to (BUILT). Links of all documents lead somewhere. $ROLLCALLD and $ROLLCALL_BUILD name the
daemon and the folder of the build.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import typed
from typed import TOP, Wrong, free_port

BUILD = os.environ.get("ROLLCALL_BUILD", os.path.join(TOP, "build"))
PORT, START, CONFIG = "11211", "tools/run", "conf/rollcall.yaml"
BUILT = ("autoreconf -fi", "./configure", "make")  # tools/common.sh types them, else there is no daemon to test
INSTALL = "make install"
SECONDS_MAX = 60
LINES_MAX = 220
SPACES = ("feed:kind counter", "liked:kind phantom", "other:items 0")
PAGE = "README.md"


class Example:
    """A daemon as README starts it, in a folder that looks like the tree to tools/run."""

    def __init__(self):
        program = os.environ.get("ROLLCALLD", os.path.join(BUILD, "rollcalld"))
        if not os.access(program, os.X_OK):
            raise SystemExit("readme.py: %s is not there: build it first" % program)
        self.log = tempfile.TemporaryFile()
        self.folder = tempfile.mkdtemp(prefix="rollcall-readme.")
        self.process = self.port = None
        os.chmod(self.folder, 0o755)
        for name in ("tools", "build", "conf"):
            os.mkdir(os.path.join(self.folder, name))
        for name in (START, "tools/common.sh"):
            os.symlink(os.path.join(TOP, name), os.path.join(self.folder, name))
        # No source is here that could be newer than the build, so tools/run takes it as it is.
        os.symlink(program, os.path.join(self.folder, "build", "rollcalld"))
        self.environment = dict(os.environ, PATH=os.path.dirname(program) + ":" + os.environ["PATH"])
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            self.environment.pop(name, None)
        self.config = os.path.join(self.folder, CONFIG)
        shutil.copy(os.path.join(TOP, CONFIG), self.config)
        os.chmod(self.config, 0o644)

    def start(self, *command):
        """Starts a daemon with this command on a port of its own; it is then the one that is asked."""
        self.port = str(free_port())
        self.process = subprocess.Popen(
            command + ("-p", self.port), cwd=self.folder, env=self.environment, stdout=self.log,
            stderr=self.log)
        self.until(lambda: self.answer(b"version\r\n").startswith(b"VERSION "), "the daemon does not start")

    def answer(self, request, end=b"\r\n"):
        """What comes up to `end`; nothing when nobody listens."""
        try:
            with socket.create_connection(("127.0.0.1", int(self.port)), 1) as connection:
                connection.settimeout(SECONDS_MAX)
                connection.sendall(request)
                data = b""
                while not data.endswith(end):
                    piece = connection.recv(1 << 16)
                    if not piece:
                        break
                    data += piece
                return data
        except ConnectionError:
            return b""

    def until(self, holds, problem):
        end = time.monotonic() + SECONDS_MAX
        while not holds():
            if time.monotonic() > end or self.process.poll() is not None:
                self.log.seek(0)
                raise Wrong("%s:\n%s" % (problem, self.log.read().decode("utf-8", "replace")))
            time.sleep(0.01)

    def spaces(self):
        return self.answer(b"stats spaces\r\n", b"END\r\n").decode()

    def run(self, command, **options):
        done = subprocess.run(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX,
                              check=False, **options)
        output = done.stdout.decode("utf-8", "replace")
        if done.returncode != 0:
            raise Wrong("%s: exit status %d\n%s" % (command[0], done.returncode, output))
        return output.replace("\r\n", "\n")

    def append(self, lines):
        """Appends to the configuration and waits until the daemon has the spaces in it."""
        with open(self.config, "a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.process.send_signal(signal.SIGHUP)
        for name in re.findall(r"^  (\w+):", "\n".join(lines), re.M):
            self.until(lambda name=name: "STAT %s:" % name in self.spaces(), "no space " + name)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(SECONDS_MAX)
        if code != 0:
            raise Wrong("the daemon ended with %d" % code)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder)


def install(example):
    """make install, below a folder of its own; what it installs runs and takes its own configuration."""
    folder = os.path.join(example.folder, "installed")
    example.run(["make", "-s", "-C", BUILD, "install", "DESTDIR=" + folder])
    found = {name: os.path.join(root, name) for root, _, names in os.walk(folder) for name in names}
    for name in ("rollcalld", "rollcall", "rollcalld.8", "rollcall.yaml", "README.md"):
        if name not in found:
            raise Wrong("make install installs no " + name)
    example.run([found["rollcall"], "--version"])
    example.run([found["rollcalld"], "--config", found["rollcall.yaml"], "--check-config"])


def console(example, found):
    """Types the commands of one block into one shell, and compares what each prints."""
    commands = [command for command, _ in found]
    if commands == [START]:
        return  # by which the daemon was started
    if INSTALL in commands:
        if [command for command in commands if command not in BUILT] != [INSTALL]:
            raise Wrong("no test runs all of: %s" % ", ".join(commands))
        install(example)
        return
    said = example.run(["bash", "-c", typed.script(commands).replace(PORT, example.port)])
    for (command, promised), answer in zip(found, typed.answers(said)):
        typed.compare(command, answer, promised, PAGE)


def daemon_commands(example, commands):
    """A check of the configuration ends by itself; a daemon listens, and ends by SIGTERM."""
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    for line in commands:
        if "--check-config" in line:
            example.run(line.split())
        else:
            example.start(*line.split(), *user)
            example.stop()
        print("ok   $ " + line)


def program(example, language, texts):
    """Runs the blocks of one language as one program; prints what is missing, or compares."""
    missing = typed.lacks(language)
    if missing:
        print("SKIP: README's %s: %s is not installed" % (language, missing))
        return
    lines = [line for text in texts for line in text]
    wanted = typed.promised(language, lines, PAGE)
    path = os.path.join(example.folder, "example." + language)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines).replace(PORT, example.port) + "\n")
    said = example.run([typed.LANGUAGES[language][0], path])
    typed.compare("its " + language, said.splitlines(), wanted, PAGE)
    print("ok   %d answers of README's %s" % (len(wanted), language))


def documents():
    for top, folders, names in os.walk(TOP):
        folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
        for name in names:
            if name.endswith(".md"):
                yield os.path.join(top, name)


def anchors(text):
    """The names GitHub gives headings."""
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links():
    """Relative links of all documents that lead nowhere."""
    for path in documents():
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"\w+:", target):
                continue
            name, _, anchor = target.partition("#")
            other = os.path.join(os.path.dirname(path), name) if name else path
            if not os.path.exists(other):
                raise Wrong("%s: %s is not there" % (os.path.relpath(path, TOP), target))
            if anchor:
                with open(other, encoding="utf-8") as file:
                    if anchor not in anchors(file.read()):
                        raise Wrong("%s: no heading %s" % (os.path.relpath(path, TOP), target))


def examples(example, text):
    found, daemons = list(typed.blocks(text)), []
    if found.count(("", ["$ " + START])) != 1:
        raise Wrong("README does not start the daemon with " + START)
    example.start("bash", os.path.join(example.folder, START))
    for figure in SPACES:
        if "STAT %s\r\n" % figure not in example.spaces():
            raise Wrong("%s does not serve %s" % (CONFIG, figure))
    for language, lines in found:
        if language == "yaml":
            example.append(lines)
        elif typed.is_console(language, lines):
            block = typed.commands(lines, PAGE)
            if block[0][0].startswith("rollcalld "):
                daemons.append([command for command, _ in block])
            else:
                console(example, block)
                print("ok   " + lines[0])
        elif language and language not in typed.LANGUAGES:
            raise Wrong("nothing runs a block of " + language)
    for language in typed.LANGUAGES:
        program(example, language, [lines for one, lines in found if one == language])
    example.stop()
    for commands in daemons:
        daemon_commands(example, commands)


def main():
    with open(os.path.join(TOP, PAGE), encoding="utf-8") as file:
        text = file.read()
    example = Example()
    try:
        if len(text.splitlines()) > LINES_MAX:
            raise Wrong("README.md has more than %d lines" % LINES_MAX)
        links()
        examples(example, text)
    except Wrong as problem:
        print("FAIL " + str(problem))
        return 1
    finally:
        example.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
