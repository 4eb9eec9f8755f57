#!/usr/bin/env python3
"""What tools that watch memcached read out of it, read here by their own rules: Prometheus' memcached_exporter,
Debian's memcstat and memcached-tool.

The exporter's rules are played, each with an answer that breaks it: names of classes, values that are numbers, names it
cannot do without. $ROLLCALLD names the daemon.
"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "admin"))
import admin_site as site  # noqa: E402

TOOL = "/usr/share/memcached/scripts/memcached-tool"
NEEDED = ("cmd_set", "cas_hits", "cas_misses", "cas_badval")  # one is missing: the daemon counts as down
NEEDED_SLAB = ("cmd_set", "cas_hits", "cas_badval")
# What dashboards and alerts of memcached ask for.
WANTED = ("uptime", "version", "curr_connections", "max_connections", "total_connections", "curr_items", "total_items",
          "evictions", "bytes", "limit_maxbytes", "bytes_read", "bytes_written", "rusage_user", "rusage_system",
          "get_hits", "get_misses", "cmd_get", "cmd_touch", "touch_hits", "delete_hits", "incr_hits", "decr_hits")
TEXTS = ("version", "server_name", "server_version", "libevent", "slab_reassign_last_busy_status")
EMPTY = ("extstore", "cachedump 1 1")  # asked for by tools, with nothing to tell
UNKNOWN = ("foo", "items foo")  # as memcached answers them


class Down(Exception):
    """The exporter would say memcached_up 0."""


def rows(text):
    if not text.endswith("END\r\n"):
        raise Down("no END: %r" % text[-100:])
    for line in text.split("\r\n")[:-2]:
        match = re.fullmatch(r"STAT (\S+) (.*)", line)
        if not match:
            raise Down("no STAT line: %r" % line)
        yield match.groups()


def number(name, text):
    try:
        return float(text)
    except ValueError:
        raise Down("%s is no number: %r" % (name, text)) from None


def read_general(text):
    """Names are words or class:name; known ones are numbers; some must be there."""
    figures = {}
    for name, value in rows(text):
        words = name.split(":")
        if len(words) > 2 or (len(words) == 2 and not words[0].isdigit()):
            raise Down("a class that is no number: %r" % name)
        if not re.fullmatch(r"[A-Za-z0-9_:]+", name):
            raise Down("a name with other letters: %r" % name)
        figures[name] = value if name in TEXTS else number(name, value)
    for name in NEEDED:
        if name not in figures:
            raise Down("no " + name)
    return figures


def read_slabs(text):
    """{class: figures}; each class has what the exporter cannot do without, all are numbers."""
    classes = {}
    for name, value in rows(text):
        words = name.split(":")
        if len(words) == 1:
            number(name, value)
        elif len(words) == 2 and words[0].isdigit():
            classes.setdefault(int(words[0]), {})[words[1]] = number(name, value)
        else:
            raise Down("a class that is no number: %r" % name)
    for kind, figures in classes.items():
        for name in NEEDED_SLAB:
            if name not in figures:
                raise Down("class %d has no %s" % (kind, name))
    return classes


def read_items(text):
    classes = {}
    for name, value in rows(text):
        match = re.fullmatch(r"items:(\d+):(\w+)", name)
        if not match:
            raise Down("no items:N:name: %r" % name)
        classes.setdefault(int(match.group(1)), {})[match.group(2)] = number(name, value)
    return classes


def refused(read, text):
    try:
        read(text)
    except Down:
        return
    raise AssertionError("%s takes %r" % (read.__name__, text))


def test_rules_look():
    good = "".join("STAT %s 1\r\n" % name for name in NEEDED)
    read_general(good + "END\r\n")
    for bad in ("STAT feed:hits 1\r\n", "STAT uptime 1d\r\n", "STAT a-b 1\r\n", "garbage\r\n"):
        refused(read_general, good + bad + "END\r\n")
    refused(read_general, good)
    for name in NEEDED:
        refused(read_general, good.replace("STAT %s 1\r\n" % name, "") + "END\r\n")
    refused(read_slabs, "STAT 1:chunk_size 1\r\nEND\r\n")
    refused(read_slabs, "STAT feed:cmd_set 1\r\nEND\r\n")
    refused(read_items, "STAT items:feed:number 1\r\nEND\r\n")


def test_exporter(here):
    figures = read_general(here.say("stats"))
    for name in WANTED:
        assert name in figures, name
    slabs, items = read_slabs(here.say("stats slabs")), read_items(here.say("stats items"))
    assert sorted(slabs) == sorted(items) == list(items), (slabs.keys(), items.keys())
    for kind in ("chunk_size", "total_pages", "total_chunks", "used_chunks"):
        assert all(kind in figures for figures in slabs.values()), kind
    for kind in ("number", "age", "evicted", "evicted_time", "outofmemory"):
        assert all(kind in figures for figures in items.values()), kind
    settings = dict(rows(here.say("stats settings")))
    assert settings["maxconns"].isdigit() and settings["lru_crawler"] == "no", settings
    assert not any(name.startswith("extstore") for name in list(figures) + list(settings))
    # what curr_items, bytes and limit_maxbytes mean
    assert figures["curr_items"] == 102 and 0 < figures["bytes"] < figures["limit_maxbytes"] == 256 << 20, figures
    version = re.fullmatch(r"VERSION ([1-9]\d*)\.\d+\.\d+\r\n", here.say("version"))
    assert version and figures["version"] == version.group(0)[8:-2], version


def test_answers(here):
    for what in EMPTY:
        assert here.say("stats " + what) == "END\r\n", what
    for what in UNKNOWN:
        assert here.say("stats " + what) == "ERROR\r\n", what
    before = read_general(here.say("stats"))
    assert here.say("stats reset") == "RESET\r\n"
    after = read_general(here.say("stats"))
    for name in ("curr_items", "bytes", "limit_maxbytes", "max_connections"):
        assert before[name] == after[name], name
    assert after["cmd_set"] == 0 < before["cmd_set"]


def test_tools(here):
    """Those that are there, run; what they print is what the daemon has."""
    address = "127.0.0.1:%d" % here.daemon.address[1]
    found = 0
    for command, words in (
            (["memcstat", "--servers=" + address], (r"curr_items: 102\b", r"limit_maxbytes: 268435456\b")),
            ([TOOL, address, "display"], (r"#\s+Item_Size\s+Max_age\s+Pages\s+Count", r"(?m)^ +[13] .* 100 ", r"(?m)^ +5 ")),
            ([TOOL, address, "stats"], (r"curr_items +102\b",)),
            ([TOOL, address, "settings"], (r"maxconns +200\b",)),
            ([TOOL, address, "dump"], (r"add plain 0 \d+ 1\s+x",)),
            ([TOOL, address, "keys"], (r"key=plain ",))):
        if not shutil.which(command[0]):
            print("SKIP: %s is not installed" % command[0])
            continue
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=site.ANSWER_S)
        said = done.stdout.decode()
        assert done.returncode == 0, (command, said, done.stderr)
        for pattern in words:
            assert re.search(pattern, said), (command, pattern, said)
        found += 1
    return found


def main():
    test_rules_look()
    here = site.Site()
    read_general(here.say("stats"))  # of an empty daemon, too
    read_slabs(here.say("stats slabs"))
    here.incr("feed", range(1, 101))
    here.say("add liked:1:u9 0 0 1", "1", "set plain 0 0 1", "x")
    test_exporter(here)
    test_tools(here)
    test_answers(here)
    here.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
