#!/bin/sh
# test_limit.sh: does tests/limit.sh end a test at its limit, or when it is stopped itself, with all that
# the test started, and nothing else? Here limits are a tenth, so one second.
folder=$(mktemp -d)
trap 'rm -rf "$folder"; kill "$bystander" 2>/dev/null' EXIT
sed 's/^TIMES=.*/TIMES=1/; s/^KILL_S=.*/KILL_S=1/' "$ROLLCALL_SOURCE/tests/limit.sh" >"$folder/limit.sh"
printf '%s 1\n' tests/hangs.sh tests/deaf.sh a-name >"$folder/limits.txt"
mkdir "$folder/tests"
cat >"$folder/tests/hangs.sh" <<'END'
cd "$(dirname "$0")" || exit 1
sleep 1000 &
echo "$! $$" >started
wait
END
sed "1i trap '' TERM" "$folder/tests/hangs.sh" >"$folder/tests/deaf.sh"
echo 'exit 77' >"$folder/tests/skips.sh"
sleep 1000 &
bystander=$!

fail() {
    echo "FAIL: $*"
    exit 1
}

# runs PID: it has not ended; what has may still wait for its parent to notice.
runs() {
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)
    [ -n "$state" ] && [ "$state" != Z ]
}

# soon COMMAND...: it succeeds within ten seconds.
soon() {
    for _ in $(seq 1000); do
        ! "$@" || return 0
        sleep 0.01
    done
    return 1
}

has_ended() {
    ! runs "$1"
}

# expect_ended WHEN: the test and its sleep have ended, as soon as a processor had time for them, and what
# is not the test's has not.
expect_ended() {
    [ -s "$folder/tests/started" ] || fail "$1: the test did not begin"
    for pid in $(cat "$folder/tests/started"); do
        soon has_ended "$pid" || fail "$1: $pid runs on"
    done
    runs "$bystander" || fail "$1: what the test had not started was ended"
    rm "$folder/tests/started"
}

# limited ARGUMENT...: limit.sh fails with 1; what it says is in $said. (What outlives it would hold a pipe.)
limited() {
    sh "$folder/limit.sh" "$@" >"$folder/said" 2>/dev/null
    [ "$?" = 1 ] || return 1
    said=$(cat "$folder/said")
}

for test in hangs deaf; do
    limited sh "$folder/tests/$test.sh" || fail "$test: its limit is no failure"
    [ "$said" = "tests/$test.sh did not end within 1 s (tests/limits.txt says it needs 1)" ] ||
        fail "$test: $said"
    expect_ended "$test, at its limit"
done
limited -n a-name sh "$folder/tests/hangs.sh" one || fail "a name: its limit is no failure"
[ "${said#a-name did not end within 1 s}" != "$said" ] || fail "a name: $said"
expect_ended "a name, at its limit"

for signal in HUP INT TERM; do
    # through env, as what the shell itself puts into the background ignores INT
    ROLLCALL_TEST_PATIENCE=1000 env --default-signal=INT sh "$folder/limit.sh" sh "$folder/tests/deaf.sh" \
        >/dev/null 2>&1 &
    limit=$!
    soon test -s "$folder/tests/started" || fail "the test did not begin"
    kill -s "$signal" "$limit"
    wait "$limit"
    [ "$?" = 1 ] || fail "$signal: no failure"
    expect_ended "stopped by $signal"
done

sh "$folder/limit.sh" sh "$folder/tests/skips.sh"
[ "$?" = 77 ] || fail "a test's status is lost"
