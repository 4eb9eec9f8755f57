#!/bin/sh
# No writable variable lives longer than a call, but the log's state, what huge.c saw of the process's memory
# and what the tool complained of last: reads the symbol tables of the built libraries.
#   usage: lint_globals.sh [LIBRARY...]      default: every library of the build ($ROLLCALL_LIBRARIES)
set -u
if [ $# = 0 ]; then
    cd "${ROLLCALL_BUILD:-.}" || exit 1
    # shellcheck disable=SC2086
    set -- ${ROLLCALL_LIBRARIES:?are the libraries to look at}
fi
for library; do
    objdump -t "$library" >/dev/null || exit 1
done
if objdump -t "$1" | grep -qE '__(asan|tsan|ubsan)_'; then
    echo "a sanitizer adds variables of its own"
    exit 77
fi
objdump -t "$@" | awk '
    BEGIN { FS = "\t" }
    / file format / { split($1, part, ":"); file = part[1]; next }
    NF < 2 { next }
    { lines++ }
    {
        count = split($1, left, " "); section = left[count]
        count = split($2, right, " "); name = right[count]
    }
    file !~ /^log(_queue)?\.o$/ && file != "huge.o" && file != "verb.o" && name != section &&
        section ~ /^(\.(data|bss|tdata|tbss)|\.data\.rel(\.local)?|\*COM\*)$/ {
        print file ": writable variable " name
        mistakes++
    }
    END {
        print "lint_globals: " lines + 0 " symbols, " mistakes + 0 " mistakes"
        exit mistakes > 0 || lines == 0
    }'
