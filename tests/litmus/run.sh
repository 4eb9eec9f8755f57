#!/bin/sh
# run.sh: checks verlock.pml with spin: no history of the whole model goes wrong, and without any one of
# its memory orders some history does (else the order, or the check, would be for nothing). That these are
# the orders of the code is what orders.py looks at.
# $ROLLCALL_SOURCE is the folder of the sources. Skipped without spin.
command -v spin >/dev/null || { echo "SKIP: spin is not installed"; exit 77; }
model=$ROLLCALL_SOURCE/tests/litmus/verlock.pml
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
cd "$folder" || exit 1

# errors [-DNO_...]: how many histories that go wrong spin finds; nothing if it did not look at all.
errors() {
    rm -f pan*
    # shellcheck disable=SC2086 # the compiler may be a command with arguments
    spin -a "$@" "$model" >spin.log && ${CC:-cc} -O1 -DSAFETY -w -o pan pan.c || exit 1
    ./pan -E | sed -n 's/^State-vector .* errors: \([0-9]*\)$/\1/p'
}

failed=0
found=$(errors)
echo "with every order: $found histories go wrong"
[ "$found" = 0 ] || failed=1
orders=$(sed -n 's/^#ifdef NO_//p' "$model")
for order in $orders; do
    found=$(errors "-DNO_$order")
    echo "without $order: ${found:-none looked at}"
    case $found in '' | 0) failed=1 ;; esac
done
exit "$failed"
