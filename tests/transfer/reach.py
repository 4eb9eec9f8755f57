#!/usr/bin/env python3
"""The tool reaches a daemon that wants TLS and a user: load, export, backup and the online verbs alike.

    tests/transfer/reach.py

Certificates are made by the openssl tool, anew each time. Exit 77: it, or TLS in the daemon, is
missing. $ROLLCALLD and $ROLLCALL name the programs.
"""
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from load import SECONDS_MAX, Case, Failure, Served, protocol  # noqa: E402

SKIPPED = 77
NO_ANSWER, REFUSED = 3, 4
ROWS = 20000
TLS = """tls: {enabled: yes, certificate: %(folder)s/daemon.crt, key: %(folder)s/daemon.key, ca: %(folder)s/us.crt,
      verify: %(verify)s}
auth-file: %(folder)s/users
"""


class Reach(Case):
    def certificate(self, name):
        paths = [self.path(name + end) for end in (".crt", ".key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                        "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]],
                       check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for path in paths:
            os.chmod(path, 0o644)

    def ask(self, verb, *arguments, status=0, says=""):
        """Over TCP; what it says must be there"""
        program = os.environ.get("ROLLCALL", os.path.join(protocol.TOP, "build", "rollcall"))
        done = subprocess.run([program, verb, "--server", "127.0.0.1:%d" % self.daemon.address[1],
                               *arguments], capture_output=True, text=True, timeout=SECONDS_MAX,
                              check=False, stdin=subprocess.DEVNULL)
        if done.returncode != status or says not in done.stdout + done.stderr:
            raise Failure("%s %s ended with %d, not %d, and said:\n%s" % (
                verb, " ".join(arguments), done.returncode, status, done.stderr + done.stdout))
        return done.stdout

    def start(self):
        """It says when it listens: who would ask has to log in."""
        self.daemon = Served(self.folder, self.server)
        until = time.monotonic() + SECONDS_MAX
        while "listening on" not in self.daemon.output():
            if time.monotonic() > until or not self.daemon.alive():
                raise Failure("it does not listen")
            time.sleep(protocol.POLL_S)

    def configure(self, verify):
        with open(self.folder.config, encoding="ascii") as file:
            config = file.read()
        with open(self.folder.config, "w", encoding="ascii") as file:
            file.write(TLS % {"folder": self.folder.path, "verify": verify} +
                       config[config.index("threads:"):])

    def verbs(self, reach):
        rows = self.write("rows.csv", "id,repost,comment,like,read\n" +
                          "".join("%d,%d,2,,4\n" % (i, i % 9) for i in range(ROWS)))
        self.ask("load", *reach, "-q", "feed", rows)
        self.same(self.ask("export", *reach, "-q", "-f", "tsv", "feed").replace("\t", ","),
                  open(rows, encoding="ascii").read())
        self.ask("load", *reach, "-q", "-m", "max", "feed", rows)
        self.ask("backup", *reach, "-q", self.path("backup" + str(len(reach))))
        for verb in (["status"], ["tables"], ["get", "feed:3"], ["status", "--json"]):
            self.ask(*verb, *reach)

    def refusals(self, tls, login):
        for verb, lost in ((["status"], NO_ANSWER), (["export", "feed"], NO_ANSWER),
                           (["load", "feed", "-f", "csv"], NO_ANSWER)):
            self.ask(*verb, *login, "--timeout", "5", status=lost, says="(--tls)")
            self.ask(*verb, *login, "--tls", status=lost, says="its certificate is refused")
            self.ask(*verb, *login, "--tls", "--tls-ca", self.path("us.crt"), status=lost,
                     says="its certificate is refused")
            self.ask(*verb, *login, "--tls-ca", self.path("daemon.crt"), status=2,
                     says="need --tls")
            self.ask(*verb, *tls, status=REFUSED, says="give --auth-file")
            self.ask(*verb, *tls, "--auth-file", self.path("wrong"), status=REFUSED,
                     says="refuses the user of")
            self.ask(*verb, *tls, "--auth-file", self.path("nothing"), status=2,
                     says="No such file or directory")

    def begin(self):
        for name in ("daemon", "us"):
            self.certificate(name)
        self.write("users", "me:sesame\n")
        os.chmod(self.path("users"), 0o644)
        self.write("wrong", "me:open\n")

    def cases(self):
        return self.tls_and_a_user, self.certificate_of_ours

    def reach(self):
        return ["--tls", "--tls-ca", self.path("daemon.crt")], ["--auth-file", self.path("users")]

    def tls_and_a_user(self):
        tls, login = self.reach()
        self.configure("none")
        self.start()
        self.verbs(tls + login)
        self.refusals(tls, login)
        self.daemon.kill_now()

    def certificate_of_ours(self):
        tls, login = self.reach()
        own = ["--tls-cert", self.path("us.crt"), "--tls-key", self.path("us.key")]
        self.configure("require")
        self.start()
        self.verbs(tls + login + own)
        self.ask("status", *tls, *login, status=NO_ANSWER)
        wrong = ["--tls-cert", self.path("daemon.crt"), "--tls-key", self.path("daemon.key")]
        self.ask("status", *tls, *login, *wrong, status=NO_ANSWER, says="a certificate of ours")


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        print("no openssl tool")
        sys.exit(SKIPPED)
    sys.exit(Reach().run())
