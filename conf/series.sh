#!/bin/sh
# Compares each step of the series with the one before, and prints the table of doc/series.md.
#
#   conf/series.sh
#
# Environment: ROUNDS=14, REQUESTS=1500, URL=/index.html, and what conf/compare.sh knows. A step's text is the first
# line of its fragment. Step 12 is step 9 once more, so the last pair compares a configuration with itself.
set -eu

conf=$(cd "$(dirname "$0")" && pwd)
export ROUNDS="${ROUNDS:-14}" REQUESTS="${REQUESTS:-1500}" BRIEF=1
url=${URL:-/index.html}

# The text in the first row of a pair, one row a sentence.
rows() {
    text="$(basename "$1" .conf) → $(basename "$2" .conf). $(sed -n '1s/^# //p' "$2")"
    sentences=$("$conf/compare.sh" "$1" "$2" "$url") || exit
    echo "$sentences" | while IFS= read -r sentence; do
        echo "| $text | $sentence |"
        text=
    done
}

printf '%s requests a server, at most %s rounds, %s, %s.\n\n' "$REQUESTS" "$ROUNDS" "$url" \
    "$(${HTTPD:-apache2} -v 2>/dev/null | sed -n '1s/.*: //p')"
echo '| step | verdict |'
echo '| --- | --- |'
before=
for step in "$conf"/series/*.conf; do
    [ -z "$before" ] || rows "$before" "$step"
    before=$step
done
rows "$conf/series/09-unescaped.conf" "$conf/series/12-nolog.conf"
