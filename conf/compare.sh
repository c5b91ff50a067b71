#!/bin/sh
# Do two fragments of configuration differ in what a request costs? Measures both on private servers, in turns.
#
#   conf/compare.sh A.conf B.conf /URL
#
# Each round starts a server with A, one with B, and one with A again, in random order; asks each the same number of
# requests; and reads the profiler's sums. It ends as soon as the answers for the total and all phases are sure, or
# after ROUNDS. Rounds are reported on standard error, the verdicts on standard output. Nothing is left behind.
#
# Environment, all with defaults:
#   ROUNDS=30        at most so many rounds; 6 are the fewest that can give an answer
#   REQUESTS=3000    requests to each server of a round
#   CLIENTS=2        connections at a time, with keep-alive
#   SEED=1           of the random order
#   MPM=event        event, worker or prefork
#   BRIEF=           not empty: only the sentences of the total and of the phases that changed
#   RP_VERDICT=FILE  the program that judges; `make -f Makefile.apxs compare` builds it
#   HTTPD, AB, MODULES
set -eu

conf=$(cd "$(dirname "$0")" && pwd)
me=compare
mpm=${MPM:-event}
port=
no_profiler=
rounds=${ROUNDS:-30}
requests=${REQUESTS:-3000}
clients=${CLIENTS:-2}
seed=${SEED:-1}
verdict=${RP_VERDICT:-$conf/../build/release/bench/verdict}
running=
root=
# shellcheck source=conf/server.sh
. "$conf/server.sh"

is_count() {
    case $2 in
    '' | *[!0-9]*) fail "$1=$2 is not a number" ;;
    esac
    if [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then
        fail "$1=$2 is out of range; $3 to $4 are accepted"
    fi
}

check_arguments() {
    [ $# = 3 ] || fail "three arguments are needed: A.conf B.conf /URL"
    case $3 in
    /*) ;;
    *) fail "the URL '$3' does not begin with /" ;;
    esac
    is_count ROUNDS "$rounds" 6 1000
    is_count SEED "$seed" 0 1000000000
    is_count CLIENTS "$clients" 1 50
    is_count REQUESTS "$requests" 100 10000000
    [ -x "$verdict" ] || fail "there is no $verdict; run make -f Makefile.apxs compare"
}

# A server that was told to start writes its pid file a moment later.
finish() {
    status=$?
    trap - EXIT
    trap '' INT TERM HUP
    if [ -n "$running" ]; then
        server_pid >/dev/null || sleep 0.5
        (stop) || status=1
    fi
    [ -z "$root" ] || rm -rf "$root"
    exit "$status"
}

# The report has a port of its own, where nothing is measured: asking for it does not change what it says.
use_compared() {
    cat >"$root/compared.conf" <<END
Include "$1"
Listen 127.0.0.1:$report_port
<VirtualHost 127.0.0.1:$report_port>
    ServerName report.localhost
    DocumentRoot "$root/run"
    ReqProf Off
</VirtualHost>
END
    use_fragment "$root/compared.conf"
}

serve() {
    use_compared "$1"
    running=yes
    start
}

end_serving() {
    stop
    running=
}

# Whatever can be wrong with a fragment or the URL is said before the first round.
try() {
    use_compared "$1"
    httpd_command -t >"$root/check.log" 2>&1 || fail "httpd refuses $1: $(cat "$root/check.log")"
    serve "$1"
    answer=$(fetch "$url$path" 2>&1 >/dev/null) || fail "with $1, the server answers $path with: $answer"
    end_serving
}

# Requests that were refused cost something else, so they must not be mixed in.
ask() {
    "$ab" -q -k -n "$1" -c "$clients" "$url$path" >"$root/ab.log" 2>&1 || fail "ab failed: $(tail -n 3 "$root/ab.log")"
    ! grep '^Non-2xx' "$root/ab.log" >&2 || fail "the server did not answer every request for $path with success"
}

read_report() {
    fetch "http://127.0.0.1:$report_port/reqprof-status?format=json" >"$root/$1.json" ||
        fail "the profiler gave no report"
}

# The first requests of a server fill its caches and are not counted.
measure() {
    case $1 in
    b) serve "$b" ;;
    *) serve "$a" ;;
    esac
    ask 200
    read_report before
    ask "$requests"
    read_report after
    end_serving
    perl "$conf/sums.pl" "$root/before.json" "$root/after.json" >"$root/sums"
    side=$1 round=$round perl -pe 's/^/$ENV{round}\t$ENV{side}\t/' "$root/sums" >>"$root/rounds"
}

now_ns() {
    date +%s%N
}

one_round() {
    began=$(now_ns)
    for side; do
        measure "$side"
    done
    printf '%d\ttime\t0\t%d\t-\n' "$round" $(($(now_ns) - began)) >>"$root/rounds"
}

orders() {
    perl -MList::Util=shuffle -e 'srand shift; print join(" ", shuffle qw(a b aa)), "\n" for 1 .. shift' \
        "$seed" "$rounds"
}

# judge [OPTION]: true when the answer is sure
judge() {
    judged=0
    "$verdict" "$@" <"$root/rounds" || judged=$?
    [ "$judged" = 0 ] || [ "$judged" = 3 ] || fail "the rounds could not be judged"
    [ "$judged" = 0 ]
}

measure_rounds() {
    round=0
    while read -r order; do
        round=$((round + 1))
        # shellcheck disable=SC2086
        one_round $order </dev/null
        printf 'round %d of %d: ' "$round" "$rounds" >&2
        ! judge --progress >&2 || break
    done <"$root/orders"
}

check_arguments "$@"
a=$(absolute "$1")
b=$(absolute "$2")
path=$3
trap finish EXIT
trap 'exit 130' INT TERM HUP
root=$(mktemp -d "${TMPDIR:-/tmp}/reqprof-compare.XXXXXX")
chmod 755 "$root"
prepare
report_port=$(free_port)
orders >"$root/orders"
try "$a"
try "$b"
echo "A: $1, B: $2, $path; $requests requests a server and round, seed $seed" >&2
measure_rounds
judge ${BRIEF:+--brief} || [ -n "${BRIEF:-}" ] ||
    echo "Not every answer is sure after $round rounds; ROUNDS=$((rounds * 3)) gives more."
