#!/usr/bin/env python3
"""Does verlock.pml have the memory orders of src/base/verlock.h?

    tests/litmus/orders.py

The model's first comment has a table: a function, what it does to the memory (each atomic access with its
orders, each fence, in the order of the code), and the name under which the model can be without the order.
The header, as $CC preprocesses it, must have exactly these, and the model must know each name. On the
machine at hand a lost fence may change nothing: where clang is installed, the header is compiled for
aarch64 too, and its instructions must have the barriers. Prints what differs; exits 1 then.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("ROLLCALL_SOURCE", ".")
HEADER = os.path.join(SOURCE, "src/base/verlock.h")
MODEL = os.path.join(SOURCE, "tests/litmus/verlock.pml")
ORDERS = ("RELAXED", "CONSUME", "ACQUIRE", "RELEASE", "ACQ_REL", "SEQ_CST")

# What is of the system in verlock.h, for a processor whose headers are not installed
SYSTEM = {"sched.h": "int sched_yield(void);\n",
          "pthread.h": "typedef unsigned long pthread_t; typedef int pthread_cond_t;\n"}
PROGRAM = """#include "base/verlock.h"
uint32_t asm_read(const verlock *lock) { return verlock_read(lock); }
bool asm_unchanged(const verlock *lock, uint32_t seen) { return verlock_unchanged(lock, seen); }
bool asm_try(verlock *lock, uint32_t seen) { return verlock_try(lock, seen); }
void asm_release(verlock *lock, uint32_t word) { verlock_release(lock, word); }
"""
# The instructions of each function that touch memory, or order it, but for its stack. (The way on which the
# exchange succeeds and the other one have a fence each.)
BARRIERS = {"read": r"(ldar )+", "unchanged": r"dmb ishld ldr ", "try": r"ldaxr stxr (dmb ish ){1,2}",
            "release": r"stlr "}
TOUCHING = re.compile(r"^\s+(dmb\s+\w+|(?:ld|st|cas|swp)\w+)(?!.*\bsp\b)", re.M)


def functions(text, begin, end):
    """(name, body) of each function: after a line that matches `begin`, up to one that begins with `end`."""
    return re.findall(r"%s.*?\n(.*?)^%s" % (begin, end), text, re.M | re.S)


def of_header():
    """[function, access, order...] in the order of the code."""
    command = shlex.split(os.environ.get("CC", "cc")) + ["-E", "-P", "-I", os.path.join(SOURCE, "src")]
    command += ["-U__ATOMIC_" + order for order in ORDERS]  # else they are numbers
    text = subprocess.run(command + [HEADER], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = []
    for name, body in functions(text, r"^static inline [\w ]*?\b(verlock_\w+)\([^;{]*\)\n\{", r"\}"):
        for access, rest in re.findall(r"__(?:atomic|sync)_(\w+)\(([^;]*);", body):
            found.append([name, access] + [order.lower() for order in re.findall(r"__ATOMIC_(\w+)", rest)])
    return found


def of_model():
    """The model's table, a list a row, and the orders that it can be without."""
    with open(MODEL, encoding="utf-8") as file:
        text = file.read()
    rows = [row.split() for row in re.findall(r"^ \*     (verlock_.*)", text, re.M)]
    return rows, set(re.findall(r"^#ifdef NO_(\w+)", text, re.M))


def compare():
    """What differs between the header and the model."""
    header, (rows, known) = of_header(), of_model()
    wrong = []
    if not header or header != [row[:-1] for row in rows]:
        wrong += ["verlock.h has:"] + ["    " + " ".join(row) for row in header]
        wrong += ["verlock.pml says:"] + ["    " + " ".join(row) for row in rows]
    named = {row[-1] for row in rows} - {"-"}
    if named != known:
        wrong.append("the table names %s, the model knows %s" % (sorted(named), sorted(known)))
    return wrong + ["an order without a name, or a name without an order: " + " ".join(row) for row in rows
                    if (row[-1] == "-") != (set(row[2:-1]) <= {"relaxed"})]


def barriers(clang):
    """What a function lacks when it is compiled for aarch64."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in list(SYSTEM.items()) + [("program.c", PROGRAM)]:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        command = [clang, "--target=aarch64-linux-gnu", "-march=armv8-a", "-O2", "-S", "-o", "-", "-ffreestanding",
                   "-nostdlibinc", "-I", folder, "-I", os.path.join(SOURCE, "src")]
        text = subprocess.run(command + [os.path.join(folder, "program.c")], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    found = dict(functions(text, r"^asm_(\w+):", r"\.Lfunc_end"))
    wrong = []
    for name, wanted in BARRIERS.items():
        touching = "".join(" ".join(one.split()) + " " for one in TOUCHING.findall(found.get(name, "")))
        if not re.fullmatch(wanted, touching):
            wrong.append("verlock_%s on aarch64: %s; wanted: %s" % (name, touching, wanted))
    return wrong


def main():
    wrong = compare()
    clang = shutil.which("clang")
    if clang is not None:
        wrong += barriers(clang)
    print("\n".join(wrong) or "the orders are those of the model" + (
        ", and aarch64 has barriers for them" if clang else "; aarch64 is not looked at without clang"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
