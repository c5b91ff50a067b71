# shellcheck shell=sh disable=SC2034,SC2154
# DEMO=leak: a module that forgets 400 bytes a request, and how the children's memory shows it.
fragment=$conf/demo-leak.conf
make -s -C "$conf/../t/modules" OUT="$conf/../build/t" || fail "the module that leaks could not be built"

case_run() {
    echo "Four clients send requests for 14 seconds ..."
    "$ab" -q -k -r -t 14 -n 10000000 -c 4 "$url/small.txt" >/dev/null 2>&1
    explain
    fetch "$url/reqprof-status?format=text" | grep '^Child: '
}
