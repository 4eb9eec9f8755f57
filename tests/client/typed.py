"""What readme.py and pages.py share: the blocks of a page that are typed or run.

In a console block a line that begins with "$ " is typed and what follows is its answer; nothing comes before the
first command. In a program a line that prints ends with a comment of what it prints.
"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(TOP, "tests", "protocol"))
from ports import free_port  # noqa: E402
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
LANGUAGES = {"python": (PYTHON, r"print\(", "#"), "php": ("php", "echo ", "//")}
MARK = "-- next --"


class Wrong(Exception):
    """The page promises something else."""


def blocks(text):
    """(language, lines) of each fenced block, in order."""
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M):
        yield match.group(1), match.group(2).splitlines()


def is_console(language, lines):
    return language == "" and any(line.startswith("$ ") for line in lines)


def commands(lines, page):
    """[(command, the lines of its answer)] of a console block."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        else:
            raise Wrong("%s: this stands before the first command of a block: %s" % (page, line))
    return found


def script(typed):
    """Types the commands into one shell; answers() takes what it printed apart."""
    return "\n".join("%s\necho '%s'" % (command, MARK) for command in typed)


def answers(printed):
    return [answer.splitlines() for answer in printed.split(MARK + "\n")]


def compare(what, got, wanted, page, same=list.__eq__):
    if not same(got, wanted):
        raise Wrong("%s printed\n    %s\n%s says\n    %s" % (what, "\n    ".join(got), page, "\n    ".join(wanted)))


def lacks(language):
    """The package that a program of this language lacks here; None: it can be run."""
    if language == "php":
        modules = shutil.which("php") and subprocess.run(["php", "-m"], stdout=subprocess.PIPE, check=False).stdout
        return None if modules and b"memcached" in modules.split() else "php-memcached"
    there = subprocess.run([PYTHON, "-c", "import pymemcache"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    return None if there else "python3-pymemcache"


def promised(language, lines, page):
    """What a program prints, as its comments say it."""
    _, prints, comment = LANGUAGES[language]
    wanted = [line.rpartition(comment)[2].strip() for line in lines if re.match(prints, line)]
    if not wanted:
        raise Wrong("%s: its %s prints nothing" % (page, language))
    return wanted
