#!/bin/sh
# Starts a private httpd with a configuration as administrators have it, loads it, prints the profiler's report.
#
#   conf/demo.sh          start (an earlier one is stopped first), load, report; the server goes on running
#   conf/demo.sh stop     stop it
#   conf/demo.sh check    write the configuration and let httpd check it
#
# Environment, all with defaults:
#   DEMO=lists            which case: conf/demo-CASE.sh
#   DEMO_MPM=event        event, worker or prefork
#   DEMO_CONF=FILE        another fragment than the case's, such as conf/series/05-300deny.conf
#   DEMO_REQUESTS=10000   requests a run
#   DEMO_CLIENTS=30       connections at a time
#   DEMO_PORT             port on 127.0.0.1; default: a free one
#   DEMO_DIR=build/demo   the private server root
#   DEMO_STOP=1           stop the server after the report
#   DEMO_NO_PROFILER=1    the same server without the profiler, to compare
#   HTTPD, AB, MODULES    other programs, another directory of httpd's modules
#
# A case sets `fragment` and defines case_run, which may call load, report, explain, use_fragment and graceful.
set -eu
umask 022 # the children's user must be able to read what root makes

conf=$(cd "$(dirname "$0")" && pwd)
root=${DEMO_DIR:-$conf/../build/demo}
requests=${DEMO_REQUESTS:-10000}
clients=${DEMO_CLIENTS:-30}
mpm=${DEMO_MPM:-event}
PATH=$PATH:/usr/sbin:/sbin
export no_proxy=127.0.0.1 # HTTP::Tiny would ask a proxy for our own server

fail() {
    echo "demo: $*" >&2
    exit 1
}

# The first of the named programs that is there.
program() {
    for name; do
        command -v "$name" && return
    done
    fail "none of these is installed: $* (on Debian: apt install apache2 apache2-utils)"
}

modules_dir() {
    apxs -q LIBEXECDIR 2>/dev/null || echo /usr/lib/apache2/modules
}

# Only root can give children another user; the name must exist all the same.
server_user() {
    for name in www-data apache http nobody; do
        id "$name" >/dev/null 2>&1 && echo "$name" && return
    done
    fail "there is no user www-data, apache, http or nobody for the children to run as"
}

free_port() {
    perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 1)->sockport'
}

fetch() {
    perl -MHTTP::Tiny -e '
        my $answer = HTTP::Tiny->new(timeout => 10)->get(shift);
        print $answer->{content} if $answer->{success};
        print STDERR "$answer->{status} $answer->{reason}\n" if !$answer->{success};
        exit !$answer->{success}' "$1"
}

# ---- the server

use_fragment() {
    perl "$conf/generate.pl" fill "$conf/base.conf.in" root="$root" port="$port" conf="$conf" fragment="$1" \
        modules="$modules" mpm="$mpm" reqprof="$module" rotatelogs="$rotatelogs" \
        user="$user" group="$(id -gn "$user")" >"$root/httpd.conf"
}

httpd_command() {
    "$httpd" -d "$root" -f "$root/httpd.conf" ${DEMO_NO_PROFILER:+-D NO_PROFILER} "$@"
}

prepare() {
    case $mpm in
    event | worker | prefork) ;;
    *) fail "DEMO_MPM=$mpm is unknown; event, worker and prefork are accepted" ;;
    esac
    module=$(dirname "$conf")/mod_reqprof.so
    [ -n "${DEMO_NO_PROFILER:-}" ] || [ -e "$module" ] ||
        fail "there is no $module; build it first, or set DEMO_NO_PROFILER=1"
    httpd=${HTTPD:-$(program apache2 httpd)}
    modules=${MODULES:-$(modules_dir)}
    ab=${AB:-$(program ab)}
    rotatelogs=$(program rotatelogs)
    user=$(server_user)
    fragment=$(absolute "${DEMO_CONF:-$fragment}")
    if ! mkdir -p "$root/run" "$root/logs" || [ ! -w "$root" ]; then
        fail "cannot write to $root; set DEMO_DIR to a directory of your own"
    fi
    root=$(cd "$root" && pwd)
    perl "$conf/generate.pl" all "$root"
    port=${DEMO_PORT:-$(free_port)}
    url=http://127.0.0.1:$port
    use_fragment "$fragment"
}

