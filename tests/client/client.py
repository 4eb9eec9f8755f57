#!/usr/bin/python3
"""pymemcache against a running rollcalld: a second opinion beside client.c.

usage: client.py PORT. Wants the spaces of tests/protocol/scripts.yaml. Exit 77: pymemcache is missing.
"""
import sys

try:
    from pymemcache.client.base import Client
    from pymemcache.exceptions import MemcacheClientError
except ImportError:
    print("SKIP: python3-pymemcache is not installed")
    sys.exit(77)


def refused(call, *arguments):
    try:
        call(*arguments, noreply=False)
    except MemcacheClientError:
        return True
    return False


def slots(mc):
    key = "feed:700.like"
    assert mc.incr(key, 3) == 3
    assert mc.decr(key, 5) == 0
    assert mc.set(key, "12", noreply=False)
    assert mc.get(key) == b"12"
    assert mc.add(key, "1", noreply=False) is False
    assert mc.replace(key, "1048574", noreply=False)
    assert mc.get(key) == b"1048574"
    value, token = mc.gets(key)
    assert mc.cas(key, "5", token, noreply=False) is True
    assert mc.cas(key, "6", token, noreply=False) is False
    assert mc.cas("feed:799.like", "6", token, noreply=False) is None
    assert mc.touch(key, 10, noreply=False)
    assert mc.get(key) == b"5"
    assert refused(mc.append, key, "1")
    assert refused(mc.set, key, "many")
    assert mc.delete(key, noreply=False) is True
    assert mc.delete(key, noreply=False) is False
    assert mc.get(key) is None
    mc.incr(key, 1, noreply=True)
    assert mc.get(key) == b"1"


def records(mc):
    assert mc.set("feed:701", "1,2,,4", noreply=False)
    assert mc.get("feed:701") == b"1,2,,4"
    assert mc.get("feed:701.comment") == b"2"
    assert mc.get("feed:701.like") is None
    mc.incr("feed:701.like", 8)
    assert mc.get("feed:701.") == b"1,2,8,4"
    assert refused(mc.set, "feed:701", "1,2,3")
    assert refused(mc.set, "feed:x", "1")
    ids = ["feed:%d" % i for i in range(800, 900)]
    assert mc.set_many({key: "%s,,,1" % key[5:] for key in ids}, noreply=False) == []
    assert mc.get_many(ids) == {key: ("%s,,,1" % key[5:]).encode() for key in ids}
    assert mc.delete_many(ids, noreply=False)
    assert mc.get_many(ids) == {}


def members(mc):
    key = "liked:702:u9"
    assert mc.get(key) is None
    assert mc.add(key, "1", noreply=False) is True
    assert mc.add(key, "1", noreply=False) is False
    assert mc.get(key) == b"1"
    value, token = mc.gets(key)
    assert mc.cas(key, "1", token, noreply=False) is True
    assert refused(mc.set, key, "2")
    assert mc.delete(key, noreply=False) is True
    assert mc.delete(key, noreply=False) is False
    assert mc.get(key) is None
    page = ["liked:%d:u9" % i for i in range(900, 920)]
    assert mc.set_many({key: "1" for key in page[::10]}, noreply=False) == []
    assert mc.get_many(page) == {key: b"1" for key in page[::10]}


def main():
    mc = Client(("127.0.0.1", int(sys.argv[1])), default_noreply=False, timeout=10)
    assert mc.version() == b"1.6.45"
    slots(mc)
    records(mc)
    members(mc)
    assert mc.stats()[b"version"] == b"1.6.45"
    mc.quit()
    print("ok")


if __name__ == "__main__":
    main()
