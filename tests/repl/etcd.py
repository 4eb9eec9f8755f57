#!/usr/bin/env python3
"""A stand-in for etcd in the tests of rollcall agent, and what proves that it is one.

    etcd.py             the same calls to the stand-in and, where it is installed, to the real one:
                        every answer must have the same form and meaning
    etcd.py --serve     a stand-in until it is killed; prints its URL

The stand-in has the calls of the JSON gateway that the agent uses, on one member: leases end by the
clock, keys go with them, a transaction compares revisions. It can be made to hang, or to say
nothing.
"""
import argparse
import base64
import http.client
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.append(os.path.join(os.path.dirname(HERE), "protocol"))
from ports import free_port  # noqa: E402

START_S = 30
CALL_S = 10
LEAST_TTL_S = 1  # of the stand-in; the real one's follows from its election timeout
USER, PASSWORD = "root", "secret"


def text_of(word):
    return base64.b64encode(word.encode()).decode()


class Refused(Exception):
    """The call is wrong: its HTTP status, gRPC code and words."""

    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code = status, code


class Store:
    """What etcd holds. Numbers are strings and what is zero is left out, as in its answers."""

    def __init__(self):
        self.lock = threading.Lock()
        self.revision, self.next_lease = 1, 7000
        self.keys, self.leases = {}, {}
        self.tokens, self.users, self.logins = {}, 0, 0  # a token's worth: how often users had changed
        self.password = None

    def header(self):
        return {"cluster_id": "1", "member_id": "1", "revision": str(self.revision), "raft_term": "2"}

    def expire(self):
        now = time.monotonic()
        for lease in [lease for lease, (_, until) in self.leases.items() if until <= now]:
            self.drop(lease)

    def drop(self, lease):
        del self.leases[lease]
        gone = [key for key, item in self.keys.items() if item["lease"] == lease]
        for key in gone:
            del self.keys[key]
        self.revision += bool(gone)

    def call(self, path, request, token):
        with self.lock:
            self.expire()
            if path == "/v3/auth/authenticate":
                return self.authenticate(request)
            if self.password and token not in self.tokens:
                raise Refused(401 if token else 400, 16 if token else 3,
                              "etcdserver: invalid auth token" if token
                              else "etcdserver: user name is empty")
            if self.password and self.tokens[token] != self.users:
                raise Refused(400, 3, "etcdserver: revision of auth store is old")
            calls = {"/v3/lease/grant": self.grant, "/v3/lease/keepalive": self.keepalive,
                     "/v3/lease/revoke": self.revoke, "/v3/kv/range": self.range,
                     "/v3/kv/txn": self.txn}
            if path not in calls:
                raise Refused(404, 5, "Not Found")
            return calls[path](request)

    def authenticate(self, request):
        if not self.password:
            raise Refused(412, 9, "etcdserver: authentication is not enabled")
        if (request.get("name"), request.get("password")) != self.password:
            raise Refused(400, 3, "etcdserver: authentication failed, invalid user ID or password")
        self.logins += 1
        token = "token.%d" % self.logins
        self.tokens[token] = self.users
        return {"header": self.header(), "token": token}

    def grant(self, request):
        self.next_lease += 1
        ttl = max(LEAST_TTL_S, int(request["TTL"]))
        self.leases[self.next_lease] = (ttl, time.monotonic() + ttl)
        return {"header": self.header(), "ID": str(self.next_lease), "TTL": str(ttl)}

    def keepalive(self, request):
        lease = int(request["ID"])
        result = {"header": self.header(), "ID": str(lease)}
        if lease in self.leases:
            ttl = self.leases[lease][0]
            self.leases[lease] = (ttl, time.monotonic() + ttl)
            result["TTL"] = str(ttl)
        return {"result": result}

    def revoke(self, request):
        if int(request["ID"]) not in self.leases:
            raise Refused(404, 5, "etcdserver: requested lease not found")
        self.drop(int(request["ID"]))
        return {"header": self.header()}

    def range(self, request):
        begin, end = request["key"], request.get("range_end")
        begin, end = base64.b64decode(begin), base64.b64decode(end) if end else None
        found = [self.item(key) for key in sorted(self.keys)
                 if (begin <= key < end if end else key == begin)]
        answer = {"header": self.header()}
        if found:
            answer.update(kvs=found, count=str(len(found)))
        return answer

    def item(self, key):
        item = self.keys[key]
        out = {"key": base64.b64encode(key).decode(), "create_revision": str(item["create"]),
               "mod_revision": str(item["mod"]), "version": str(item["version"])}
        if item["value"]:
            out["value"] = base64.b64encode(item["value"]).decode()
        if item["lease"]:
            out["lease"] = str(item["lease"])
        return out

    def holds(self, compare):
        if compare.get("target") != "MOD" or compare.get("result") != "EQUAL":
            raise Refused(400, 3, "the stand-in compares MOD, EQUAL")
        item = self.keys.get(base64.b64decode(compare["key"]))
        return (item["mod"] if item else 0) == int(compare["mod_revision"])

    def txn(self, request):
        puts = [operation["request_put"] for operation in request.get("success", [])]
        if not all(self.holds(compare) for compare in request.get("compare", [])):
            return {"header": self.header()}
        for put in puts:
            if int(put.get("lease", 0)) and int(put["lease"]) not in self.leases:
                raise Refused(404, 5, "etcdserver: requested lease not found")
        self.revision += 1
        for put in puts:
            self.put(put)
        return {"header": self.header(), "succeeded": True,
                "responses": [{"response_put": {"header": {"revision": str(self.revision)}}}
                              for _ in puts]}

    def put(self, put):
        key = base64.b64decode(put["key"])
        before = self.keys.get(key, {"create": self.revision, "version": 0})
        self.keys[key] = {"value": base64.b64decode(put.get("value", "")),
                          "lease": int(put.get("lease", 0)), "create": before["create"],
                          "mod": self.revision, "version": before["version"] + 1}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        fake = self.server.fake
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fake.passes.wait()
        try:
            answer, status = fake.store.call(self.path, json.loads(body),
                                             self.headers.get("Authorization")), 200
        except Refused as problem:
            answer = {"error": str(problem), "code": problem.code, "message": str(problem)}
            status = problem.status
        said = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        pass  # the agent was killed in the midst of an answer