absolute() {
    [ -f "$1" ] || fail "there is no $1"
    echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
}

# The pid file of a server that died may name somebody else's process by now.
is_ours() {
    tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF -- "-f $root/httpd.conf"
}

server_pid() {
    pid=$(cat "$root/run/httpd.pid" 2>/dev/null) && is_ours "$pid" && echo "$pid"
}

start() {
    rm -f "$root"/logs/*.log
    httpd_command -k start || fail "httpd did not start; see $root/logs/error.log"
    wait_for_answer
}

wait_for_answer() {
    for _ in $(seq 100); do
        answer=$(fetch "$url/small.txt" 2>&1 >/dev/null) && return
        sleep 0.1
    done
    tail -n 5 "$root/logs/error.log" >&2
    stop
    fail "the server does not serve its page: $answer (may the user $user read $root?)"
}

graceful() {
    kill -USR1 "$(server_pid)"
}

stop() {
    pid=$(server_pid) || return 0
    kill -TERM "$pid" || fail "process $pid, the server in $root, cannot be stopped by this user"
    for _ in $(seq 100); do
        is_ours "$pid" || return 0
        sleep 0.1
    done
    fail "process $pid does not stop"
}

# ---- load and report

# load NAME PATH [OPTION OF AB]...: one line about one run
load() {
    name=$1 path=$2
    shift 2
    "$ab" -q -n "$requests" -c "$clients" "$@" "$url$path" 2>"$root/logs/ab.log" | perl -e '
        my %line = map { /^\s*(.+?):?\s{2,}(\S+)/ ? ($1 => $2) : () } <STDIN>;
        my $rate = $line{"Requests per second"} or exit 1;
        my $not_2xx = $line{"Non-2xx responses"} // 0;
        printf "%-20s %8.0f requests/s  ", shift, $rate;
        printf "%s %s ms  ", @$_ for map { [$_, $line{$_}] } "50%", "90%", "99%", "100%";
        printf "%s bytes each, %s failed, %s refused\n",
            int($line{"HTML transferred"} / $line{"Complete requests"}), $line{"Failed requests"}, $not_2xx;
    ' "$name" || fail "ab failed: $(cat "$root/logs/ab.log")"
}

report() {
    if [ -z "${DEMO_NO_PROFILER:-}" ]; then
        echo
        fetch "$url/reqprof-status?format=text" || fail "the profiler gave no report"
    fi
}

# What the page says is wrong, in its own sentences.
explain() {
    if [ -z "${DEMO_NO_PROFILER:-}" ]; then
        fetch "$url/reqprof-status?format=text" | grep '^Finding: ' || fail "the profiler has found nothing wrong"
    fi
}

say_where() {
    echo
    [ -n "${DEMO_NO_PROFILER:-}" ] || echo "The page:     $url/reqprof-status"
    echo "mod_status:   $url/server-status"
    echo "Settings:     $root/httpd.conf"
    echo "Stop it with: ${DEMO_DIR:+DEMO_DIR=$root }$0 stop"
}

cases() {
    for file in "$conf"/demo-*.sh; do
        name=${file##*/demo-}
        printf ' %s' "${name%.sh}"
    done
}

demo() {
    prepare
    stop
    start
    case_run
    if [ -n "${DEMO_STOP:-}" ]; then
        stop
    else
        say_where
    fi
}

case=${DEMO:-lists}
[ -f "$conf/demo-$case.sh" ] ||
    fail "DEMO=$case is unknown; accepted:$(cases)"
# shellcheck source=conf/demo-lists.sh
. "$conf/demo-$case.sh"

case ${1:-start} in
start) demo ;;
stop) [ ! -d "$root" ] || { root=$(cd "$root" && pwd) && stop; } ;;
check) prepare && httpd_command -t ;;
*) fail "'$1' is unknown; start, stop and check are accepted" ;;
esac
