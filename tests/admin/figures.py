#!/usr/bin/env python3
"""Every figure that stats answers is explained in src/request/README.md, but for names of memcached's that mean
nothing here; and that page names none that is not answered.

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
# Names of memcached's that mean nothing here, so the page does not tell them: they answer 0 …
ZEROS = """
response_obj_oom response_obj_count response_obj_bytes read_buf_count read_buf_bytes read_buf_bytes_free
read_buf_oom reserved_fds get_flushed time_in_listen_disabled_us hash_power_level hash_bytes hash_is_expanding
slab_reassign_rescues slab_reassign_chunk_rescues slab_reassign_evictions_nomem slab_reassign_inline_reclaim
slab_reassign_busy_items slab_reassign_busy_deletes slab_reassign_busy_nomem slab_reassign_running slabs_moved
lru_crawler_running lru_crawler_starts lru_maintainer_juggles malloc_fails log_worker_dropped log_worker_written
log_watcher_skipped log_watcher_sent log_watchers unexpected_napi_ids round_robin_fallback slab_global_page_pool
expired_unfetched evicted_unfetched evicted_active reclaimed crawler_reclaimed crawler_items_checked
lrutail_reflocked moves_to_cold moves_to_warm moves_within_lru direct_reclaims lru_bumps_dropped
""".split()
ZEROS_OF_ITEMS = """
number_hot number_warm number_cold age_hot age_warm age evicted evicted_nonzero evicted_time outofmemory
tailrepairs reclaimed expired_unfetched evicted_unfetched evicted_active crawler_reclaimed crawler_items_checked
lrutail_reflocked moves_to_cold moves_to_warm moves_within_lru direct_reclaims hits_to_hot hits_to_warm
hits_to_cold hits_to_temp
""".split()
ZEROS_OF_SLABS = """
free_chunks_end get_hits cmd_set delete_hits incr_hits decr_hits cas_hits cas_badval touch_hits
""".split()
# … or one thing for ever, as most settings do.
SAME = """
oldest stat_key_prefix detail_enabled cas_enabled client_flags_size binding_protocol maxconns_fast growth_factor
chunk_size slab_reassign slab_automove slab_chunk_max hash_algorithm hashpower_init tail_repair_time lru_crawler
lru_crawler_sleep lru_crawler_tocrawl lru_maintainer_thread lru_segmented hot_lru_pct warm_lru_pct hot_max_factor
warm_max_factor temp_lru temporary_ttl track_sizes watcher_logbuf_size worker_logbuf_size
slab_reassign_last_busy_status
""".split()
TLS = {"time_since_server_cert_refresh"}  # answered with it alone: tests/client/tls.py
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
        figures = re.findall(r"^STAT (\S+) (.*?)\r?$", here.say("stats " + group if group else "stats"), re.M)
        assert figures or group in ("hot", "slow"), group
        names = {generic(group, name, options): value for name, value in figures}
        for name in set(names) & (untold() - set(SAME)):
            assert names[name] == "0", "%s has a meaning: %s" % (name, names[name])
        found |= set(names)
    return found - {"OPTION"}, options


def explained():
    """Names in the page's tables, and those it does not tell because they mean nothing."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    names = set()
    for line in text.splitlines():
        if line.startswith("| `"):
            names |= set(re.findall(r"`([^`]+)`", line.split("|")[1]))
    told = names & (untold() - set(SAME))
    assert not told, "explained, though it means nothing: %s" % " ".join(sorted(told))
    return names | untold() | {"latency_below_us:N", "latency_longer", "SPACE:more"}


def untold():
    return (set(ZEROS) | {"items:N:" + name for name in ZEROS_OF_ITEMS} | {"N:" + name for name in ZEROS_OF_SLABS}
            | set(SAME))


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
        strange = found - wanted
        assert not strange, "not explained in src/request/README.md: %s" % " ".join(sorted(strange))
        missing = wanted - found - CHANCE - TLS - options
        if not missing:
            break
        assert time.monotonic() < until, "explained, but not answered: %s" % " ".join(sorted(missing))
    there.end()
    here.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
