#!/usr/bin/env python3
"""Every figure that stats answers is explained in src/request/README.md, and that names none that is not answered.

A daemon with every kind of space and with data answers all groups of stats, and one that follows it the group
that is another there. $ROLLCALLD names the daemon.
"""
import os
import re
import sys
import time

import admin_site as site

PAGE = os.path.join(site.protocol.TOP, "src", "request", "README.md")
GROUPS = ("", "settings", "items", "slabs", "conns", "spaces", "tables", "cold", "replication", "hot", "slow",
          "latency")
CONFIG = site.CONFIG.replace("threads: 2", "threads: 2\nslow-request: 1ms")
# Answered, if there is anything to tell: what this daemon may happen not to have met.
CHANCE = {"SPACE:more", "N:id", "N:id_share", "N:member", "N:member_share", "reach", "fill"}


def busy(here):
    """Every group has something to tell: slow requests too, as a table is opened, or a page read, for them."""
    for first in range(1, 40000, 2000):
        here.incr("feed", range(first, first + 2000))
    here.say(*("add liked:%d:u9 0 0 1\r\n1" % number for number in range(1, 1000)))
    here.say("set other 0 0 1\r\nx", *("get feed:%d" % number for number in range(1, 4000, 7)))


def generic(group, name, options):
    """A figure's name as the page writes it."""
    if group == "settings":
        name = re.sub(r"^space_[a-z0-9]+_", "", name)
        return "OPTION" if name in options else name
    if group in ("spaces", "tables"):
        name = name.partition(":")[2]
        return re.sub(r"^\d+:", "", name) if name != "more" else "SPACE:more"
    if group == "replication":
        return re.sub(r"^two:", "NAME:", name)
    if group == "latency":
        return re.sub(r"^[a-z]+_[a-z]+:", "CLASS_TIER:", name)
    name = re.sub(r"^latency_below_us:\d+$", "latency_below_us:N", name)
    return re.sub(r"^(items:)?\d+:", r"\1N:", name)


def answered(here):
    with open(os.path.join(site.protocol.TOP, "conf", "rollcall.yaml"), encoding="utf-8") as file:
        sample = file.read()
    options, group_of = set(), None
    for mark, indent, key, rest in re.findall(r"^( *#? ?)( *)([a-z-]+):( .*|)$", sample, re.M):
        if mark.startswith("#") and not rest and not indent:
            group_of = key
        options.add(key.replace("-", "_"))
        options.add("%s_%s" % (group_of, key.replace("-", "_")))
    found = set()
    for group in GROUPS:
        names = re.findall(r"^STAT (\S+) ", here.say("stats " + group if group else "stats"), re.M)
        assert names or group in ("hot", "slow"), group
        found |= {generic(group, name, options) for name in names}
    return found - {"OPTION"}, options


def explained():
    """Names in the page's tables and in its lists of what is always the same; the latter stand behind a prefix."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    names = set()
    for line in text.splitlines():
        if line.startswith("| `"):
            names |= set(re.findall(r"`([^`]+)`", line.split("|")[1]))
    for prefix, lists in (("", r"^Always 0: (.*?)\n\n"), ("", r"^Always the same: (.*?)(?:\n\n|\Z)"),
                          ("items:N:", r"after `items:N:`: (.*?);"), ("N:", r"after `N:`:\n(.*?)\n\n")):
        found = re.search(lists, text, re.S | re.M)
        assert found, lists
        names |= {prefix + name for name in re.findall(r"`([^`]+)`", found.group(1))}
    names |= {"latency_below_us:N", "latency_longer", "SPACE:more"}
    return names


def main():
    here = site.Site(CONFIG + "replication: {name: one}\n", data=True)
    there = site.follower_of(here, CONFIG)
    wanted = explained()
    assert "get_hits" in wanted and "items:N:age_hot" in wanted and "N:cas_badval" in wanted
    until = time.monotonic() + site.ANSWER_S
    while True:
        busy(here)
        found, options = answered(here)
        found |= {generic("replication", name, options)
                  for name in re.findall(r"^STAT (\S+) ", there.say("stats replication"), re.M)}
        untold = found - wanted
        assert not untold, "not explained in src/request/README.md: %s" % " ".join(sorted(untold))
        missing = wanted - found - CHANCE - options
        if not missing:
            break
        assert time.monotonic() < until, "explained, but not answered: %s" % " ".join(sorted(missing))
    there.end()
    here.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
