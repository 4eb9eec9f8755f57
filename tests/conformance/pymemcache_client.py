"""pymemcache: see adapter.py."""
import sys

from adapter import serve
from pymemcache.client.base import Client

client = Client((sys.argv[1], int(sys.argv[2])), default_noreply=False, timeout=10)
token = None


def gets(key):
    global token
    value, token = client.gets(key)
    return value


serve({
    "set": client.set, "add": client.add, "replace": client.replace,
    "append": client.append, "prepend": client.prepend,
    "cas": lambda key, value: bool(client.cas(key, value, token)),
    "get": client.get, "gets": gets,
    "many": lambda *keys: client.get_many(keys),
    "incr": lambda key, delta: client.incr(key, int(delta)),
    "decr": lambda key, delta: client.decr(key, int(delta)),
    "delete": client.delete, "touch": lambda key: client.touch(key, 100),
    "version": client.version, "stats": lambda: client.stats()[b"version"],
    "flush": client.flush_all,
})
