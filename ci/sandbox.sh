# shellcheck shell=sh disable=SC2034,SC2154 # $root is that of the scripts, which use the names
# Scripts that need another Debian source this file after environment.sh. A sandbox is a minimal
# Debian in build/sandboxes/RELEASE. Needs root, and
#     apt install debootstrap debian-archive-keyring

oldest=bullseye # the oldest Debian that can be had, and what Pythons, wheels and tests need of it
oldest_packages="build-essential patchelf libgomp1 libssl-dev zlib1g-dev libbz2-dev liblzma-dev
    libffi-dev libsqlite3-dev"

# make_sandbox RELEASE PACKAGE...: make the sandbox $sandbox, or install missing packages into it.
make_sandbox() {
    sandbox=$root/build/sandboxes/$1
    suite=$1
    shift
    need_root
    if ! [ -f "$sandbox/.complete" ]; then
        echo "making a sandbox of Debian $suite: two minutes"
        rm -rf --one-file-system "$sandbox"
        mkdir -p "$sandbox"
        # debootstrap may be older than the release: all releases are made as sid is.
        # (What it mounts vanishes with it, also if it is killed.)
        unshare --mount --propagation private debootstrap --variant=minbase \
            --include=ca-certificates "$suite" "$sandbox" "" \
            /usr/share/debootstrap/scripts/sid >"$sandbox.log" 2>&1 || {
            tail -n 20 "$sandbox.log" >&2
            fail "debootstrap cannot make Debian $suite (all messages: $sandbox.log)"
        }
        touch "$sandbox/.complete"
    fi
    [ "$(cat "$sandbox/.packages" 2>/dev/null)" = "$*" ] && return
    echo "installing into the sandbox of $suite: $*"
    # Accept expired lists: a mirror may be days old.
    { in_sandbox "$suite" apt-get -q -o Acquire::Check-Valid-Until=false update &&
        in_sandbox "$suite" env DEBIAN_FRONTEND=noninteractive \
            apt-get -q install -y --no-install-recommends "$@"; } >"$sandbox.log" 2>&1 || {
        tail -n 20 "$sandbox.log" >&2
        fail "apt cannot install into $sandbox (all messages: $sandbox.log)"
    }
    echo "$*" >"$sandbox/.packages"
}

# in_sandbox RELEASE COMMAND...: run a command as root in a sandbox, in the folder /. The checkout
# has its own path there, and the sandbox trusts the certificates that this system trusts. The
# mounts belong to this one command: they vanish with it, also if the script is killed.
in_sandbox() {
    sandbox=$root/build/sandboxes/$1
    shift
    mkdir -p "$sandbox$root"
    cp --remove-destination /etc/resolv.conf "$sandbox/etc/resolv.conf" # (it may be a link)
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --propagation private sh -eu -c '
        sandbox=$1 root=$2
        shift 2
        mount -t proc proc "$sandbox/proc"
        mount --rbind /dev "$sandbox/dev"
        mount --rbind /sys "$sandbox/sys" # (where OpenMP reads which processors there are)
        mount --bind "$root" "$sandbox$root"
        certificates=/etc/ssl/certs/ca-certificates.crt
        if [ -f "$certificates" ] && [ -f "$sandbox$certificates" ]; then
            mount --bind "$certificates" "$sandbox$certificates"
        fi
        exec chroot "$sandbox" env -i HOME=/root LC_ALL=C.UTF-8 \
            PIP_CERT="$certificates" SSL_CERT_FILE="$certificates" \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
    ' sh "$sandbox" "$root" "$@"
}

need_root() {
    [ "$(id -u)" = 0 ] || fail "sandboxes need root (chroot, mount)"
    [ -f /usr/share/debootstrap/scripts/sid ] ||
        fail "debootstrap is missing (Debian and Ubuntu: apt install debootstrap)"
}
