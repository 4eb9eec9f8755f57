#!/bin/sh
# The top level of the tree as git has it is exactly the names below, and dot files. An archive, which has
# no git, has configure and more there: skipped.
#   usage: lint_top.sh [top folder of the tree]
set -u
cd "${1:-${ROLLCALL_SOURCE:-.}}" || exit 1
if [ ! -e .git ]; then
    echo "no git here: an archive has more at its top"
    exit 77
fi
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE # those of a hook that runs the tests
files=$(git -c safe.directory='*' -c core.quotePath=false ls-files) || exit 1
echo "$files" | awk '
    BEGIN {
        count = split("src phantom counter tests conf tools configure.ac Makefile.am README.md LICENSE", names, " ")
        for (i = 1; i <= count; i++) missing[names[i]] = known[names[i]] = 1
    }
    { sub("/.*", ""); delete missing[$0] }
    /^\./ || known[$0] { next }
    !told[$0]++ { print $0 ": not at the top of the tree; a file belongs beside what it is about"; mistakes++ }
    END {
        for (name in missing) { print name ": missing at the top of the tree"; mistakes++ }
        print "lint_top: " NR " files, " mistakes + 0 " mistakes"
        exit mistakes > 0
    }'
