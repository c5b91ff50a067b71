# shellcheck shell=sh disable=SC2034,SC2154
# DEMO=backlog: more clients than workers and accept queue together: some connects take 1, 3 or 7 seconds, and why.
fragment=$conf/demo-backlog.conf
mpm=${DEMO_MPM:-prefork}
make -s -C "$conf/../t/modules" OUT="$conf/../build/t" || fail "the module that sleeps could not be built"

case_run() {
    requests=600 clients=100
    load '100 clients' /small.txt -s 60
    sleep 2
    explain
    fetch "$url/reqprof-status?format=text" | grep -E '^(Listen|Queue|AllWorkersBusySeconds)'
}
