#!/usr/bin/env python3
"""What an operator says to an agent, and hears: status, --init, --force, the program it runs, mistakes,
a login and TLS to etcd, several endpoints of which one is gone or hangs.

    tests/repl/agent.py [--directory DIR]

$ROLLCALLD names the daemon, $ROLLCALL_BUILD the folder of the build.
"""
import argparse
import base64
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import agents  # noqa: E402
import door  # noqa: E402
import etcd  # noqa: E402
import pair  # noqa: E402
from victim import Failure  # noqa: E402

INCR = b"incr feed:1001.like 1"
DONE, NEGATIVE, USAGE, NO_ANSWER, REFUSED = 0, 1, 2, 3, 4


def expect(done, code, *words):
    if done.returncode != code or not all(word in done.stdout for word in words):
        raise Failure("%s ends with %d, not %d, and says %r, not %s" % (
            done.args, done.returncode, code, done.stdout, words))


def leads(node, waits_for="none"):
    def holds():
        found = node.stats()
        return found.get("state") == "leader" and found["waits_for"] == waits_for
    pair.wait_for(lambda: "%s does not lead: %s" % (node.name, node.stats()), holds)


class Group:
    """Two daemons, whose agents take more words than those of agents.py."""

    def __init__(self, directory, member, *more):
        self.directory, self.member, self.nodes, self.agents = directory, member, [], []
        for name in ("node-0", "node-1"):
            node = pair.Node(directory, name)
            node.configure(agent=True)
            node.start()
            self.nodes.append(node)
            self.agents.append(agents.Agent(node, member, *more))

    def end(self):
        for node, agent in zip(self.nodes, self.agents):
            agent.kill()
            agent.end_links()
            if node.process.poll() is None:
                node.kill()
            node.folder.remove()
        self.member.remove()


def shows(agent, *words):
    """A node tells of itself once a round: its status has the words soon."""
    pair.wait_for(lambda: "status without %s: %s" % (words, agent.run("status").stdout),
                  lambda: all(word in agent.run("status").stdout for word in words))


def words(group):
    """From nothing to a group of two; what is refused, and why."""
    one, two = group.agents
    expect(one.run("status"), NEGATIVE, "group rollcall was never begun", "--init")
    expect(one.run("--force", "--etcd", "here"), USAGE, "--etcd", "http://HOST:PORT")
    expect(one.run("--etcd-auth", "/none", "status"), USAGE, "/none: No such file")
    expect(one.run("stop"), USAGE, "what is \"stop\"?")
    expect(one.run("--address", "x", "--ttl", "1s"), USAGE, "--address HOST:PORT is missing")
    expect(one.run("-s", "http://127.0.0.1:1", "status"), USAGE, "status page")
    expect(one.run("-s", "127.0.0.1:%d" % pair.free_port(), "--init"), NO_ANSWER, "cannot connect")
    expect(one.run("--etcd", "http://127.0.0.1:%d" % pair.free_port(), "--init"), NO_ANSWER, "etcd: ")
    expect(one.run("--init"), DONE, "node-0 is to lead group rollcall")
    expect(two.run("--init"), REFUSED, "has begun already", "node-0")
    expect(one.run("status"), NEGATIVE, "node-0 led last, nobody does now")
    one.start()
    leads(group.nodes[0])
    shows(one, " leads\n")
    expect(one.run("status"), DONE, "epoch 1: node-0 leads", "nobody else may take over", " leads\n")
    expect(one.run("--group", "rollcall", "-s", "/none", "status"), DONE, "epoch 1: node-0 leads")
    expect(one.run("--force"), REFUSED, "node-0 leads group rollcall now")
    two.start()
    leads(group.nodes[0], "node-1")
    shows(one, "sync follower\n")
    expect(one.run("status"), DONE, "its sync follower may take over", "sync follower\n")


def alive(member):
    """The lease of who leads; None: nobody does."""
    found = etcd.call(member, "/v3/kv/range", {"key": etcd.text_of("/rollcall/rollcall/alive")})[1]
    return found["kvs"][0]["lease"] if "kvs" in found else None


def adopt(group):
    """An agent that is killed, or ended, and started again goes on with the lease: nothing happens to the shard."""
    agent, lease = group.agents[0], alive(group.member)
    for end in (agent.kill, agent.stop):
        end()
        agent.start()
        goes_on(group, "its agent is started again", agents.TTL_S)
        if alive(group.member) != lease:
            raise Failure("the lease is another one:\n" + agent.output())


def apart(agent, said):
    """It takes no part, and says why, once."""
    pair.wait_for(lambda: "no word of %r:\n%s" % (said, agent.output()), lambda: said in agent.output())
    time.sleep(agents.TTL_S)
    if agent.output().count("warning") != 1 or "state is now" in agent.output():
        raise Failure("it takes part:\n" + agent.output())


