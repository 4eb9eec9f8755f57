#!/usr/bin/env python3
"""What `make install` puts where, and that it is true.

Manual pages are clean and have every option, flag and verb; the packaged configuration starts; the unit is exposed no
more than EXPOSURE_MAX and is told by the daemon what it waits for; uninstalling leaves a changed configuration.
$ROLLCALLD, $ROLLCALL and $ROLLCALL_BUILD name the programs and the folder of the build.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("ROLLCALL_BUILD", os.path.join(TOP, "build"))
DAEMON = os.environ.get("ROLLCALLD", os.path.join(BUILD, "rollcalld"))
TOOL = os.environ.get("ROLLCALL", os.path.join(BUILD, "rollcall"))
PREFIX = "/usr/local"
CONFIG = "etc/rollcall/rollcall.yaml"
FLEET = "share/doc/rollcall/examples/fleet"
UNITS = ("lib/systemd/system/rollcall-agent.service", "lib/systemd/system/rollcalld.service",
         "lib/systemd/system/rollcalld@.service")
FILES = ("bin/rollcall", "sbin/rollcalld", CONFIG, "lib/sysusers.d/rollcall.conf",
         "share/bash-completion/completions/rollcall", "share/zsh/site-functions/_rollcall",
         "share/fish/vendor_completions.d/rollcall.fish", "share/doc/rollcall/README.md", "share/doc/rollcall/rollcall.yaml", "share/man/man1/rollcall.1",
         "share/man/man5/rollcall.yaml.5", "share/man/man7/rollcall-protocol.7", "share/man/man8/rollcalld.8",
         "share/rollcall/alerts.yaml", "share/rollcall/grafana.json") + UNITS + tuple(
             os.path.join(FLEET, name) for name in os.listdir(os.path.join(TOP, "conf", "fleet")) + ["split"])
EXPOSURE_MAX = 1.4
ANSWER_S = 30 * int(os.environ.get("ROLLCALL_TEST_PATIENCE", "1"))
WATCHDOG_US = 2000000
SMALL = ["--set", "spaces.feed.table-size=64KiB", "--set", "spaces.liked.table-size=64KiB"]


def run(*command, **options):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=2 * ANSWER_S, **options)
    return done.returncode, done.stdout.decode()


def good(*command, **options):
    code, said = run(*command, **options)
    assert code == 0, (command, code, said)
    return said


def make(target, folder):
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    good("make", "-s", "-C", BUILD, target, "DESTDIR=" + folder, env=environment)


def installed(folder):
    return sorted(os.path.relpath(os.path.join(root, name), folder + PREFIX)
                  for root, _, names in os.walk(folder) for name in names)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def there(*commands):
    missing = [command for command in commands if shutil.which(command) is None]
    for command in missing:
        print("SKIP: %s is not installed" % command)
    return not missing


# ---- manual pages ----


def entries(page):
    """The heads of a page's lists, without their escapes."""
    return [head.replace("\\-", "-") for head in re.findall(r"^\.TP\n\\fB(.*)\\fR$", page, re.M)]


def options():
    """Every key of the configuration, as --help lists them below the flags."""
    keys = good(DAEMON, "--help").partition("\nKeys of the configuration file")[2]
    return set(re.findall(r"^  ([a-z][a-z.-]*)(?:  |$)", keys, re.M))


def test_manuals(folder):
    pages = {name: read(folder + PREFIX, name) for name in FILES if "/man/" in name}
    yaml = entries(pages["share/man/man5/rollcall.yaml.5"])
    keys = options()
    assert len(keys) > 60 and "cold.overlay" in keys and "late-room" in keys, keys
    assert keys == set(yaml), keys ^ set(yaml)
    flags = set(re.findall(r"^ +(?:-(?:[a-zA-Z]), )?(--[a-z-]+)", good(DAEMON, "--help"), re.M))
    listed = set(re.findall(r"--[a-z-]+", "\n".join(entries(pages["share/man/man8/rollcalld.8"]))))
    assert len(flags) > 30 and flags == listed, flags ^ listed
    tool = pages["share/man/man1/rollcall.1"]
    verbs = re.findall(r"^ +([a-z]+) {2,}\S", good(TOOL, "help"), re.M)
    assert "verify" in verbs
    for verb in verbs:
        assert verb == "help" or "\n.SS %s\n" % verb in tool, verb
    for verb in ("verify", "repair", "inspect", "bench"):
        for option in re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", good(TOOL, verb, "--help"), re.M):
            assert option.replace("-", "\\-") in tool, (verb, option)
    for heading in re.findall(r"^## (.*)$", read(TOP, "src", "protocol", "README.md"), re.M):
        assert heading.upper().replace("-", "\\-") in pages["share/man/man7/rollcall-protocol.7"], heading
    if there("mandoc"):
        for name in pages:
            assert good("mandoc", "-T", "lint", os.path.join(folder + PREFIX, name)) == "", name
        assert run("mandoc", "-T", "lint", os.path.join(TOP, "README.md"))[1] != ""  # it does look


# ---- the unit ----


def exposure(path):
    said = good("systemd-analyze", "security", "--offline=true", path)
    return float(re.search(r"Overall exposure level for \S+ (\d+\.\d)", said).group(1))


