# shellcheck shell=bash
# common.sh: what tools/run, tools/test and tools/conformance share: Debian packages and builds. Sourced,
# not run.
# The caller sets `top` to the top folder of the tree.

# shellcheck disable=SC2034
build_packages=(gcc libc6-dev make autoconf automake
    libcurl4-openssl-dev libevent-dev libjansson-dev libxxhash-dev libjemalloc-dev libyaml-dev libssl-dev)

# packages_missing PACKAGE...: prints those that are not installed. On a system without dpkg it prints
# nothing: there configure says what it lacks.
packages_missing() {
    command -v dpkg-query >/dev/null || return 0
    local package state
    for package in "$@"; do
        state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || state=
        case $package/$state in
        */installed) ;;
        gcc/* | make/* | autoconf/* | automake/*)
            command -v "$package" >/dev/null || echo "$package" ;;
        nodejs/*) command -v node >/dev/null || echo "$package" ;;
        npm/* | ruby/*) command -v "$package" >/dev/null || echo "$package" ;;
        golang-go/*) command -v go >/dev/null || echo "$package" ;;
        default-jdk-headless/*) command -v javac >/dev/null || echo "$package" ;;
        *) echo "$package" ;;
        esac
    done
}

# The part of packages_install that runs as root. A policy-rc.d that forbids every service to start
# stands for the length of the call; then what was there comes back.
# shellcheck disable=SC2016
install_script='
    policy=/usr/sbin/policy-rc.d
    kept=
    restore() {
        if [ -n "$kept" ]; then mv -f "$policy.rollcall" "$policy"; else rm -f "$policy"; fi
    }
    if [ -e "$policy" ] || [ -L "$policy" ]; then
        mv "$policy" "$policy.rollcall" || exit 1
        kept=yes
    fi
    trap restore EXIT
    trap "exit 1" HUP INT TERM
    printf "#!/bin/sh\nexit 101\n" >"$policy" && chmod 755 "$policy" || exit 1
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"'

# packages_install PACKAGE...: installs them with as little else as possible and starts no service.
# When it cannot: prints the line to type, returns 1.
packages_install() {
    local sudo=
    if [ "$(id -u)" != 0 ]; then sudo=sudo; fi
    if [ -z "$sudo" ] || command -v sudo >/dev/null; then
        echo "installing $* ..." >&2
        $sudo env DEBIAN_FRONTEND=noninteractive sh -c "$install_script" sh "$@" \
            </dev/null >/dev/null && return 0
    fi
    echo "packages are missing; as root, type:" >&2
    echo "apt-get update && apt-get install --no-install-recommends $*" >&2
    return 1
}

# configure_tree FOLDER [arguments of configure]: makes FOLDER, below build/, ready for make. Does
# only what is out of date.
configure_tree() {
    local folder=$1 up
    shift
    if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ] ||
        [ "$top/Makefile.am" -nt "$top/Makefile.in" ] || [ "$top/tests/tests.am" -nt "$top/Makefile.in" ]; then
        (cd "$top" && autoreconf -fi) || return 1
    fi
    mkdir -p "$folder" || return 1
    if [ -e "$folder/config.status" ] && [ "$folder/config.status" -nt "$top/configure" ] &&
        [ "$*" = "$(cat "$folder/configure.arguments" 2>/dev/null)" ]; then
        return 0
    fi
    # A relative way to the sources, so that a tree that was moved or copied builds itself.
    up=$(realpath --relative-to="$folder" "$top")
    (cd "$folder" && "$up/configure" -q "$@") && printf '%s\n' "$*" >"$folder/configure.arguments"
}
