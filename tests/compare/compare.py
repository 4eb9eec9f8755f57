#!/usr/bin/env python3
"""compare.py: rollcalld, memcached, Redis and a server that does nothing, side by side.

Called by tools/compare, which installs the peers and builds. $ROLLCALL_BUILD is the build's folder. What
is measured is in plan.py, with the goals; how, in works.py (works, memory) and scale.py. Written
into --out: compare.md (tables), compare.svg (bars), compare.json (all runs). Exit 1 if an answer
was wrong or something does not run; a missed goal is told and is no failure.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plan  # noqa: E402
import scale  # noqa: E402
import works  # noqa: E402
from generator import Generator  # noqa: E402
from report import Report  # noqa: E402
from servers import PORT, Failure, Places  # noqa: E402

PARTS = ("work", "memory", "scale")
MILLION = 1000000
FULL = {"rounds": 5, "seconds": 3, "small": MILLION, "large": 10 * MILLION,
        "memory": (MILLION, 5 * MILLION), "capacity": 4 * MILLION,
        "connections": (1, 50, 1000, 10000),
        "populations": (MILLION, 10 * MILLION, 100 * MILLION)}
QUICK = {"rounds": 1, "seconds": 1, "small": 100000, "large": MILLION, "memory": (100000,),
         "capacity": 500000, "connections": (1, 50, 1000), "populations": (100000, MILLION)}


def say(text):
    print(text, flush=True)


def names(choices):
    """The type of an option that takes some of `choices`, with commas."""
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in choices:
                raise argparse.ArgumentTypeError("%r is none of %s" % (name, ", ".join(choices)))
        return chosen
    return parse


def peer(text):
    """NAME=COMMAND of --peer: the name and the command's words."""
    name, _, command = text.partition("=")
    words = shlex.split(command)
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,15}", name) or any(server == name for server, _ in plan.LOADS):
        raise argparse.ArgumentTypeError("%r: a name is 1 to 16 of a-z, 0-9, -, and no other server's" % name)
    if not words or not any(PORT in word for word in words):
        raise argparse.ArgumentTypeError("%r: the command must say %s, where it is to listen" % (
            command, PORT))
    return name, words


def arguments():
    parser = argparse.ArgumentParser(
        prog="tools/compare", description="rollcalld, memcached and Redis side by side, on this "
        "machine: the server on one core, the load generator on another.")
    add = parser.add_argument
    work_names = [work.name for work in plan.WORKS]
    add("--out", default="compare", help="folder for compare.md, .svg and .json (compare)")
    add("--quick", action="store_true", help="a smoke run: few ids, one round of a second")
    add("--rounds", type=int, help="of each way (5)")
    add("--seconds", type=int, help="of each run (3)")
    add("--parts", type=names(PARTS), default=["work", "memory"],
        help="of %s (work,memory)" % ",".join(PARTS))
    add("--scale", action="store_true", help="the part scale too: workers, connections, ids, idle")
    add("--works", type=names(work_names), default=work_names,
        help="of %s (all)" % ",".join(work_names))
    add("--scale-parts", type=names(scale.PARTS), default=list(scale.PARTS),
        help="of %s (all)" % ",".join(scale.PARTS))
    add("--shape", choices=list(plan.SPACING), default="seconds",
        help="of ids: dense or seconds << 22 (seconds)")
    add("--peer", type=peer, action="append", default=[], metavar="NAME=COMMAND",
        help="one more server in the works: it listens on 127.0.0.1:{port} and takes memcached's text "
        "commands, such as 'mine=/opt/mine -p {port}'; may be given again")
    options = parser.parse_args()
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    if min(options.rounds, options.seconds) < 1:
        parser.error("--rounds and --seconds are 1 at least")
    if options.scale and "scale" not in options.parts:
        options.parts.append("scale")
    return options


def run_works(fleet, report, options):
    sizes = {plan.SMALL: options.small, plan.LARGE: options.large}
    try:
        for work in plan.WORKS:
            if work.name not in options.works:
                continue
            say("%s:" % work.title)
            report.add_work(work, *works.run_work(work, fleet, sizes, options, say))
    finally:
        fleet.keep(())


def run_parts(places, report, options, cores):
    generator = Generator(places.load, [cores[0]], options.shape, plan.PER_SECOND)
    spacing = plan.SPACING[options.shape]
    fleet = works.Fleet(places, generator, spacing, cores[-1])
    try:
        if "work" in options.parts:
            run_works(fleet, report, options)
        if "memory" in options.parts:
            skipped = []
            report.add_memory(works.memory(fleet, options.memory, options.capacity, say, skipped),
                              skipped)
        if "scale" in options.parts:
            for part in scale.run(places, generator, spacing, cores, options.small, options, say):
                report.add_scale(part)
    finally:
        report.wrong += generator.wrong


def write(folder, report):
    os.makedirs(folder, exist_ok=True)
    texts = {"compare.md": "\n".join(report.sections), "compare.svg": report.chart(),
             "compare.json": json.dumps(report.raw(), indent=1) + "\n"}
    for name, text in texts.items():
        if text is not None:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
    say("written: %s" % ", ".join(os.path.join(folder, name) for name, text in texts.items()
                                  if text is not None))


def main():
    options = arguments()
    for name, _ in options.peer:
        plan.WORKS, plan.GOALS = plan.with_peer(plan.WORKS, plan.GOALS, name)
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("tools/compare: needs two cores: one for the server, one for the load generator")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="rollcall-compare-")
    os.chmod(folder, 0o711)  # daemons that are not root read their configuration there
    places = Places(os.environ["ROLLCALL_BUILD"], folder, options.peer)
    report = Report(options, places.versions(), cores)
    failed = False
    try:
        run_parts(places, report, options, cores)
    except (Failure, OSError, subprocess.SubprocessError) as problem:
        say("FAIL: %s" % problem)
        failed = True
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.finish()
    write(options.out, report)
    return 1 if failed or report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
