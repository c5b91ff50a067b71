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

conf=$(cd "$(dirname "$0")" && pwd)
root=${DEMO_DIR:-$conf/../build/demo}
requests=${DEMO_REQUESTS:-10000}
clients=${DEMO_CLIENTS:-30}
mpm=${DEMO_MPM:-event}
port=${DEMO_PORT:-}
no_profiler=${DEMO_NO_PROFILER:-}
me=demo
# shellcheck source=conf/server.sh
. "$conf/server.sh"

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
    if [ -z "$no_profiler" ]; then
        echo
        fetch "$url/reqprof-status?format=text" || fail "the profiler gave no report"
    fi
}

# What the page says is wrong, in its own sentences.
explain() {
    if [ -z "$no_profiler" ]; then
        fetch "$url/reqprof-status?format=text" | grep '^Finding: ' || fail "the profiler has found nothing wrong"
    fi
}

say_where() {
    echo
    [ -n "$no_profiler" ] || echo "The page:     $url/reqprof-status"
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

configure() {
    prepare
    use_fragment "$(absolute "${DEMO_CONF:-$fragment}")"
}

demo() {
    configure
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
check) configure && httpd_command -t ;;
*) fail "'$1' is unknown; start, stop and check are accepted" ;;
esac
