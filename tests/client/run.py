#!/usr/bin/env python3
"""Clients nobody here wrote, against a daemon of this run's own.

client (libmemcached, built beside the daemon), client.py (pymemcache), memccapable's version, quit,
verbosity and stat tests, memcstat, and memcached-tool display. What is not installed is skipped by
name. $ROLLCALLD and $ROLLCALL_BUILD name the daemon and the folder of the build.
"""
import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "protocol"))
import run as protocol  # noqa: E402

SECONDS_MAX = 60
MEMCACHED_TOOL = "/usr/share/memcached/scripts/memcached-tool"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
CAPABLE = ("ascii version", "binary quit", "ascii verbosity", "ascii stat")
SKIPPED = 77


def capable_passes(output):
    return "[pass]" in output and "[FAIL]" not in output


def commands(host, port):
    """name, command, whether it is there, what its output must satisfy."""
    build = os.environ.get("ROLLCALL_BUILD", os.path.join(protocol.TOP, "build"))
    client = os.path.join(build, "tests", "client", "client")
    yield "libmemcached", [client, port], os.path.exists(client), lambda out: "0 failures" in out
    script = os.path.join(HERE, "client.py")
    yield "pymemcache", [PYTHON, script, port], True, lambda out: out.strip().endswith("ok")
    for test in CAPABLE:
        command = ["memccapable", "-h", host, "-p", port, "-T", test]
        yield "memccapable " + test, command, shutil.which("memccapable"), capable_passes
    yield ("memcstat", ["memcstat", "--servers=%s:%s" % (host, port)], shutil.which("memcstat"),
           lambda out: "version: 1.6.45" in out and "threads:" in out)
    yield ("memcached-tool", ["perl", MEMCACHED_TOOL, "%s:%s" % (host, port), "display"],
           os.path.exists(MEMCACHED_TOOL), lambda out: "Item_Size" in out and "\n" in out.strip())


def run_one(name, command, good):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False)
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode == SKIPPED:
        print("SKIP: %s: %s" % (name, output.strip()))
        return True
    if done.returncode == 0 and good(output):
        print("ok   " + name)
        return True
    print("FAIL %s (exit %d)\n%s" % (name, done.returncode, output))
    return False


def main():
    config = os.path.join(protocol.TOP, "tests", "protocol", "scripts.yaml")
    options = argparse.Namespace(connect=None, config=config)
    daemon = protocol.Daemon(options, [])
    failed = 0
    try:
        for name, command, there, good in commands(daemon.address[0], str(daemon.address[1])):
            if not there:
                print("SKIP: %s is not installed" % name)
                continue
            failed += not run_one(name, command, good)
    except BaseException:
        daemon.kill()
        raise
    problem = daemon.stop(False)
    if problem:
        print("FAIL " + problem)
    return 1 if failed or problem else 0


if __name__ == "__main__":
    sys.exit(main())
