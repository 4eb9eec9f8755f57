#!/bin/sh
# limit.sh COMMAND...: runs one test, the last word of COMMAND, with a limit of ten times what it needs.
#
# What a test needs, in seconds on two idle cores, stands in tests/limits.txt; a test that is not listed
# there needs NEEDED_USUAL at most. ROLLCALL_TEST_PATIENCE multiplies the limit where the same test does
# more or runs under a sanitizer. A test that meets its limit is ended and fails.
NEEDED_USUAL=6
TIMES=10
folder=$(dirname "$0")
for test; do :; done
name=$(echo "$test" | sed 's,^\(.*/\)*tests/,tests/,')
needed=$(awk -v name="$name" '$1 == name { print $2 }' "$folder/limits.txt")
limit=$((TIMES * ${needed:-$NEEDED_USUAL} * ${ROLLCALL_TEST_PATIENCE:-1}))

# --foreground: the test stays in the group of who called, so that an interrupted run ends it, too.
timeout --foreground -k 10 "$limit" "$@"
status=$?
[ "$status" -ne 124 ] && [ "$status" -ne 137 ] && exit "$status"
echo "$name did not end within $limit s (tests/limits.txt says it needs ${needed:-$NEEDED_USUAL})"
exit 1
