# shellcheck shell=sh disable=SC2034,SC2154
# DEMO=lists: what grown access lists, compression and two access logs cost, for a page, an image and a denied robot.
fragment=$conf/demo.conf

case_run() {
    robot=$(sed -n '1s/.*"\(.*\)".*/\1/p' "$root/lists/useragents.conf")
    load 'page' /
    load 'page, gzip' / -H 'Accept-Encoding: gzip'
    load 'image' /image.png
    load 'denied robot' / -H "User-Agent: $robot"
    report
}
