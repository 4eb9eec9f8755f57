#!/usr/bin/env python3
"""The daemon under TLS: -Z and memcached's ssl_ names, against Python's ssl.

Certificates are made by the openssl tool, anew each time. Exit 77: it, or TLS in the daemon, is
missing. $ROLLCALLD names the daemon.
"""
import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "protocol"))
import run as protocol  # noqa: E402

try:
    import ssl
except ImportError:
    ssl = None

CONFIG = os.path.join(protocol.TOP, "tests", "protocol", "scripts.yaml")
SKIPPED = 77
PROGRAM = os.environ.get("ROLLCALLD", os.path.join(protocol.TOP, "build", "rollcalld"))


def make(folder, name):
    """A certificate that signs itself, and its key, readable by whom the daemon becomes."""
    pair = [os.path.join(folder, name + end) for end in (".crt", ".key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-out", pair[0], "-keyout", pair[1]],
                   check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for path in pair:
        os.chmod(path, 0o644)
    return pair


def put(pair, folder):
    """Makes it what the daemon is told to use."""
    for source, name in zip(pair, ("server.crt", "server.key")):
        shutil.copyfile(source, os.path.join(folder, "new"))
        os.chmod(os.path.join(folder, "new"), 0o644)
        os.replace(os.path.join(folder, "new"), os.path.join(folder, name))


class Client:
    """One connection that believes the certificate `ca` and shows `own`; ssl.SSLError: refused."""

    def __init__(self, address, ca, own=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(ca[0])
        if own:
            context.load_cert_chain(*own)
        plain = socket.create_connection(address, protocol.ANSWER_S)
        try:
            self.socket = context.wrap_socket(plain)
        except BaseException:
            plain.close()
            raise

    def ask(self, line, end=b"\r\n"):
        self.socket.sendall(line + b"\r\n")
        data = b""
        while not data.endswith(end):
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise ConnectionError("the server closed")
            data += piece
        return data

    def close(self):
        self.socket.close()


def refused(address, ca, own=None):
    try:
        client = Client(address, ca, own)
        try:
            client.ask(b"version")
        finally:
            client.close()
    except (ssl.SSLError, ConnectionError):
        return True
    return False


def await_log(daemon, text, times):
    until = time.monotonic() + protocol.START_S
    while daemon.output().count(text) < times:
        assert time.monotonic() < until, "no '%s' in the log:\n%s" % (text, daemon.output())
        time.sleep(protocol.POLL_S)


def plain_stats(address, arguments):
    run = protocol.Run(address, "none", None)
    return run.stats(arguments)


def talk(client):
    assert client.ask(b"delete feed:700.like noreply\r\nincr feed:700.like 7") == b"7\r\n"
    got = client.ask(b"get feed:700.like", b"END\r\n")
    assert got == b"VALUE feed:700.like 0 1\r\n7\r\nEND\r\n", got
    many = b"get" + b" feed:700.like" * 1000
    assert client.ask(many, b"END\r\n").count(b"VALUE ") == 1000


def renewals(daemon, folder, first, second):
    """SIGHUP: with another certificate, then with one that is none."""
    old = Client(daemon.address, first)
    talk(old)
    assert refused(daemon.address, second)
    put(second, folder)
    assert not refused(daemon.address, first)
    daemon.process.send_signal(signal.SIGHUP)
    await_log(daemon, "reload: done", 1)
    assert refused(daemon.address, first)
    new = Client(daemon.address, second)
    talk(new)
    talk(old)
    put((CONFIG, CONFIG), folder)
    daemon.process.send_signal(signal.SIGHUP)
    await_log(daemon, "reload: nothing was changed", 1)
    await_log(daemon, "tls.certificate " + os.path.join(folder, "server.crt"), 1)
    assert not refused(daemon.address, second)
    old.close()
    new.close()


def come_and_go(address, ca):
    """The end of the handshake and the goodbye in one piece: as who only looks whether we are there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(ca[0])
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(come, go)
    with socket.create_connection(address, protocol.ANSWER_S) as plain:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(go.read())
                come.write(plain.recv(1 << 16))
        try:
            tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        plain.sendall(go.read())
        while plain.recv(1 << 16):
            pass


def figures(daemon, address, folder, ca):
    """On the port without TLS."""
    settings = plain_stats(address, b"settings")
    assert settings[b"ssl_enabled"] == b"yes"
    assert settings[b"ssl_chain_cert"] == os.path.join(folder, "server.crt").encode()
    assert settings[b"ssl_key"] == os.path.join(folder, "server.key").encode()
    assert settings[b"ssl_min_version"] == b"tlsv1.2"
    before = int(plain_stats(address, b"")[b"ssl_handshake_errors"])
    with socket.create_connection(daemon.address, protocol.ANSWER_S) as plain:
        plain.sendall(b"version\r\n")
        assert b"VERSION" not in plain.recv(4096)
    until = time.monotonic() + protocol.ANSWER_S
    while int(plain_stats(address, b"")[b"ssl_handshake_errors"]) != before + 1:
        assert time.monotonic() < until, "not counted"
        time.sleep(protocol.POLL_S)
    counted = plain_stats(address, b"")
    come_and_go(daemon.address, ca)
    after = plain_stats(address, b"")
    assert int(after[b"ssl_new_sessions"]) == int(counted[b"ssl_new_sessions"]) + 1, after
    assert after[b"ssl_handshake_errors"] == counted[b"ssl_handshake_errors"], after
    assert int(counted[b"ssl_new_sessions"]) > 0 and counted[b"ssl_proto_errors"] == b"0"
    assert int(counted[b"time_since_server_cert_refresh"]) <= int(counted[b"uptime"])


def serve(folder, arguments):
    files = "ssl_chain_cert=%s/server.crt,ssl_key=%s/server.key" % (folder, folder)
    options = argparse.Namespace(connect=None, config=CONFIG)
    return protocol.Daemon(options, ["-Z", "-o", files] + arguments)


def usual(folder, first, second):
    plain = ("127.0.0.1", protocol.free_port())
    put(first, folder)
    daemon = serve(folder, ["-l", "notls:%s:%d" % plain])
    try:
        renewals(daemon, folder, first, second)
        figures(daemon, plain, folder, second)
    except BaseException:
        daemon.kill()
        raise
    return daemon.stop(False)


def mutual(folder, first, second):
    put(first, folder)
    daemon = serve(folder, ["-o", "ssl_verify_mode=2,ssl_ca_cert=" + second[0]])
    try:
        client = Client(daemon.address, first, second)
        talk(client)
        client.close()
        assert refused(daemon.address, first)
        assert refused(daemon.address, first, first)
    except BaseException:
        daemon.kill()
        raise
    return daemon.stop(False)


def check(*arguments):
    """--check-config: its exit code and what it says."""
    done = subprocess.run([PROGRAM, "--config", CONFIG, "--check-config"] + list(arguments),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def opened(first, second):
    """Who may listen beyond this machine; nothing is opened for it."""
    files = "ssl_chain_cert=%s,ssl_key=%s,ssl_ca_cert=%s," % (first[0], first[1], second[0])
    for mode, address, good in (("2", "0.0.0.0", True), ("3", "0.0.0.0", True),
                                ("1", "0.0.0.0", False), ("2", "notls:0.0.0.0", False)):
        code, said = check("-Z", "-o", files + "ssl_verify_mode=" + mode, "-l", address)
        assert (code == 0) == good, (mode, address, said)
        assert good or "is reached from other machines" in said
    code, said = check("-Z", "-o", "ssl_chain_cert=%s,ssl_key=%s" % (first[0], second[1]))
    assert code != 0 and "tls.key %s: it is not that of the certificate" % second[1] in said, said


def main():
    if ssl is None or not shutil.which("openssl"):
        print("SKIP: Python's ssl or the openssl tool is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        first, second = make(folder, "first"), make(folder, "second")
        _, said = check("-Z", "-o", "ssl_chain_cert=%s,ssl_key=%s" % tuple(first))
        if "built without TLS" in said:
            print("SKIP: the daemon was built without TLS")
            return SKIPPED
        opened(first, second)
        for part in (usual, mutual):
            problem = part(folder, first, second)
            if problem:
                print("FAIL " + problem)
                return 1
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
