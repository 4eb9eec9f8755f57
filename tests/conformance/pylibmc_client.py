"""pylibmc: see adapter.py."""
import sys

import pylibmc
from adapter import serve

binary = sys.argv[3] == "binary"
client = pylibmc.Client(["%s:%s" % tuple(sys.argv[1:3])], binary=binary,
                        behaviors={"tcp_nodelay": True, "cas": True})
token = None


def gets(key):
    global token
    value, token = client.gets(key)
    return value


def unless_missing(missing, call, *words):
    try:
        return call(*words)
    except pylibmc.NotFound:
        return missing


def stats():
    return client.get_stats()[0][1]["version"]


serve({
    "set": client.set, "add": client.add, "append": client.append, "prepend": client.prepend,
    "replace": lambda key, value: unless_missing(False, client.replace, key, value),
    "cas": lambda key, value: unless_missing(False, client.cas, key, value, token),
    "get": client.get, "gets": gets, "many": lambda *keys: client.get_multi(keys),
    "incr": lambda key, delta: unless_missing(None, client.incr, key, int(delta)),
    "decr": lambda key, delta: unless_missing(None, client.decr, key, int(delta)),
    "delete": client.delete, "touch": lambda key: client.touch(key, 100),
    "stats": stats, "flush": client.flush_all,
})
