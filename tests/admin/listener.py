#!/usr/bin/env python3
"""The admin listener: what each path answers, who may ask, and what hostile clients cost.

$ROLLCALLD names the daemon.
"""
import json
import os
import random
import re
import signal
import socket
import sys
import time

import admin_site as site
from admin_site import Site

sys.path.append(os.path.join(site.protocol.TOP, "tests", "recovery"))
from hang import Hang  # noqa: E402
from victim import Folder, seed_of_run  # noqa: E402

PAGE_MAX = 60 << 10
CONNECTIONS_MAX = 64
HOSTILE = 10000
README = os.path.join(site.protocol.TOP, "src", "admin", "README.md")


def test_health(here):
    assert here.ask("/healthz")[0] == 200
    assert here.ask("/leader")[0] == 200
    assert here.ask("/follower")[0] == 503
    assert here.ask("/healthz?probe=1")[0] == 200
    assert here.ask("/nothing")[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        code, headers, _ = here.ask("/metrics", method)
        assert (code, headers["Allow"]) == (405, "GET, HEAD"), (method, code)
    code, headers, body = here.ask("/metrics", "HEAD")
    assert code == 200 and body == b""
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert here.ask("/status.json")[1]["Content-Type"] == "application/json"


def test_figures(here):
    before = here.metrics()
    here.incr("feed", range(1, 101))
    here.say("incr feed:1.repost 100", *("get feed:%d" % number for number in range(1, 41)))
    here.say("get feed:999999", "set feed:1.like 0 0 1", "x")
    here.say("add liked:1:u9 0 0 1", "1", "add liked:1:u9 0 0 1", "1")
    after = here.metrics()

    def grown(name):
        return after[name] - before[name]

    assert "<title>open: ids 1 to 100, 100 of " in here.text("/")
    assert after['rollcall_records{space="feed"}'] == 100
    assert after['rollcall_records{space="liked"}'] == 1
    assert grown('rollcall_commands_total{command="get",result="hit"}') == 40
    assert grown('rollcall_commands_total{command="get",result="miss"}') == 1
    assert grown('rollcall_keys_total{command="incr"}') == 101
    assert grown('rollcall_refused_total{space="feed",reason="value"}') == 1
    assert after['rollcall_aux_records{space="feed"}'] == 1
    assert after['rollcall_table_id_min{space="feed",table="0"}'] == 1
    assert after['rollcall_table_id_max{space="feed",table="0"}'] == 100
    assert after['rollcall_tables{space="feed",state="open"}'] == 1
    assert after['rollcall_memory_limit_bytes'] == 256 << 20
    assert after['rollcall_connections_limit'] == 200
    told = json.loads(here.text("/status.json"))
    feed = next(space for space in told["spaces"] if space["name"] == "feed")
    assert told["schema_version"] == 1 and told["state"] == "serving"
    assert feed["held"] == 100 and feed["table_list"][0]["last_id"] == 100
    assert feed["refused"]["value"]["total"] == 1
    # memcached's reset is none of Prometheus' business
    here.say("stats reset")
    assert here.metrics()['rollcall_keys_total{command="incr"}'] >= 101


def test_slots():
    """Numbers too large for a slot, and the bits that would hold them."""
    here = Site()
    assert attention(here) == []
    here.incr("feed", range(1, 1001))
    here.say(*("incr feed:%d.repost %d" % (number, 100 if number <= 30 else 13) for number in range(1, 1001)))
    until = time.monotonic() + site.ANSWER_S
    while True:
        found = here.metrics()
        if found.get('rollcall_slot_overflow_records{space="feed",slot="repost"}') == 30:
            break
        assert time.monotonic() < until, found
    assert found['rollcall_slot_enough_width{space="feed",slot="repost"}'] == 7
    assert found['rollcall_slot_largest{space="feed",slot="like"}'] == 1
    assert sum(found['rollcall_probe_records{space="feed",probe="%s"}' % probe]
               for probe in ("first", "second", "beside")) == 1000
    assert attention(here) == ["feed: 30 numbers are too large for slot `repost` of 4 bits; 7 bits would hold 30 of them. "
                               "Give it more bits and reload: tables that open from then on have them."]
    assert "Largest at the last look: repost 100 (30 too large for 4 bits), like 1." in here.text("/")
    here.end()


def test_reload(here):
    assert here.metrics()["rollcall_config_last_reload_successful"] == 1
    path = os.path.join(here.folder, "config.yaml")
    with open(path, encoding="utf-8") as file:
        good = file.read()
    for text, wanted in ((good + "nonsense: 1\n", 0), (good, 1)):
        here.write("config.yaml", text)
        here.daemon.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + site.ANSWER_S
        while here.metrics()["rollcall_config_last_reload_successful"] != wanted:
            assert time.monotonic() < until, here.daemon.output()


def follow(here):
    """A daemon that follows it, and is level."""
    there = site.follower_of(here)
    until = time.monotonic() + site.ANSWER_S
    while there.metrics()['rollcall_replication_state{state="streaming"}'] == 0:
        assert time.monotonic() < until, there.daemon.output()
    assert (there.ask("/leader")[0], there.ask("/follower")[0]) == (503, 200)
    assert (here.ask("/leader")[0], here.ask("/follower")[0]) == (200, 503)
    told = json.loads(there.text("/status.json"))["replication"]
    assert (told["role"], told["state"], told["trouble"]) == ("follower", "streaming", ""), told
    for each, words in ((here, r"<p class=s>leader, .*<b>one</b> <span class=s>this node</span> leads, epoch \d+<ul class=k><li>"
                               r"<b>two</b> <span class=s>127\.0\.0\.1:\d+</span> streaming, "),
                        (there, r"<p class=s>follower, .*<li><b>127\.0\.0\.1:%d</b> .*<b>two</b> <span class=s>this node"
                                r"</span> streaming, .*; reads are answered" % here.daemon.address[1])):
        assert re.search(words, each.text("/"), re.S), (words, each.text("/"))
    return there


def test_led_by_word():
    """What an agent has said, and what follows from it, is told in all three ways."""
    here = site.led_by_word()

    def told():
        found = here.metrics()
        replication = json.loads(here.text("/status.json"))["replication"]
        assert found["rollcall_replication_epoch"] == found["rollcall_replication_reign"] == 5, found
        assert found["rollcall_replication_lease_seconds"] <= replication["lease_us"] / 1e6 + 2
        return found["rollcall_replication_lease_seconds"], replication["waits_for"], attention(here), here.text("/")

    left, waits_for, sentences, page = told()
    assert (left, waits_for, here.ask("/leader")[0]) == (0, "unnamed", 503)
    assert any("The word of this leader's agent has ended" in each for each in sentences), sentences
    for words in ("<b>three</b> <span class=s>this node</span> leads, epoch 5", "<b>Its agent's word has ended, and "
                  "changes are refused</b>", "<b>none is named yet: they are refused</b>"):
        assert words in page, (words, page)
    for waits, name, wrong, words in (
            ("*", "unnamed", "the agent has named none yet", "none is named yet"),
            ("two,four", "two,four", "Answers wait for two,four, which is away", "wait for <b>two,four</b>: <b>away"),
            ("-", "none", None, "wait for no follower: its agent says")):
        here.agent_says(500000, waits)
        left, waits_for, sentences, page = told()
        assert 0 < left <= 500 and waits_for == name and here.ask("/leader")[0] == 200, (left, waits_for)
        assert re.search("It leads by its agent's word, which holds for another 4[0-9][0-9] s\\.", page), page
        assert words in page, (words, page)
        assert [wrong in each for each in sentences] == [True] if wrong else sentences == [], sentences
    return here


def test_left(here, there):
    """The one that is followed has gone: the page says so, and what would help."""
    here.end()
    until = time.monotonic() + site.ANSWER_S
    while True:
        told = json.loads(there.text("/status.json"))
        if any("There is no connection to 127.0.0.1:" in each for each in told["attention"]):
            break
        assert time.monotonic() < until, told["attention"]
        time.sleep(0.2)
    assert told["replication"]["state"] == "connecting", told["replication"]
    assert re.search(r"this node</span> connecting, level <b>.*</b> ago", there.text("/")), there.text("/")


def test_names(here, there, led):
    """With all that a daemon can have, README's table and the answers name the same."""
    ids = range(1, 40000)
    for first in range(0, len(ids), 2000):
        here.incr("feed", ids[first : first + 2000])
    # a table is dumped, and read
    until = time.monotonic() + site.ANSWER_S
    while here.metrics()['rollcall_tables{space="feed",state="on_disk"}'] == 0:
        assert time.monotonic() < until, here.daemon.output()
    here.say("get feed:1")
    told = here.text("/metrics") + there.text("/metrics") + led.text("/metrics")
    names = set(re.findall(r"^# TYPE (\S+)", told, re.M))
    helped = set(re.findall(r"^# HELP (\S+) \S", told, re.M))
    with open(README, encoding="utf-8") as file:
        listed = set(re.findall(r"`((?:rollcall|process)_[a-z_]+)`", file.read()))
    assert names == helped, names ^ helped
    assert names == listed, names ^ listed
    assert here.metrics()["rollcall_disk_reads_total"] > 0


def test_many_tables():
    """However many tables there are, a metric has 256 of a space at most, and no two alike."""
    wide = ", ".join("s%d: 64" % slot for slot in range(8))  # few records fill a table
    here = Site(site.CONFIG.replace("slots: {read: 20}\n    table-size: 64KiB\n    tables: 2",
                                    "slots: {%s}\n    table-size: 64KiB\n    tables: 300" % wide))
    for first in range(0, 176 * 1000, 4000):
        here.say(*("incr full:%d.s0 1 noreply" % number for number in range(first, first + 4000)))
    rows = [line for line in here.text("/metrics").splitlines()
            if line.startswith('rollcall_table_records{space="full"')]
    tables = json.loads(here.text("/status.json"))["spaces"]
    full = next(space for space in tables if space["name"] == "full")
    assert full["tables"] > 256, full["tables"]
    assert len(here.text("/")) <= PAGE_MAX
    assert len(rows) == 256 and len({row.split(" ")[0] for row in rows}) == 256, len(rows)
    assert len(full["table_list"]) == 256
    assert full["tables_left_out"] == full["tables"] - 256
    firsts = [table["first_id"] for table in full["table_list"]]
    assert firsts == sorted(firsts) and firsts[-1] > 170 * 1000
    here.end()


def test_page(here):
    code, headers, body = here.ask("/")
    page = body.decode()
    assert code == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "<noscript><meta http-equiv=refresh" in page and here.ask("/status.js")[0] == 200
    assert len(page) <= PAGE_MAX, len(page)
    for words in ("Needs attention", "Nothing: all is within its limits", "Memory by kind",
                  "Operations a second, last ten minutes", "<title>open: no ids yet, 0 of "):
        assert words in page, words
    assert "ids 0 to 0" not in page
    # 64 spaces with all the tables that a page shows
    wide = ", ".join("slot-with-a-long-name-%d: 64" % slot for slot in range(8))
    many = Site("admin: 127.0.0.1:0\nmemory: 1GiB\nspaces:\n" + "".join(
        "  a-space-with-rather-long-name-%02d: {kind: counter, slots: {%s}, table-size: 64KiB, "
        "tables: 20}\n" % (number, wide) for number in range(64)))
    for number in range(24):
        key = "a-space-with-rather-long-name-%02d:%%d.slot-with-a-long-name-0" % number
        many.say(*("incr %s 1 noreply" % key % (number << 40 | count) for count in range(6000)))
    page = many.text("/")
    assert page.count("<section") >= 24 + 7 and "Further spaces" in page, page.count("<section")
    assert len(page) <= PAGE_MAX, len(page)
    many.end()


def attention(here):
    here.metrics()
    return json.loads(here.text("/status.json"))["attention"]


def counted(figures, command, *tiers):
    """The requests of a class whose time is known; of all tiers if none is named."""
    return sum(figures['rollcall_command_duration_seconds_count{command="%s",tier="%s"}' % (command, tier)]
               for tier in tiers or ("memory", "disk", "table", "sync"))


def test_watches():
    """Times by tier, the hottest id and member, and what was slow and why."""
    here = Site("slow-request: 1ms\n" + site.CONFIG, data=True)
    for first in range(0, 40000, 1000):
        here.say(*("incr feed:%d.like 1" % (77 if number % 5 == 0 else first + number)
                   for number in range(1000)))
        here.say(*("add liked:%d:%s 0 0 1\r\n1" % (first + number, "bob" if number % 3 else "<i>%d" % number)
                   for number in range(1000)))
    here.say(*("get feed:%d" % number for number in range(1, 2000)))
    until = time.monotonic() + site.ANSWER_S
    while "STAT feed:cold_tables 0\r\n" in here.say("stats spaces"):
        assert time.monotonic() < until, "no table of feed is in a file"
    here.say("get feed:1")
    # 77's table may be in a file before its last counts; and a worker notes what has waited with its next turn
    while (counted(after := here.metrics(), "incr"), counted(after, "get")) != (40000, 2000):
        assert time.monotonic() < until, (counted(after, "incr"), counted(after, "get"))
        here.say("version")
    assert counted(after, "get", "memory") + counted(after, "get", "disk") == 2000
    assert counted(after, "get", "disk") > 0
    # 77 has a fifth of the ids of one kind of key: a tenth of all, or more of one worker
    assert 0.05 < after['rollcall_hot_key_share_ratio{kind="id"}'] < 0.3
    assert 0.5 < after['rollcall_hot_key_share_ratio{kind="member"}'] < 0.8
    told = here.say("stats hot")
    assert "STAT 1:id feed:77\r\n" in told and "STAT 1:member liked:*:bob\r\n" in told, told
    for line in here.say("stats slow").splitlines()[:-1]:  # as slow as this machine is
        assert re.fullmatch(r"STAT \d+:(command|key|took_us|waited_for|seconds_ago) \S*", line), line
    assert "STAT get_memory:p99_us " in here.say("stats latency")
    page = here.text("/")
    for words in ("<code>feed:77</code>", "Latency in the daemon", "the hottest is"):
        assert words in page, words
    assert "<i>" not in page
    latency = json.loads(here.text("/status.json"))["latency"]
    assert latency["memory"]["requests"] > 0 and latency["disk"]["p99_us"] > 0, latency
    here.end()


def test_attention():
    """Each sentence comes with its trouble, and the page has them all."""
    here = Site(site.CONFIG.replace("max-connections: 200", "max-connections: 10"))
    assert attention(here) == []
    here.incr("full", range(1, 20000), "read")
    here.say("set feed:1 0 0 1\r\nx", "append feed:1 0 0 1\r\n1")
    clients = [socket.create_connection(here.daemon.address) for _ in range(8)]
    told = attention(here)
    for client in clients:
        client.close()
    for words in ("full refused ", "full is full: new ids are refused.", "no table free. Raise its `tables`, or set `data`",
                  "feed refused 1 operation in the last ten minutes: not a number",
                  "of at most 10 connections are open"):
        assert any(words in sentence for sentence in told), (words, told)
    page = here.text("/")
    assert "Raise its <code>tables</code>" in page and "<section class=\"a y\">" in page
    here.end()


def test_users():
    here = Site("admin-auth: $FOLDER/admins\n" + site.CONFIG, files=[("admins", "ops:right:one\n")])
    code, headers, _ = here.ask("/metrics")
    assert code == 401 and headers["WWW-Authenticate"].startswith("Basic "), code
    assert here.ask("/metrics", user="ops:wrong")[0] == 401
    code, _, body = here.ask("/metrics", user="ops:right:one")
    assert code == 200, code
    assert re.findall(rb"^rollcall_logins_failed_total (\d+)$", body, re.M) == [b"1"]
    assert here.ask("/status.json")[0] == 401
    assert here.ask("/metrics", headers={"Authorization": "Basic !!!!"})[0] == 401
    assert here.ask("/metrics", headers={"Authorization": "Basic " + "A" * 2000})[0] == 401
    assert here.ask("/metrics", headers={"Authorization": "Bearer x"})[0] == 401
    for path in ("/healthz", "/leader"):
        assert here.ask(path)[0] == 200
    # guessing is slowed down, whoever is right meanwhile
    codes = [here.ask("/metrics", user="ops:wrong")[0] for _ in range(4)]
    assert codes[:3] == [401] * 3 and codes[3] == 429, codes
    assert here.daemon.says("wrong user or password for the admin listener")
    # a login of the other port may wait for them, so they are counted as those there are
    assert here.daemon.says("too many wrong passwords, this one for the admin listener")
    told = here.say("stats")
    for figure in ("auth_cmds 5", "auth_errors 4", "auth_refused 1"):
        assert "STAT %s\r\n" % figure in told, told
    here.say("get feed:1")
    assert "STAT cmd_get 1\r\n" in here.say("stats")
    here.say("stats reset")
    told = here.say("stats")
    for figure in ("cmd_get 0", "auth_cmds 0", "auth_errors 0", "auth_refused 0"):
        assert "STAT %s\r\n" % figure in told, told
    here.end()


def test_refused_open():
    for text, wrong in (("admin: 0.0.0.0:11280\n", "give an admin-auth"),
                        ("admin: /run/x.sock\n", "admin must be host:port"),
                        ("admin: 127.0.0.1:99999\n", "must be")):
        try:
            Site(text + site.CONFIG.replace("admin: 127.0.0.1:0\n", ""))
        except site.protocol.Mismatch as mismatch:
            assert wrong in str(mismatch), mismatch
        else:
            raise AssertionError(text)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        try:
            Site(site.CONFIG.replace("127.0.0.1:0", address))
        except site.protocol.Mismatch as mismatch:
            assert address + " (admin): Address already in use" in str(mismatch), mismatch
        else:
            raise AssertionError("two have one address")


def drip(clients):
    """A byte now and then from each, until all are closed: each byte comes in time, the request
    does not."""
    until = time.monotonic() + site.ANSWER_S
    for client in clients:
        client.setblocking(False)
    while clients:
        assert time.monotonic() < until, len(clients)
        time.sleep(0.1)
        for client in list(clients):
            try:
                client.send(b"x")
                if client.recv(1000) == b"":
                    raise ConnectionError
            except BlockingIOError:
                pass
            except ConnectionError:
                clients.remove(client)
                client.close()


def test_slow(here):
    """Those who send slowly cost their connections until the deadline; others are answered."""
    for count in (3, 3 * CONNECTIONS_MAX):
        clients = [here.connect() for _ in range(count)]
        for client in clients:
            client.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        assert here.ask("/healthz")[0] == 200
        drip(clients)


def test_does_not_read(here):
    client = here.connect()
    client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    data = b""
    while True:
        try:
            piece = client.recv(100)
        except ConnectionError:
            break
        if not piece:
            break
        data += piece
    assert data.count(b"HTTP/1.1 200") == 1  # one request a connection
    client.close()


def hostile_request(rng):
    paths = [b"/", b"/metrics", b"/status.json", b"/../../etc/passwd", b"/%00", b"*", b"http://[::1",
             b"/" + b"a" * 9000, b"//", b"/healthz#x", b"?", b"\xff\xfe"]
    methods = [b"GET", b"HEAD", b"POST", b"PUT", b"CONNECT", b"\0", b"G" * 500, b"OPTIONS"]
    versions = [b" HTTP/1.1", b" HTTP/1.0", b" HTTP/9.9", b"", b" \r", b" HTTP/1." + b"1" * 300]
    headers = [b"Host: x", b"Content-Length: -1", b"Content-Length: 99999999999999999999",
               b"Transfer-Encoding: chunked", b"Authorization: Basic " + b"=" * 50, b": x", b"X" * 9000,
               b"Expect: 100-continue", b"Connection: keep-alive", b" folded", b"Upgrade: h2c"]
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(1, 400)) + b"\r\n\r\n"
    lines = [rng.choice(methods) + b" " + rng.choice(paths) + rng.choice(versions)]
    lines += rng.choices(headers, k=rng.randrange(4))
    text = b"\r\n".join(lines) + b"\r\n\r\n" + rng.choice([b"", b"ff\r\n", rng.randbytes(20)])
    return text[: rng.randrange(1, len(text))] if rng.random() < 0.2 else text


