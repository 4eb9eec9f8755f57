#!/bin/sh
# The lints must be able to fail: plants one violation after another in a tree of a few files and sees
# each found, by its words, and sees the tree pass before and after. What is in no list is planted in a
# copy of the whole tree.
set -u
top=$(cd "${ROLLCALL_SOURCE:-.}" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/rollcall-lint.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
(cd "$top" && for part in src counter phantom conf tools tests Makefile.am; do
    [ ! -e "$part" ] || echo "$part"; done | xargs tar cf -) | (cd "$work/tree" && tar xf -)
chmod -R u+w "$work/tree"
# The few files: what the planted ones include.
mkdir "$work/few" && cd "$work/few" || exit 1
for file in src/base/check.h src/engine/engine.h src/net/net.h src/protocol/text.h src/protocol/binary.h \
    src/protocol/meta.h src/row/row.h src/row/table_kind.h src/request/dispatch.c counter/counter.h tests/unit/request/harness.h; do
    mkdir -p "${file%/*}"
    echo "/* $file: what is planted includes it. */" >"$file"
done
for seam in src/engine/engine.h:engine_functions src/row/table_kind.h:table_kind; do
    printf 'struct %s {\n    int (*one)(int (*each)(int));\n};\n' "${seam#*:}" >>"${seam%:*}"
done
printf 'static int one(void)\n{\n    return 1;\n}\n' >>src/request/dispatch.c
cp -R "$work/tree/tests/lint" tests/lint
failures=0

fail() {
    echo "FAIL: $1"
    sed 's/^/    /' "$work/out"
    failures=$((failures + 1))
}

# clean LINT: passes on the copy as it is
clean() {
    perl "tests/lint/lint_$1.pl" . >"$work/out" 2>&1 || fail "lint_$1 on the clean tree"
}

# finds LINT WORDS FILE: with standard input as (or behind the text of) FILE, LINT fails and says WORDS
finds() {
    lint=$1 words=$2 file=$3
    mkdir -p "${file%/*}"
    if [ -e "$file" ]; then cp "$file" "$work/saved"; else rm -f "$work/saved"; fi
    cat >>"$file"
    if perl "tests/lint/lint_$lint.pl" . >"$work/out" 2>&1; then
        fail "lint_$lint passed: $words"
    elif ! grep -qF "$words" "$work/out"; then
        fail "lint_$lint did not say: $words"
    fi
    if [ -e "$work/saved" ]; then cp "$work/saved" "$file"; else rm -f "$file"; fi
}

repeat() { # repeat N TEXT
    i=0
    while [ "$i" -lt "$1" ]; do printf '%s\n' "$2"; i=$((i + 1)); done
}

clean includes
finds includes 'src/base may not include "engine/engine.h"' src/base/planted.c <<'C'
#include "engine/engine.h"
C
finds includes 'src/protocol may not include "net/net.h"' src/protocol/planted.h <<'C'
  #  include "net/net.h"
C
: >src/request/planted.h
finds includes 'src/net may not include "request/planted.h"' src/net/planted.c <<'C'
#include "request/planted.h"
C
for codec in text binary meta; do # dispatch knows codecs by their tables alone
    finds includes "src/request may not include \"protocol/$codec.h\"" src/request/dispatch.c <<C
#include "protocol/$codec.h"
C
done
finds includes 'src/data may not include "request/planted.h"' src/data/planted.c <<'C'
#include "request/planted.h"
C
rm -f src/request/planted.h
finds includes 'src/engine may not include "row/row.h"' src/engine/planted.c <<'C'
#include "row/row.h"
C
finds includes 'src/key may not include "engine/engine.h"' src/key/planted.c <<'C'
#include "engine/engine.h"
C
mkdir -p phantom
: >phantom/private.h
finds includes 'counter may not include "phantom/private.h"' counter/planted.c <<'C'
#include "phantom/private.h"
C
rm -f phantom/private.h
finds includes 'phantom may not include "counter/counter.h"' phantom/planted.c <<'C'
#include "counter/counter.h"
C
: >counter/private.h
finds includes 'src/space may not include "counter/private.h"' src/space/planted.c <<'C'
#include "counter/private.h"
C
rm -f counter/private.h
finds includes 'tests/unit/base may not include "counter/counter.h"' tests/unit/base/planted.c <<'C'
#include "counter/counter.h"
C
finds includes 'tests/unit/data may not include "tests/unit/request/harness.h"' tests/unit/data/planted.c <<'C'
#include "tests/unit/request/harness.h"
C
finds includes 'tools/rollcall may not include "net/net.h"' tools/rollcall/planted.c <<'C'
#include "net/net.h"
C
finds includes '<event2/event.h> may be included only by' src/daemon/planted.c <<'C'
#include <event2/event.h>
C
finds includes '<xxhash.h> may be included only by' counter/planted.c <<'C'
#include <xxhash.h>
C
finds includes '<sys/mman.h> may be included only by' counter/planted.c <<'C'
#include <sys/mman.h>
C
finds includes '<jemalloc/jemalloc.h> may be included only by' src/daemon/planted.c <<'C'
#include <jemalloc/jemalloc.h>
C
finds includes '<yaml.h> may be included only by' src/daemon/planted.c <<'C'
#include <yaml.h>
C
finds includes 'is no file from the root or src' src/base/planted.c <<'C'
#include "check.h"
C
finds includes 'is no file from the root or src' counter/planted.c <<'C'
#include "../src/base/check.h"
C
finds includes 'with quotes: it is ours' counter/planted.c <<'C'
#include <base/check.h>
C
# A table that allows a way up is wrong itself, be it for one header or for tests.
cp tests/lint/layers.txt "$work/layers"
for up in 'src/engine src/row' 'src/engine src/row/row.h' 'src/space src/data' 'src/base src/unknown' \
    'tests/unit/request tests/unit/daemon' 'tests/sim tests/unit/tools'; do
    folder=${up% *} upper=${up#* }
    sed "s,^$folder:.*,& $upper," "$work/layers" >tests/lint/layers.txt
    finds includes "$folder may not include $upper, which does not stand below it" src/base/planted.c </dev/null
done
cp "$work/layers" tests/lint/layers.txt

clean dialect
finds dialect 'planted.c:4: sizeof without parentheses' src/base/planted.c <<'C'
/* planted.c: a sizeof of each dialect, the wrong one last; "sizeof text" is none. */
static unsigned long planted(const int *a)
{
    return sizeof(*a) + sizeof *a;
}
C
for body in 'if (a > 0)' 'while (a > 0)' 'for (; a > 0;)' 'if (a > 0) { a++; } else' 'do'; do
    finds dialect 'planted.c:4: a body without braces' counter/planted.c <<C
/* planted.c: a body without braces. */
static int planted(int a)
{
    $body
        a--;
    do { a--; } while (a > 0);
    return a;
}
C
done
finds dialect 'planted.c:1: a file opens with a comment' phantom/planted.c <<'C'
#include "base/check.h"
C

clean names
# With the ceiling at what there is, one more is one too many; a name of its own is none.
shared=$(perl tests/lint/lint_names.pl . | sed -n 's/.*, \([0-9]*\) share.*/\1/p')
sed -i "s/^my .SHARED_MAX = .*/my \$SHARED_MAX = $shared;/" tests/lint/lint_names.pl
clean names
printf 'static int planted(void)\n{\n    return 0;\n}\n' >src/base/planted_first.c
clean names
finds names "no more than $shared may share a name" counter/planted.c <<'C'
static const struct planted *planted(int a,
                                     int b)
{
    return &table[a + b];
}
C
rm -f src/base/planted_first.c

clean functions
finds functions 'planted has 71 lines; at most 70' src/base/planted.c <<C
static int planted(int a,
                   int b)
{
$(repeat 67 '    a++;')
}
C
finds functions 'planted nests 4 deep; at most 3' counter/planted.c <<'C'
static int planted(int a)
{
    static const int table[] = {1, 2, 3};
    for (int i = 0; i < a; i++) {
        switch (a) {
        case '{': {
            while (table[i]) {
                a++;
            }
        }
        }
    }
    return a; /* } */
}
C
finds functions 'planted.c: 601 lines; at most 600' tools/rollcall/planted.c <<C
$(repeat 601 '/* a line */')
C
most=$(sed -n 's/^my $POINTERS_MAX = \([0-9]*\);/\1/p' tests/lint/lint_functions.pl)
more=$(repeat $((most - 1)) '    int (*more)(int);' | sed 's/$/\\/')
sed -i "/^struct table_kind/a\\
$more
" src/row/table_kind.h
finds functions "$((most + 1)) functions are called through engine_functions and table_kind; at most $most" \
    src/row/table_kind.h </dev/null
sed -i '/(\*more)/d' src/row/table_kind.h
# What is allowed to the last line is not reported.
cat >src/base/planted.c <<C
#define PLANTED(x) do { if (x) { for (;;) { while (x) { x--; } } } } while (0)
static const struct planted_row { int a; } rows[] = { { 1 }, { 2 } };
static struct planted planted(const char *a, int b)
{
    const char *brace = "{{{{";
    struct planted p = { .q = { .r = { .s = { 1 } } } };
    if (b) {
        for (;;) {
            if (a == brace) {
                p = (struct planted){ .q = { 0 } };
            }
        }
    }
$(repeat 57 '    b++;')
    return (struct planted){ 0 };
}
C
clean functions
rm -f src/base/planted.c

clean includes
clean functions
clean dialect
cd "$work/tree" || exit 1
clean listed
for planted in src/base/planted.c src/base/planted.h tests/unit/base/test_planted.c; do
    finds listed "$planted: in neither Makefile.am nor tests/tests.am" "$planted" </dev/null
done
: >tests/recovery/planted.py
clean listed
chmod +x tests/recovery/planted.py
finds listed 'tests/recovery/planted.py: in neither Makefile.am nor tests/tests.am' tests/recovery/planted.py </dev/null
rm -f tests/recovery/planted.py
sed 's/^EXTRA_DIST = .*/EXTRA_DIST = src/' Makefile.am >"$work/makefile" && cp Makefile.am "$work/packed" &&
    cp "$work/makefile" Makefile.am
finds listed 'tools/test: in neither Makefile.am nor tests/tests.am' src/planted.txt </dev/null
cp "$work/packed" Makefile.am
# globals LIBRARY-TEXT: what lint_globals says of a library made from this C
globals() {
    rm -f "$work/planted.o" "$work/planted.a"
    echo "$1" | ${CC:-cc} -x c -c -o "$work/planted.o" - && ar cr "$work/planted.a" "$work/planted.o" ||
        exit 1
    (cd "$work" && ROLLCALL_BUILD=. ROLLCALL_LIBRARIES='clean.a planted.a' \
        sh tree/tests/lint/lint_globals.sh >"$work/out" 2>&1)
}
echo 'int clean(void); int clean(void) { return 0; }' | ${CC:-cc} -x c -c -o "$work/clean.o" - &&
    ar cr "$work/clean.a" "$work/clean.o" || exit 1
globals 'int f(void); static const char *const names[] = { "a" }; int f(void) { return names[0][0]; }' ||
    fail 'lint_globals on constants'
for variable in 'int planted;' 'int planted = 1;' 'static int planted;' 'static _Thread_local int planted;' \
    'static const char *planted = "a";'; do
    if globals "int f(void); $variable int f(void) { return ((volatile char *)&planted)[0]++; }"; then
        fail "lint_globals passed: $variable"
    fi
done

if ROLLCALL_LIBRARIES='' sh tests/lint/lint_globals.sh >"$work/out" 2>&1 ||
    ROLLCALL_LIBRARIES=missing.a sh tests/lint/lint_globals.sh >"$work/out" 2>&1; then
    fail 'lint_globals without libraries passed'
fi

# top WORDS: lint_top fails on $work/top and says WORDS
top() {
    git -C "$work/top" add -A || exit 1
    if sh tests/lint/lint_top.sh "$work/top" >"$work/out" 2>&1; then
        fail "lint_top passed: $1"
    elif ! grep -qF "$1" "$work/out"; then
        fail "lint_top did not say: $1"
    fi
}
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE
git init -q "$work/top" || exit 1
for name in src/a phantom/a counter/a tests/a conf/a tools/a .ci/run; do
    mkdir -p "$work/top/${name%/*}"
    : >"$work/top/$name"
done
(cd "$work/top" && touch configure.ac Makefile.am README.md LICENSE .gitignore && git add -A) || exit 1
sh tests/lint/lint_top.sh "$work/top" >"$work/out" 2>&1 || fail 'lint_top on a clean tree'
mkdir "$work/top/doc"
: >"$work/top/doc/a"
top 'doc: not at the top of the tree'
rm -r "$work/top/doc"
: >"$work/top/NOTES"
top 'NOTES: not at the top of the tree'
rm "$work/top/NOTES" "$work/top/LICENSE"
top 'LICENSE: missing at the top of the tree'

clean listed
[ "$failures" = 0 ] || exit 1
echo "every planted violation was found"
