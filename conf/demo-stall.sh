# shellcheck shell=sh disable=SC2034,SC2154
# DEMO=stall: a CustomLog pipe whose reader sleeps. Once 64 KiB are in the pipe, every request that logs hangs.
fragment=$conf/demo-stall.conf

case_run() {
    echo "Ten clients send requests until they hang in the log ..."
    timeout 6 "$ab" -q -r -n 100000 -c 10 "$url/small.txt" >/dev/null 2>&1 &
    sleep 4
    explain
    fetch "$url/reqprof-status?format=text" | grep '^Flight: ' | head -n 3
    wait
}
