#!/usr/bin/env python3
"""tools/package, and what it makes: only `tools/test --all` runs this.

The package is built and lintian finds nothing. Into a fresh Debian, a folder made by mmdebstrap with a network of its
own, it is installed with what it depends on; there its own test (conf/debian/tests) starts it, counts, reloads,
upgrades to a later version and purges. The image's context has what its Containerfile copies. Exit 77: not root.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(TOP, "build", "package")
BUILD_S, DEBIAN_S, TEST_S = 1200, 900, 300
SKIPPED = 77
# In the folder: no service starts, and root is all there is.
ENTER = """set -e
ip link set lo up
mount -t proc proc "$1/proc"
exec chroot "$1" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 sh -c "$2"
"""
LATER = "later.deb"


def run(command, seconds, what, **options):
    """What the command printed; an assertion if it failed."""
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=seconds, **options)
    said = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, "%s: exit status %d\n%s" % (what, done.returncode, said[-4000:])
    return said


def build():
    """The package's path."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CC", "CFLAGS")}
    run([os.path.join(TOP, "tools", "package")], BUILD_S, "tools/package", env=environment)
    found = glob.glob(os.path.join(OUT, "rollcall_*.deb"))
    assert len(found) == 1, found
    return found[0]


def depends_of(package):
    """The first alternative of each, but for the service manager, which this Debian does without."""
    said = run(["dpkg-deb", "-f", package, "Depends"], TEST_S, "dpkg-deb")
    names = [re.split(r"[ (|]", part.strip())[0] for part in said.split(",")]
    assert "systemd" in names and len(names) > 5, names
    return ["systemd-standalone-sysusers" if name == "systemd" else name for name in names]


def make_later(package, path):
    """The same with a later version."""
    with tempfile.TemporaryDirectory() as folder:
        run(["dpkg-deb", "-R", package, folder + "/all"], TEST_S, "dpkg-deb -R")
        control = folder + "/all/DEBIAN/control"
        with open(control, encoding="utf-8") as file:
            text = file.read()
        with open(control, "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?m)^Version: (.*)$", r"Version: \1+later", text))
        run(["dpkg-deb", "--root-owner-group", "-b", folder + "/all", path], TEST_S, "dpkg-deb -b")


def test_debian(package):
    folder = tempfile.mkdtemp(prefix="rollcall-debian-")
    try:
        run(["mmdebstrap", "--variant=apt", "--include=" + ",".join(depends_of(package) + ["procps"]), "bookworm", folder],
            DEBIAN_S, "mmdebstrap")
        shutil.copy(package, folder + "/root/rollcall.deb")
        shutil.copy(os.path.join(TOP, "conf", "debian", "tests", "daemon"), folder + "/root/daemon")
        make_later(package, os.path.join(folder, "root", LATER))
        said = run(["unshare", "-n", "-p", "-f", "-m", "sh", "-c", ENTER, "sh", folder,
                    "dpkg -i /root/rollcall.deb && ROLLCALL_NEWER=/root/%s /root/daemon" % LATER],
                   TEST_S, "the package's own test")
        assert len(re.findall(r"^ok: ", said, re.M)) == 4, said
        print(said)
    finally:
        shutil.rmtree(folder)


def test_image():
    context = os.path.join(OUT, "image")
    with open(os.path.join(context, "Containerfile"), encoding="utf-8") as file:
        copied = re.findall(r"^COPY (\S+) ", file.read(), re.M)
    assert copied and all(os.path.exists(os.path.join(context, name)) for name in copied), copied


def main():
    if os.geteuid() != 0:
        print("SKIP: a Debian to install into is made by root")
        return SKIPPED
    package = build()
    test_image()
    test_debian(package)
    return 0


if __name__ == "__main__":
    sys.exit(main())
