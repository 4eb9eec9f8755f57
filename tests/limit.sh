#!/bin/sh
# limit.sh [-n NAME] COMMAND...: runs one test, with a limit of ten times what it needs. NAME is how
# limits.txt names the test; it is the last word of COMMAND if none is given.
#
# What a test needs, in seconds on two idle cores, stands in tests/limits.txt; a test that is not listed
# there needs NEEDED_USUAL at most. ROLLCALL_TEST_PATIENCE multiplies the limit where the same test does
# more or runs under a sanitizer. A test that meets its limit fails, and ends with all that it started: it
# has a process group of its own. Whoever ends limit.sh ends that group, too.
NEEDED_USUAL=6
TIMES=10
KILL_S=10 # after SIGTERM
folder=$(dirname "$0")
if [ "$1" = -n ]; then
    name=$2
    shift 2
else
    for test; do :; done
    name=$(echo "$test" | sed 's,^\(.*/\)*tests/,tests/,')
fi
needed=$(awk -v name="$name" '$1 == name { print $2 }' "$folder/limits.txt")
limit=$((TIMES * ${needed:-$NEEDED_USUAL} * ${ROLLCALL_TEST_PATIENCE:-1}))

# What is left of the group after timeout told it to end. A group that has a member keeps its number.
end_group() {
    kill -KILL -- "-$group" 2>/dev/null
}

# timeout passes the signal on to its group, and kills that if need be.
stop() {
    trap '' HUP INT TERM
    group=$!
    [ -n "$group" ] || exit 1
    kill -TERM "$group" 2>/dev/null
    wait "$group"
    end_group
    echo "$name was stopped"
    exit 1
}

trap stop HUP INT TERM
timeout -k "$KILL_S" "$limit" "$@" &
group=$!
wait "$group"
status=$?
[ "$status" -ne 124 ] && [ "$status" -ne 137 ] && exit "$status"
end_group
echo "$name did not end within $limit s (tests/limits.txt says it needs ${needed:-$NEEDED_USUAL})"
exit 1
