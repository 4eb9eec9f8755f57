"""machine.py: what is around a daemon and its agent, with faults: a disk without room and clocks that jump
(machine.c, by LD_PRELOAD), and links that are cut between any two. Needs no root."""
import mmap
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import pair  # noqa: E402

MACHINE_BYTES = 4096
NAME = re.compile(rb"(?:follow|copy) 1 \S+ (\S+)")


def build(folder):
    """The library."""
    library = os.path.join(folder, "machine.so")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run(compiler + ["-shared", "-fPIC", "-O1", "-o", library, os.path.join(HERE, "machine.c"),
                               "-ldl"], check=True)
    return library


class Machine:
    """Of a node: `environment` is for its daemon and its agent."""

    def __init__(self, library, folder, name):
        self.name = name
        path = os.path.join(folder, name + ".machine")
        with open(path, "wb") as file:
            file.truncate(MACHINE_BYTES)
        os.chmod(path, 0o666)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), MACHINE_BYTES)
        # A sanitizer's library would come first, and need not here.
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        self.environment = {**os.environ, "LD_PRELOAD": library, "ROLLCALL_MACHINE": path, "ASAN_OPTIONS": options}

    def jump(self, wall_s, boot_s):
        """The wall clock by so much; as if the machine had slept for boot_s."""
        wall, boot = struct.unpack_from("=qq", self.memory, 0)
        struct.pack_into("=qq", self.memory, 0, wall + wall_s, boot + boot_s)

    def fill(self, full):
        struct.pack_into("=I4xq", self.memory, 16, full, 0)


class Paths(pair.Relay):
    """To a node from each of those that follow it: cut[NAME] are the ways that are."""

    def __init__(self, node):
        self.cut_ways, self.names = {}, {}
        super().__init__(node)

    def holds(self, way, near):
        return way in self.cut_ways.get(self.names.get(near), ())

    def hear(self, near, said):
        """Who follows says its name first."""
        found = NAME.match(said)
        if found and near not in self.names:
            self.names[near] = found[1].decode()
            if self.holds(1, near):
                raise OSError("the link is cut")