def test_hostile(here):
    rng = random.Random(seed_of_run())
    open_ones = []
    for _ in range(HOSTILE):
        client = here.connect()
        try:
            client.sendall(hostile_request(rng))
            if rng.random() < 0.5:
                client.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        open_ones.append(client)
        if len(open_ones) > 20:  # some are never read
            open_ones.pop(rng.randrange(len(open_ones))).close()
    for client in open_ones:
        client.close()
    assert here.ask("/healthz")[0] == 200
    assert here.say("get feed:1").endswith("END\r\n")


def test_disk_hangs():
    """The disk does not say what is free of it: whoever asks does not wait for that."""
    folder = Folder()
    hang = Hang(folder)
    before = os.environ.copy()
    os.environ.update(hang.environment())
    try:
        here = Site(data=True)
    finally:
        os.environ.clear()
        os.environ.update(before)
    hang.arm("/rollcall-admin-", "f")
    until = time.monotonic() + site.ANSWER_S
    while hang.waiting() == 0:
        assert time.monotonic() < until
        time.sleep(0.01)
    for path in ("/healthz", "/leader", "/metrics", "/status.json", "/"):
        assert here.ask(path)[0] == 200, path
    assert here.metrics()["rollcall_data_filesystem_bytes"] > 0
    hang.disarm()
    here.end()
    folder.remove()


def main():
    test_refused_open()
    test_users()
    test_attention()
    test_slots()
    test_watches()
    test_many_tables()
    test_disk_hangs()
    here = Site()
    for test in (test_health, test_page, test_figures, test_does_not_read, test_hostile, test_slow, test_reload):
        test(here)
    here.end()
    here = Site(site.CONFIG + "replication: {name: one}\n", data=True)
    there = follow(here)
    led = test_led_by_word()
    test_names(here, there, led)
    led.end()
    test_left(here, there)
    there.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
