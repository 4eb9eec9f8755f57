#!/usr/bin/env python3
"""What Prometheus' promtool says of /metrics: nothing. $ROLLCALLD names the daemon.

Exit 77: promtool (Debian: prometheus) is missing.
"""
import shutil
import subprocess
import sys

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
        here = site.Site(data=data)
        here.incr("feed", range(1, 1000))
        text = here.text("/metrics")
        here.end()
        code, said = check(text)
        assert code == 0 and said == "", said
        # it does look
        assert check(text.replace("# HELP rollcall_records ", "# HELP rollcall_other "))[0] != 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
