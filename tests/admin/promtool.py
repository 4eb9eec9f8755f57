#!/usr/bin/env python3
"""What Prometheus' promtool says of /metrics: nothing. $ROLLCALLD names the daemon.

Exit 77: promtool (Debian: prometheus) is missing.
"""
import shutil
import subprocess
import sys
import time

import admin_site as site


def check(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode()


def main():
    if shutil.which("promtool") is None:
        print("SKIP: no promtool; apt-get install prometheus")
        return site.SKIPPED
    for data in (False, True):
        here = site.Site(site.CONFIG + ("replication: {name: one}\n" if data else ""), data=data)
        here.incr("feed", range(1, 1000))
        until = time.monotonic() + site.ANSWER_S
        while "rollcall_slot_width{" not in (text := here.text("/metrics")):  # the survey has looked
            assert time.monotonic() < until, text
        here.end()
        code, said = check(text)
        assert code == 0 and said == "", said
        # it does look
        assert check(text.replace("# HELP rollcall_records ", "# HELP rollcall_other "))[0] != 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
