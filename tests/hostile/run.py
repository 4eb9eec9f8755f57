#!/usr/bin/env python3
"""What servers of this protocol fell over in the past, sent to a daemon of this run's own.

Each test is named after one such mistake. After each the daemon still answers, its log has no
sanitizer's report, its descriptors and its resident memory are what they were before the first
test, and a good client, which asks all the time in all dialects, got the right answer each time.

    run.py [--list] [NAME…]      default: all tests; $ROLLCALLD names the daemon.

ROLLCALL_TEST_SCALE: repetitions in per cent, of what is repeated many times.
"""
import argparse
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import doors  # noqa: E402
import malformed  # noqa: E402
import streams  # noqa: E402
import writeback  # noqa: E402
from target import Folder, Target  # noqa: E402
from wire import Peer, protocol  # noqa: E402

# How each daemon is started, and what is tried on it.
GROUPS = (
    ({}, malformed.TESTS + streams.TESTS + writeback.TESTS),
    ({"arguments": ("-c", "%d" % doors.FEW)}, doors.FEW_TESTS),
    ({"descriptors": doors.DESCRIPTORS}, doors.LIMITED_TESTS),
    ({"arguments": ("--set", "request-timeout=1")}, doors.IMPATIENT_TESTS),
    ({"data": True}, streams.DATA_TESTS + writeback.TESTS),
    ({"users": True}, doors.AUTH_TESTS),
    ({"own_socket": True}, doors.PROCESS_TESTS),
)


def name_of(test):
    return test.__name__[len("test_") :]


def run_one(target, test):
    """Whether it went well."""
    began = time.monotonic()
    try:
        test(target)
        target.settle()
    except (protocol.Mismatch, OSError) as problem:
        try:
            target.check_alive()
        except protocol.Mismatch as ended:
            problem = "%s\n  %s" % (problem, ended)
        print("FAIL %s\n  %s" % (name_of(test), problem))
        for peer in list(Peer.open_peers):
            peer.close()
        return False
    print("ok   %s (%.1f s, %+d KiB)" % (name_of(test), time.monotonic() - began,
                                         (target.resident() - target.base) >> 10))
    return True


def run_group(folder, how, tests):
    """passed, failed"""
    passed = failed = 0
    try:
        target = Target(folder, **how)
    except protocol.Mismatch as problem:
        print("FAIL the start of the daemon\n  %s" % problem)
        return 0, 1
    try:
        for test in tests:
            well = run_one(target, test)
            passed, failed = passed + well, failed + (not well)
            sys.stdout.flush()
            if target.process.poll() is not None:
                break
        problem = target.end()
    except BaseException:
        target.kill()
        raise
    if problem:
        print("FAIL the end of the daemon\n  " + problem)
        failed += 1
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description="Hostile clients; see the top of this file.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--list", action="store_true", help="the names of the tests")
    options = parser.parse_args()
    passed = failed = 0
    folder = Folder()
    try:
        for how, tests in GROUPS:
            tests = [test for test in tests if not options.names or name_of(test) in options.names]
            if options.list:
                print("\n".join(name_of(test) for test in tests))
            elif tests:
                well, badly = run_group(folder, how, tests)
                passed, failed = passed + well, failed + badly
    finally:
        folder.remove()
    if not options.list:
        print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or (options.names and not passed) else 0


if __name__ == "__main__":
    sys.exit(main())