class Fake:
    """The stand-in on a port of its own. stop() and cont() as of a process."""

    def __init__(self):
        self.store, self.passes = Store(), threading.Event()
        self.passes.set()
        self.port = free_port()
        self.url = "http://127.0.0.1:%d" % self.port
        self.server, self.tls = None, None

    def start(self):
        self.server = Server(("127.0.0.1", self.port), Handler)
        if self.tls:
            self.server.socket = self.tls.wrap_socket(self.server.socket, server_side=True)
        self.server.fake = self
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def kill(self):
        """What it holds stays, as of one that syncs."""
        if self.server:
            self.passes.set()
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def change_users(self):
        """From here on no token is good that was had before, as with etcd's signed ones."""
        self.store.users += 1

    def stop(self):
        self.passes.clear()

    def cont(self):
        self.passes.set()

    def remove(self):
        self.kill()


class Real:
    """A member of Debian's etcd, alone, with a short election so that leases may be short."""

    def __init__(self, signed=False):
        """signed: its tokens hold as long as no user changes; else as long as it runs."""
        self.port, self.peer = free_port(), free_port()
        self.url = "http://127.0.0.1:%d" % self.port
        self.folder, self.process = tempfile.mkdtemp(prefix="rollcall-etcd-"), None
        self.more = ["--auth-token", self.sign()] if signed else []

    def sign(self):
        private, public = (os.path.join(self.folder, end) for end in ("private", "public"))
        for command in (["genrsa", "-out", private, "2048"], ["rsa", "-in", private, "-pubout", "-out", public]):
            subprocess.run(["openssl"] + command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return "jwt,pub-key=%s,priv-key=%s,sign-method=RS256" % (public, private)

    def change_users(self):
        status, answer = call(self, "/v3/auth/authenticate", {"name": USER, "password": PASSWORD})
        status, answer = call(self, "/v3/auth/user/add", {"name": "u%d" % free_port(), "password": "-"},
                              answer.get("token"))
        if status != 200:
            raise AssertionError("user/add: %s" % answer)

    def start(self):
        peer = "http://127.0.0.1:%d" % self.peer
        command = ["etcd", "--name", "one", "--data-dir", os.path.join(self.folder, "data"),
                   "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                   "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                   "--initial-cluster", "one=" + peer, "--heartbeat-interval", "50",
                   "--election-timeout", "500", *self.more]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            env={**os.environ, "ETCD_UNSUPPORTED_ARCH": ""})
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                call(self, "/v3/kv/range", {"key": text_of("/")})
                return
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
        raise OSError("etcd does not start: see %s" % self.folder)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.process.send_signal(19)

    def cont(self):
        self.process.send_signal(18)

    def remove(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def installed():
    return shutil.which("etcd") is not None


def call(member, path, request, token=None):
    """Status and answer."""
    link = http.client.HTTPConnection("127.0.0.1", member.port, timeout=CALL_S)
    try:
        headers = {"Authorization": token} if token else {}
        link.request("POST", path, json.dumps(request), headers)
        said = link.getresponse()
        return said.status, json.loads(said.read())
    finally:
        link.close()


# ---- the comparison ----

class Script:
    """Calls one after another; what they say with what differs by nature replaced."""

    def __init__(self, member):
        self.member, self.said, self.names = member, [], {}

    def ask(self, path, request, token=None):
        status, answer = call(self.member, path, request, token)
        self.said.append((path, status, self.plain(answer)))
        return answer

    def plain(self, answer, key=""):
        """Leases, revisions and tokens by the order in which they come; members are left out."""
        if isinstance(answer, dict):
            return {name: self.plain(value, name) for name, value in answer.items()
                    if name not in ("cluster_id", "member_id", "raft_term", "responses", "details",
                                    "version", "create_revision")}
        if isinstance(answer, list):
            return [self.plain(value) for value in answer]
        if key in ("ID", "lease", "revision", "mod_revision", "token"):
            kind = "revision" if key.endswith("revision") else "lease" if key != "token" else key
            return self.names.setdefault((kind, answer), "%s %d" % (kind, len(self.names)))
        return answer

    def txn(self, key, revision, value, lease=0, token=None):
        return self.ask("/v3/kv/txn", {
            "compare": [{"key": text_of(key), "target": "MOD", "result": "EQUAL",
                         "mod_revision": str(revision)}],
            "success": [{"request_put": {"key": text_of(key), "value": text_of(value),
                                         "lease": str(lease)}}]}, token)

    def range(self, token=None):
        return self.ask("/v3/kv/range", {"key": text_of("/rollcall/g/"),
                                         "range_end": text_of("/rollcall/g0")}, token)


def keys(script):
    """Leases, ranges and transactions: what holds and what does not."""
    lease = script.ask("/v3/lease/grant", {"TTL": "20"})["ID"]
    script.ask("/v3/lease/keepalive", {"ID": lease})
    script.ask("/v3/lease/keepalive", {"ID": "4711"})
    script.range()
    script.txn("/rollcall/g/state", 5, "none")
    script.txn("/rollcall/g/state", 0, "epoch 1")
    script.txn("/rollcall/g/state", 0, "epoch 2")
    script.txn("/rollcall/g/alive", 0, "a", lease)
    script.txn("/rollcall/h/alive", 0, "a", lease)
    found = script.range()
    script.txn("/rollcall/g/state", found["kvs"][1]["mod_revision"], "epoch 3")
    script.txn("/rollcall/g/alive", 0, "b", 4711)
    script.txn("/rollcall/g/other", 0, "b", 4711)
    script.range()
    script.ask("/v3/lease/revoke", {"ID": lease})
    script.ask("/v3/lease/revoke", {"ID": lease})
    script.range()


def ended(script):
    """A lease that ends takes its keys."""
    lease = script.ask("/v3/lease/grant", {"TTL": "1"})["ID"]
    script.txn("/rollcall/g/alive", 0, "a", lease)
    until = time.monotonic() + CALL_S
    while "kvs" in call(script.member, "/v3/kv/range", {"key": text_of("/rollcall/g/alive")})[1]:
        if time.monotonic() > until:
            raise AssertionError("a lease of 1 s does not end")
        time.sleep(0.02)
    script.ask("/v3/lease/keepalive", {"ID": lease})


def login(script):
    script.ask("/v3/auth/authenticate", {"name": USER, "password": PASSWORD})
    require_login(script.member)
    script.range()
    script.range("no token")
    script.ask("/v3/auth/authenticate", {"name": USER, "password": "wrong"})
    token = script.ask("/v3/auth/authenticate", {"name": USER, "password": PASSWORD})["token"]
    script.range(token)
    script.txn("/rollcall/g/state", 0, "epoch 1", 0, token)


def users(script):
    """A signed token is old as soon as a user changes."""
    require_login(script.member)
    name = {"name": USER, "password": PASSWORD}
    token = script.ask("/v3/auth/authenticate", name)["token"]
    script.range(token)
    script.member.change_users()
    script.range(token)
    script.txn("/rollcall/g/state", 0, "epoch 1", 0, token)
    token = script.ask("/v3/auth/authenticate", name)["token"]
    script.txn("/rollcall/g/state", 0, "epoch 1", 0, token)


def require_login(member):
    """From here on who asks must have logged in."""
    if isinstance(member, Fake):
        member.store.password = (USER, PASSWORD)
        return
    for path, request in (("user/add", {"name": USER, "password": PASSWORD}),
                          ("role/add", {"name": "root"}),
                          ("user/grant", {"user": USER, "role": "root"}), ("enable", {})):
        status, answer = call(member, "/v3/auth/" + path, request)
        if status != 200:
            raise AssertionError("auth/%s: %s" % (path, answer))


def record(kind, part):
    member = kind() if kind is Fake or part is not users else Real(signed=True)
    try:
        member.start()
        script = Script(member)
        part(script)
        return script.said
    finally:
        member.remove()


def compare():
    for part in (keys, ended, login, users):
        if part is users and shutil.which("openssl") is None:
            print("users: skipped: openssl is not installed")
            continue
        fake, real = record(Fake, part), record(Real, part)
        for number, (one, other) in enumerate(zip(fake, real), 1):
            if one != other:
                print("%s, call %d:\nthe stand-in %s\netcd         %s" % (part.__name__, number, one,
                                                                         other))
                return 1
        print("%s: %d calls, the same answers" % (part.__name__, len(fake)))
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    if given.serve:
        fake = Fake()
        fake.start()
        print(fake.url, flush=True)
        threading.Event().wait()
    if not installed():
        print("SKIP: etcd is not installed (Debian: etcd-server)")
        return 77
    return compare()


if __name__ == "__main__":
    sys.exit(main())
