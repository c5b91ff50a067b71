# shellcheck shell=sh disable=SC2034,SC2154
# A private httpd from a fragment of configuration: what demo.sh and compare.sh have in common. The caller sets
#   conf         this directory
#   me           how messages begin
#   root         the server root, made by prepare
#   mpm          event, worker or prefork
#   port         on 127.0.0.1; empty: a free one
#   no_profiler  not empty: the same server without the profiler
# and calls prepare, use_fragment, start, stop. Environment: HTTPD, AB, MODULES.
umask 022 # the children's user must be able to read what root makes
PATH=$PATH:/usr/sbin:/sbin
export no_proxy=127.0.0.1 # HTTP::Tiny would ask a proxy for our own server

fail() {
    echo "$me: $*" >&2
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

# The whole configuration, with this fragment at its end.
use_fragment() {
    perl "$conf/generate.pl" fill "$conf/base.conf.in" root="$root" port="$port" conf="$conf" fragment="$1" \
        modules="$modules" mpm="$mpm" reqprof="$module" rotatelogs="$rotatelogs" \
        user="$user" group="$(id -gn "$user")" >"$root/httpd.conf"
}

httpd_command() {
    "$httpd" -d "$root" -f "$root/httpd.conf" ${no_profiler:+-D NO_PROFILER} "$@"
}

# Finds all programs, makes the server's root with its lists and documents, chooses the port.
prepare() {
    case $mpm in
    event | worker | prefork) ;;
    *) fail "the MPM $mpm is unknown; event, worker and prefork are accepted" ;;
    esac
    module=$(dirname "$conf")/mod_reqprof.so
    [ -n "$no_profiler" ] || [ -e "$module" ] || fail "there is no $module; build it first"
    httpd=${HTTPD:-$(program apache2 httpd)}
    modules=${MODULES:-$(modules_dir)}
    ab=${AB:-$(program ab)}
    rotatelogs=$(program rotatelogs)
    user=$(server_user)
    if ! mkdir -p "$root/run" "$root/logs" || [ ! -w "$root" ]; then
        fail "cannot write to $root; the head of $0 says what can be set"
    fi
    root=$(cd "$root" && pwd)
    perl "$conf/generate.pl" all "$root"
    [ -n "$port" ] || port=$(free_port)
    url=http://127.0.0.1:$port
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
    httpd_command -k start || fail "httpd did not start: $(tail -n 3 "$root/logs/error.log")"
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