def test_units(folder):
    """As if its programs were where the unit says."""
    for name in UNITS:
        text = read(folder + PREFIX, name)
        program = ("/bin/rollcall agent $OPTIONS" if "agent" in name
                   else "/sbin/rollcalld --config " + PREFIX + "/etc/rollcall/")
        assert PREFIX + program in text and not re.search("@[a-z]+@", text), text
    assert "StateDirectory=rollcall-%i\n" in text and "/etc/rollcall/%i.yaml" in text, text
    if not there("systemd-analyze", "systemd-sysusers"):
        return
    for name in UNITS:
        path = os.path.join(folder, os.path.basename(name))
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(PREFIX + "(/s?bin/)", folder + PREFIX + r"\1", read(folder + PREFIX, name)))
        assert exposure(path) <= EXPOSURE_MAX, (name, exposure(path))
        code, said = run("systemd-analyze", "verify", "--man=no", path)
        assert os.path.basename(name) not in said, said
        os.unlink(path)
    loose = os.path.join(folder, "loose.service")
    with open(loose, "w", encoding="utf-8") as file:
        file.write("[Service]\nExecStart=/bin/true\n")
    assert exposure(loose) > EXPOSURE_MAX  # it does look
    os.unlink(loose)
    said = good("systemd-sysusers", "--dry-run", "--root=" + folder, os.path.join(folder + PREFIX, "lib/sysusers.d/rollcall.conf"))
    assert "rollcall" in said, said


class Manager:
    """What systemd is to a daemon: a socket that it tells its state."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o777)
        self.socket.settimeout(ANSWER_S)

    def until(self, wanted):
        """All that is told up to what begins with `wanted`."""
        told = []
        while not told or not told[-1].startswith(wanted):
            told.append(self.socket.recv(4096).decode())
        return told


def talk(port, request):
    """All that is answered before the daemon closes."""
    with socket.create_connection(("127.0.0.1", port), ANSWER_S) as client:
        client.sendall(request)
        came = b""
        while piece := client.recv(4096):
            came += piece
    return came


def test_service(folder):
    """The packaged configuration, started as the unit does, but for places and sizes that a test may have."""
    work = tempfile.mkdtemp(prefix="rollcall-service-")
    os.chmod(work, 0o755)
    data = os.path.join(work, "data")
    os.mkdir(data, 0o700)
    flags = ["--set", "data=" + data, "--set", "admin=127.0.0.1:0", "-l", "127.0.0.1:0"] + SMALL
    if os.geteuid() == 0:
        shutil.chown(data, "nobody")
        flags += ["-u", "nobody"]
    config = os.path.join(work, "rollcall.yaml")
    shutil.copy(os.path.join(folder + PREFIX, CONFIG), config)
    good(DAEMON, "--config", config, "--check-config")
    manager = Manager(work)
    environment = dict(os.environ, NOTIFY_SOCKET=manager.path, WATCHDOG_USEC=str(WATCHDOG_US))
    with tempfile.TemporaryFile() as log:
        daemon = subprocess.Popen([DAEMON, "--config", config] + flags, env=environment, stdout=log, stderr=log)
        try:
            assert manager.until("READY=1")[-1] == "READY=1\nSTATUS=serving"
            assert manager.until("WATCHDOG=1")[-1] == "WATCHDOG=1"
            log.seek(0)
            port = int(re.search(r"listening on 127\.0\.0\.1:(\d+) tls=no\n", log.read().decode()).group(1))
            assert talk(port, b"\x16\x03\x01") == b"ERROR no TLS on this port\r\n"
            assert talk(port, b"stats reset\r\nquit\r\n") == b"RESET\r\n"
            with open(config, "a", encoding="utf-8") as file:
                file.write("max-connections: 99\n")
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            daemon.send_signal(signal.SIGHUP)
            reloading = manager.until("RELOADING=1")[-1]
            assert int(re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", reloading).group(1)) >= before
            manager.until("READY=1")
            daemon.send_signal(signal.SIGTERM)
            manager.until("STOPPING=1")
            assert daemon.wait(ANSWER_S) == 0
        finally:
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait()
        log.seek(0)
        said = log.read().decode()
    assert "reload: an option changed option=max-connections old=1024 new=99\n" in said, said
    sender = "pid=%d uid=%d\n" % (os.getpid(), os.getuid())
    for line in ("info: asked to reload signal=SIGHUP " + sender, "info: stopping signal=SIGTERM " + sender, 'info: a client was closed peer=127.0.0.1:\\d+ reason="it speaks TLS',
                 'warning: a client changed what all share peer=127.0.0.1:\\d+ command="stats reset"',
                 "info: loaded tables=0 records_replayed=0 seconds=", "info: checkpoint done tables=\\d+ bytes=\\d+ "):
        assert re.search(line, said), (line, said)
    shutil.rmtree(work)


def main():
    folder = tempfile.mkdtemp(prefix="rollcall-install-")
    try:
        make("install", folder)
        assert installed(folder) == sorted(FILES), set(installed(folder)) ^ set(FILES)
        good(os.path.join(folder + PREFIX, FLEET, "split"), "--help")
        test_manuals(folder)
        test_units(folder)
        test_service(folder)
        # what its owner changed stays, whether it is installed again or uninstalled
        config = os.path.join(folder + PREFIX, CONFIG)
        with open(config, "a", encoding="utf-8") as file:
            file.write("# mine\n")
        make("install", folder)
        assert read(config).endswith("# mine\n")
        make("uninstall", folder)
        assert installed(folder) == [CONFIG], installed(folder)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