def namesake(group):
    """A copy of the leader's machine, its address too, takes no part until the first one's lease has ended."""
    first = group.agents[0]
    other = pair.Node(group.directory, "node-0")
    group.nodes[0].process.send_signal(signal.SIGSTOP)
    copy_data(group.nodes[0].folder.data, other.folder.data)
    group.nodes[0].process.send_signal(signal.SIGCONT)
    agent = agents.Agent(other, group.member)
    agent.address = first.address
    other.configure(agent=True)
    other.start()
    agent.start()
    said = "there is a node node-0 already, at %s: another daemon" % first.address
    try:
        apart(agent, said)
        for word in ("--force", "--init"):
            expect(agent.run(word), REFUSED, said)
        goes_on(group, "another node has its name", 0)
        if other.stats()["leader"] != "none":
            raise Failure("the second node-0 follows:\n" + agent.output())
        shows(first, first.address)
    finally:
        agent.kill()
        agent.end_links()
        other.kill()
        other.folder.remove()


def copy_data(source, target):
    owner = os.stat(target)
    for name in os.listdir(source):
        path = os.path.join(target, name)
        shutil.copy(os.path.join(source, name), path)
        os.chown(path, owner.st_uid, owner.st_gid)


def double(group):
    """A second agent beside one daemon takes no part until the first has ended, and then goes on with its lease."""
    first = group.agents[0]
    takes_over(group, first, "beside this daemon runs another agent already, pid %d" % first.process.pid)
    contained = ["unshare", "--pid", "--fork", "--kill-child"]  # where pids are others
    if subprocess.run(contained + ["true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("double: of another container: skipped: no namespace can be made")
        return
    takes_over(group, first, "beside this daemon runs another agent already, pid 0", contained)


def takes_over(group, first, said, around=()):
    second, lease = agents.Agent(group.nodes[0], group.member), alive(group.member)
    second.address, second.around = first.address, list(around)
    second.log = "agent-log-%d" % len(around)
    second.start()
    try:
        apart(second, said)
        first.kill()
        goes_on(group, "another agent takes over", agents.TTL_S)
        if alive(group.member) != lease:
            raise Failure("the lease is another one:\n" + second.output())
    finally:
        second.kill()
        second.end_links()
    first.start()
    goes_on(group, "its agent is started again", 0)


def elsewhere(group):
    """An agent that may run where this one cannot see it: its lease must end first."""
    agent, member = group.agents[0], group.member
    group.agents[1].kill()  # or it would take over
    agent.kill()
    key = etcd.text_of("/rollcall/rollcall/node/node-0")
    item = etcd.call(member, "/v3/kv/range", {"key": key})[1]["kvs"][0]
    value = base64.b64decode(item["value"]).decode().rsplit(" ", 1)[0] + " 1"
    put = {"key": key, "value": etcd.text_of(value), "lease": item["lease"]}
    etcd.call(member, "/v3/kv/txn", {"compare": [], "success": [{"request_put": put}]})
    agent.log = "agent-log-elsewhere"
    agent.start()
    pair.wait_for(lambda: "it is not said:\n" + agent.output(), lambda: "of another container" in agent.output())
    pair.wait_for("another lease", lambda: alive(member) not in (None, item["lease"]))
    group.agents[1].start()
    goes_on(group, "an agent elsewhere has ended", 0)
    if agent.output().count("warning") != 1:
        raise Failure("it is said again:\n" + agent.output())
    shows(agent, "sync follower\n")


def force(group):
    """Nobody who may lead is left; the other one does all the same, and says what is lost."""
    one, two = group.nodes
    group.agents[1].kill()
    two.kill()
    leads(one)  # alone
    said = one.ask(b"set feed:1001.like 0 0 1\r\n1")
    if said != b"STORED\r\n":
        raise Failure("a leader alone says %r" % said)
    group.agents[0].kill()
    one.kill()
    two.start()
    group.agents[1].start()
    pair.wait_for("a lease that ends", lambda: "nobody does now" in group.agents[1].run("status").stdout)
    if not two.ask(INCR).startswith(b"SERVER_ERROR not the leader"):
        raise Failure("it leads without all that was answered")
    expect(group.agents[1].run("--force"), DONE, "what node-0 answered in epoch 1 and is not here is lost",
           "node-1 is to lead group rollcall")
    leads(two)
    one.start()
    group.agents[0].start()
    leads(two, "node-0")
    pair.level(two, one)
    if one.export("feed") != two.export("feed"):
        raise Failure("exports differ")


def hook(group):
    """The program of --on-change runs when another node leads, with who that is."""
    one, two = group.agents
    path = os.path.join(one.node.folder.path, "changed")
    script = path + ".sh"
    with open(script, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\necho \"$@\" >>%s\n" % path)
    os.chmod(script, 0o755)
    command = one.command("--on-change", script)
    one.kill()
    with open(one.log_path(), "ab") as log:
        one.process = subprocess.Popen(command, stdout=log, stderr=log)

    def told(line):
        pair.wait_for(lambda: "%r is not told" % line,
                      lambda: os.path.exists(path) and line in open(path, encoding="ascii").read())
    told("follower node-1 127.0.0.1:%d 2 rollcall\n" % two.to_node.port)
    two.kill()
    two.node.kill()
    told("leader node-0 127.0.0.1:%d 3 rollcall\n" % one.to_node.port)
    two.node.start()
    two.start()
    leads(group.nodes[0], "node-1")


def endpoints(group):
    """One that is not there, one that hangs, and one that answers; then the daemon leads on by it."""
    one = group.agents[0]
    hanging = etcd.Fake()
    hanging.start()
    hanging.stop()
    one.kill()
    urls = ["http://127.0.0.1:%d" % pair.free_port(), hanging.url, "http://127.0.0.1:%d/" % one.to_etcd.port]
    with open(one.log_path(), "ab") as log:
        one.process = subprocess.Popen(one.command("--etcd", ",".join(urls)), stdout=log, stderr=log)
    epoch = group.nodes[0].stats()["epoch"]
    for _ in range(3):
        leads(group.nodes[0], "node-1")
        until = group.nodes[0].stats()["written"]
        if not group.nodes[0].ask(INCR)[:1].isdigit():
            raise Failure("it does not lead on at %s" % until)
    if group.nodes[0].stats()["epoch"] != epoch:
        raise Failure("the reign did not go on")
    hanging.remove()


def secure(directory):
    """etcd asks for a login and speaks TLS; without, or with a wrong one, nothing is known."""
    member = etcd.Fake()
    folder = pair.Folder(directory)
    door.certificate(folder.path, "etcd", "IP:127.0.0.1")
    paths = {end: os.path.join(folder.path, "etcd." + end) for end in ("crt", "key", "user", "wrong")}
    member.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    member.tls.load_cert_chain(paths["crt"], paths["key"])
    member.start()
    etcd.require_login(member)
    for end, line in (("user", "%s:%s\n" % (etcd.USER, etcd.PASSWORD)), ("wrong", "root:no\n")):
        with open(paths[end], "w", encoding="ascii") as file:
            file.write(line)
    tool = [os.path.join(os.environ["ROLLCALL_BUILD"], "rollcall"), "agent", "--group", "g", "--etcd",
            "https://127.0.0.1:%d" % member.port]

    def run(*more):
        return subprocess.run(tool + list(more) + ["status"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
    try:
        expect(run(), NO_ANSWER, "certificate")
        ca = ["--etcd-ca", paths["crt"]]
        expect(run(*ca), REFUSED, "user name is empty")
        expect(run(*ca, "--etcd-auth", paths["wrong"]), REFUSED, "authentication failed")
        expect(run(*ca, "--etcd-auth", paths["user"]), NEGATIVE, "was never begun")
    finally:
        member.remove()
        folder.remove()


def users(directory, member, ttl_s):
    """Users of etcd change, and it is started again: the leader's agent logs in again, the reign goes on."""
    folder = pair.Folder(directory)
    login = os.path.join(folder.path, "login")
    with open(login, "w", encoding="ascii") as file:
        file.write("%s:%s\n" % (etcd.USER, etcd.PASSWORD))
    member.start()
    etcd.require_login(member)
    group = Group(directory, member, "--etcd-auth", login, "--ttl", "%ds" % ttl_s)
    try:
        expect(group.agents[0].run("--init"), DONE, "is to lead")
        for agent in group.agents:
            agent.start()
        leads(group.nodes[0], "node-1")
        member.change_users()
        goes_on(group, "users change", ttl_s)
        member.kill()
        member.start()
        goes_on(group, "etcd is started again", ttl_s)
    finally:
        group.end()
        folder.remove()


def goes_on(group, what, ttl_s):
    """After more than a lease node-0 still leads, in its epoch. (A busy machine may have fenced it for a moment.)"""
    time.sleep(ttl_s + 1)
    pair.wait_for(lambda: "%s, and no change is taken:\n%s" % (what, group.agents[0].output()), lambda: (
        group.nodes[0].ask(b"set feed:1001.like 0 0 1\r\n1") == b"STORED\r\n"))
    if group.nodes[0].stats()["epoch"] != "1":
        raise Failure("%s, and another reign begins:\n%s" % (what, group.agents[0].output()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory")
    options = parser.parse_args()
    member = etcd.Fake()
    member.start()
    group = Group(options.directory, member)
    try:
        for part in (words, adopt, double, elsewhere, namesake, force, hook, endpoints):
            part(group)
            print("%s: passed" % part.__name__, flush=True)
    finally:
        group.end()
    if shutil.which("openssl") is None:
        print("secure: skipped: openssl is not installed")
        return
    secure(options.directory)
    print("secure: passed", flush=True)
    users(options.directory, etcd.Fake(), agents.TTL_S)
    print("users: passed", flush=True)
    if not etcd.installed():
        print("users of the real etcd: skipped: etcd is not installed (Debian: etcd-server)")
        return
    users(options.directory, etcd.Real(signed=True), 3 * agents.TTL_S)  # a login costs it 0.1 s of a core
    print("users of the real etcd: passed")


if __name__ == "__main__":
    try:
        main()
    except Failure as problem:
        print("FAILED: %s" % problem)
        sys.exit(1)
