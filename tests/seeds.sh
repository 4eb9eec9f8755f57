#!/bin/sh
# seeds.sh: runs every test of tests/seeds.txt with its seed. $ROLLCALL_BUILD is the folder of the build,
# $ROLLCALL_SOURCE that of the sources. Each is run whole, however small $ROLLCALL_TEST_SCALE is: what it
# showed may come late.
failed=0
ROLLCALL_SIM_SEEDS=1
[ "${ROLLCALL_TEST_SCALE:-100}" -ge 100 ] || ROLLCALL_TEST_SCALE=100
export ROLLCALL_SIM_SEEDS ROLLCALL_TEST_SCALE ROLLCALL_TEST_SEED
while read -r ROLLCALL_TEST_SEED test arguments; do
    case $ROLLCALL_TEST_SEED in '' | '#'*) continue ;; esac
    case $test in
    *.py) command="$PYTHON $ROLLCALL_SOURCE/$test" ;;
    *) command=$ROLLCALL_BUILD/$test ;;
    esac
    # shellcheck disable=SC2086
    $command $arguments
    status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] && continue
    echo "FAILED: $test with seed $ROLLCALL_TEST_SEED"
    failed=1
done <"$ROLLCALL_SOURCE/tests/seeds.txt"
exit "$failed"
