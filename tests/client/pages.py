#!/usr/bin/env python3
"""The pages that tell late loading, growing, backup, layers and followers, as an operator types them.

SECTIONS names them. In a section a yaml block is the file that the next command names with --config; console blocks
are typed and python blocks run, as typed.py says. The commands of a section run in one folder of its own, one after
the other. Only the ports are other ones. A figure that no two runs share (a rate, an LSN, a size, the ids of a table) need
only be one; what the daemon logs and a load tells of its progress is left out. $ROLLCALLD and $ROLLCALL name the
programs.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import typed
from typed import TOP, Wrong, free_port

SECTIONS = (
    ("conf/README.md", "Late loading"),
    ("conf/README.md", "Growing"),
    ("src/data/README.md", "Backup"),
    ("src/protocol/README.md", "Layers"),
    ("src/repl/README.md", "A follower", "Taking over"),
)
PORTS = ("11211", "11212")
USER = "nobody"
SECONDS_MAX = 240
LEFT_OUT = re.compile(r"^\S+Z rollcalld: info: |^[\d.]+ \w+( \([\d.]+ %\))?, [\d.]+ \w+/s")
VARIES = re.compile(r"(?<=LSN )\d+|(?<=table )\d+|(?<=ids )\d+ to \d+|\d+(?= (?:rows )?a second)|[\d.]+(?= [KMG]iB)"
                    r"|\b\d{3,}(?<!000)(?= stored| refused)|\d+(?= segments| bytes behind)")
# Ports are given where the page has none; as root the daemon becomes another user.
SHELL = """
set -o pipefail
rollcalld() {
    local port=%(port)s word at
    for word; do [ "$at" != -p ] || port=$word; at=$word; done
    command "$ROLLCALLD" -p "$port" -P "%(folder)s/pid.$port" %(user)s "$@"
}
rollcall() {
    local verb=$1 word where=(-s 127.0.0.1:%(port)s)
    shift
    for word; do case $word in -s | --offline) where=() ;; esac; done
    case $verb in restore | verify | repair | inspect) where=() ;; esac
    command "$ROLLCALL" "$verb" "${where[@]}" "$@"
}
"""


def section(path, title):
    """The text of a section: up to the next heading of its level or above."""
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        text = file.read()
    found = re.search(r"^(##+) %s\n(.*?)(?=^##? |\Z)" % re.escape(title), text, re.S | re.M)
    if found is None:
        raise Wrong("%s has no section %s" % (path, title))
    return found.group(2)


def matches(wanted, got):
    """Is the line the one that was promised, but for figures that vary?"""
    pattern, at = "", 0
    for figure in VARIES.finditer(wanted):
        pattern += re.escape(wanted[at:figure.start()]) + re.sub(r"[\d.]+", lambda _: r"[\d.]+", figure.group(0))
        at = figure.end()
    return re.fullmatch(pattern + re.escape(wanted[at:]), got) is not None


def alike(got, wanted):
    return len(got) == len(wanted) and all(map(matches, wanted, got))


class Page:
    """A section, and the folder it is typed in."""

    def __init__(self, path, *titles):
        self.name = "%s: %s" % (path, ", ".join(titles))
        self.text = "\n".join(section(path, title) for title in titles)
        self.folder = tempfile.mkdtemp(prefix="rollcall-page.")
        os.chmod(self.folder, 0o777)
        self.ports = [str(free_port()) for _ in PORTS]
        self.files = []
        self.commands = 0

    def there(self, text):
        for told, ours in zip(PORTS, self.ports):
            text = text.replace(told, ours)
        return text

    def run(self, command):
        user = "-u " + USER if os.geteuid() == 0 else ""
        prologue = SHELL % {"port": self.ports[0], "folder": self.folder, "user": user}
        log = os.path.join(self.folder, "typed.log")
        with open(log, "wb") as output:  # no pipe: a daemon in the background would hold it open
            try:
                status = subprocess.run(["bash", "-c", prologue + command], cwd=self.folder, stdin=subprocess.DEVNULL,
                                        stdout=output, stderr=output, timeout=SECONDS_MAX, check=False).returncode
            except subprocess.TimeoutExpired:
                status = "none, after %d s" % SECONDS_MAX
        with open(log, encoding="utf-8", errors="replace") as file:
            said = file.read().replace("\r\n", "\n")
        if status != 0:
            raise Wrong("%s: exit status %s:\n%s" % (self.name, status, said))
        for told, ours in zip(PORTS, self.ports):
            said = said.replace(":" + ours, ":" + told)
        return said

    def console(self, lines):
        found = typed.commands(lines, self.name)
        commands = [command for command, _ in found]
        for name in re.findall(r"--config (\S+)", " ".join(commands)):
            if self.files and not os.path.exists(os.path.join(self.folder, name)):
                with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                    file.write(self.there("\n".join(self.files.pop(0)) + "\n"))
        said = typed.answers(self.run(typed.script(map(self.there, commands))))
        for (command, promised), answer in zip(found, said):
            got = [line for line in answer if not LEFT_OUT.search(line)]
            typed.compare(command, got, promised, self.name, alike)
        self.commands += len(found)

    def program(self, lines):
        missing = typed.lacks("python")
        if missing:
            print("SKIP: %s: %s is not installed" % (self.name, missing))
            return
        path = os.path.join(self.folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.there("\n".join(lines) + "\n"))
        got = self.run("%s %s" % (typed.PYTHON, path)).splitlines()
        typed.compare("its program", got, typed.promised("python", lines, self.name), self.name)
        self.commands += 1

    def type_all(self):
        for language, lines in typed.blocks(self.text):
            if language == "yaml":
                self.files.append(lines)
            elif language == "python":
                self.program(lines)
            elif typed.is_console(language, lines):
                self.console(lines)
            else:
                raise Wrong("%s: nothing runs a block of %s" % (self.name, language or lines[0]))
        if self.commands == 0 or self.files:
            raise Wrong("%s: nothing is typed, or a file is not used" % self.name)
        print("ok   %s: %d commands" % (self.name, self.commands))

    def close(self):
        """Ends the daemons that were started."""
        for port in self.ports:
            path = os.path.join(self.folder, "pid." + port)
            if not os.path.exists(path):
                continue
            with open(path, encoding="ascii") as file:
                pid = int(file.read())
            try:
                os.kill(pid, signal.SIGTERM)
                end = time.monotonic() + SECONDS_MAX
                while time.monotonic() < end:
                    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
                        if ") Z " in file.read():
                            break
                    time.sleep(0.01)
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, FileNotFoundError):
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    named = sys.argv[1:]
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as file:
        front = file.read()
    failed = 0
    for path, title, *more in SECTIONS:
        if named and title not in named:
            continue
        page = None
        try:
            anchor = "(%s#%s)" % (path, title.lower().replace(" ", "-"))
            if anchor not in front:
                raise Wrong("README.md does not lead to " + anchor)
            page = Page(path, title, *more)
            page.type_all()
        except Wrong as problem:
            failed = 1
            print("FAIL " + str(problem))
        finally:
            if page is not None:
                page.close()
    return failed


if __name__ == "__main__":
    sys.exit(main())
