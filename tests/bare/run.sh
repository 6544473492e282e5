#!/usr/bin/env bash
# Runs the README's commands on a bare Debian 12: a debootstrap root with python3, python3-venv and libgomp1 and nothing else,
# entered with an empty environment. Usage: tests/bare/run.sh [install|test|all] [-- COMMAND…]; needs root and debootstrap.
#
# The commands are those of README.md, each in the block below its mark `<!-- command: NAME -->`.
set -euo pipefail

what=${1:-all}
here=$(cd "$(dirname "$0")/../.." && pwd)
base=${BARE_BASE:-/var/tmp/moot-bare-base}
mirror=${BARE_MIRROR:-}
root=$(mktemp -d "${TMPDIR:-/var/tmp}/moot-bare.XXXXXX")

leave() {
    umount "$root/proc" "$root/dev/shm" "$root/dev/pts" "$root/dev" 2>/dev/null || true
    # nothing is removed while something of this machine is still mounted below it
    if ! grep -q " $root/" /proc/mounts; then rm -rf --one-file-system "$root"; fi
}
trap leave EXIT

make_base() {
    [ -e "$base/.complete" ] && return
    command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 2; }
    rm -rf --one-file-system "$base"
    debootstrap --variant=minbase --include=python3,python3-venv,libgomp1,ca-certificates bookworm "$base" ${mirror:+"$mirror"}
    touch "$base/.complete"
}

# what this machine needs to reach its registries is the machine's, not the project's: resolver, certificates, client settings
copy_network() {
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    mkdir -p "$root/etc/ssl/certs"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    if [ -e /etc/pip.conf ]; then grep -v -e find-links -e extra-index-url /etc/pip.conf >"$root/etc/pip.conf"; fi
}

enter() {
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/bin:/usr/bin:/bin "$@"
}

command_of() {
    awk -v mark="<!-- command: $1 -->" '$0 == mark {near = 1; next} near && /^```/ {if (inside) exit; inside = 1; next} inside' "$here/README.md"
}

make_base
cp -a "$base/." "$root/"
copy_network
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind /dev/pts "$root/dev/pts"
mkdir -p "$root/root/moot"
git -C "$here" archive --format=tar HEAD | tar -x -C "$root/root/moot"

run_block() {
    local block
    block=$(command_of "$1")
    [ -n "$block" ] || { echo "README.md has no command marked '$1'" >&2; exit 2; }
    printf '\n\033[1m$ %s\033[0m\n' "$block"
    (time enter sh -ec "cd /root/moot
$block")
}

if [ "${2:-}" = "--" ]; then
    shift 2
    enter sh -ec "cd /root/moot; $*"
    exit
fi
case $what in
    install) run_block first-answer ;;
    test) run_block tests ;;
    all) run_block first-answer; run_block tests ;;
    *) echo "expected install, test or all, got '$what'" >&2; exit 2 ;;
esac
