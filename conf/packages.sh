#!/bin/sh
# Installs the Debian packages that are missing, as root or through sudo; elsewhere it says what is missing.
#
#   conf/packages.sh build   a compiler and Apache's headers
#   conf/packages.sh demo    the same, Apache and its tools
#   conf/packages.sh test    the same, and what the tests ask Apache with
#   conf/packages.sh bench   the same, and valgrind
#
# Says nothing and needs no rights when nothing is missing. Debian's apache2 service is not started.
set -eu
PATH=$PATH:/usr/sbin:/sbin
missing=

fail() {
    echo "packages: $*" >&2
    exit 1
}

program() {
    for name; do
        command -v "$name" && return
    done
    return 1
}

header() {
    echo "#include <$1>" | gcc -E -
}

# need PACKAGE COMMAND...: the package is missing when the command fails
need() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

need_build() {
    need gcc program gcc
    need libc6-dev header stdio.h
    need make program make
    need apache2-dev program "${APXS:-apxs}"
}

need_demo() {
    need_build
    need perl perl -MHTTP::Tiny -e 1
    need apache2 program "${HTTPD:-apache2}" httpd
    need apache2-utils program "${AB:-ab}"
}

need_test() {
    need_demo
    need libcmocka-dev header_cmocka
    need nghttp2-client program h2load
    need wrk program wrk
    need curl program curl
    need openssl program openssl
}

# cmocka.h wants these included before it.
header_cmocka() {
    printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h cmocka.h | gcc -E -
}

need_bench() {
    need_test
    need valgrind program valgrind
}

# ---- installing, as root

apt_install() {
    apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1
}

# Debian asks this program before it starts a service; 101 means no. One that is there has its reasons.
forbid_services() {
    policy=/usr/sbin/policy-rc.d
    log=$(mktemp)
    made=
    trap 'rm -f "$log" $made' EXIT
    trap 'exit 130' INT TERM HUP
    if [ ! -e "$policy" ]; then
        made=$policy
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
}

# The lists of packages are fetched only when they are missing or too old to install from.
install_packages() {
    export DEBIAN_FRONTEND=noninteractive
    forbid_services
    if ! apt_install "$@" && ! { apt-get update -q >>"$log" 2>&1 && apt_install "$@"; }; then
        tail -n 15 "$log" >&2
        fail "apt-get could not install: $*"
    fi
    case " $* " in
    *" apache2 "*)
        echo "Debian's apache2 service was not started, but it will be at the next boot (systemctl disable apache2)." ;;
    esac
}

case ${1:-demo} in
build | demo | test | bench) "need_${1:-demo}" ;;
install) shift && install_packages "$@" && exit ;;
*) fail "'$1' is unknown; build, demo, test and bench are accepted" ;;
esac

[ -n "$missing" ] || exit 0
command -v apt-get >/dev/null ||
    fail "something is missing and there is no apt-get to install it; in Debian these packages have it:$missing"
echo "Installing:$missing"
# shellcheck disable=SC2086
if [ "$(id -u)" = 0 ]; then
    install_packages $missing
elif command -v sudo >/dev/null; then
    sudo sh "$0" install $missing || fail "install these packages as root first: apt-get install$missing"
else
    fail "you are not root and there is no sudo; install these packages first: apt-get install$missing"
fi
