package RpTest;

use strict;
use warnings;
use File::Temp ();
use Test::More ();
use Time::HiRes qw(sleep time);
use RpTest::Build;
use RpTest::Client;
use RpTest::Conf;
use RpTest::Fifo;
use RpTest::Load;
use RpTest::Log;
use RpTest::Process;
use RpTest::Report;

our @ISA = qw(RpTest::Client RpTest::Load RpTest::Report RpTest::Log);

my %known = map { $_ => 1 } qw(mpm mpm_conf modules conf profiler status_vhost files override log_level access_log
    cgi ssi tls http2 ports crash may_fail args expect_log allow_log);

# Servers that run in this process's test; weak references would be gone before END.
my %running;

for my $signal (qw(INT TERM HUP)) {
    $SIG{$signal} = sub { exit 130 };
}

sub prepare {
    my ($class, %arg) = @_;
    my @unknown = grep { !$known{$_} } sort keys %arg;
    die "RpTest: unknown argument: @unknown\n" if @unknown;
    $arg{mpm}      ||= $ENV{RP_MPM} || 'event';
    $arg{profiler} //= 1;
    my $temp = File::Temp->newdir('rptest-XXXXXX', TMPDIR => 1, CLEANUP => !$ENV{RP_KEEP});
    # Debian updates OpenSSL without building httpd anew.
    my @allowed = $arg{tls} ? qr/AH01882: Init: this version of mod_ssl was compiled against a newer library/ : ();
    my $self = bless { temp => $temp, dir => "$temp", docroot => "$temp/htdocs", arg => \%arg, owner => $$,
        expected => [list($arg{expect_log})], allowed => [@allowed, list($arg{allow_log})], more_ports => [] }, $class;
    RpTest::Conf::write_tree($self, \%arg);
    return $self;
}

sub list { my ($value) = @_; return ref $value eq 'ARRAY' ? @$value : defined $value ? $value : () }

sub start {
    my ($class, %arg) = @_;
    my $self = $class->prepare(%arg);
    for my $try (1 .. 5) {
        return $self if $self->launch;
        last if !$self->port_was_taken;
        unlink "$self->{dir}/error.log", "$self->{dir}/console.log";
        RpTest::Conf::write_conf($self, $self->{arg});
    }
    $self->{done} = 1;
    $self->{failed} = join "\n", $self->console, $self->error_log;
    return $self if $arg{may_fail};
    die "httpd did not start:\n$self->{failed}\n";
}

# What a server that was started with may_fail said when it did not start; undef when it runs.
sub failed { return $_[0]{failed} }

sub port_was_taken {
    my ($self) = @_;
    return grep { /Address already in use/ } $self->console, $self->error_log;
}

sub command {
    my ($self) = @_;
    my @httpd = (RpTest::Build::httpd(), '-f', "$self->{dir}/httpd.conf", '-d', $self->{dir}, list($self->{arg}{args}));
    return @httpd if !$ENV{RP_VALGRIND};
    return ('valgrind', '--error-limit=no', '--num-callers=25', "--log-file=$self->{dir}/valgrind.%p",
        split(' ', $ENV{RP_VALGRIND_OPTS} // ''), @httpd);
}

sub environment {
    my ($self) = @_;
    my %env = (LC_ALL => 'C');
    return \%env if !$ENV{RP_LD_PRELOAD};
    my $crash = $self->{arg}{crash} ? ':handle_segv=0:handle_abort=0' : '';
    $env{LD_PRELOAD}    = $ENV{RP_LD_PRELOAD};
    $env{ASAN_OPTIONS}  = "log_path=$self->{dir}/sanitizer:detect_leaks=0$crash";
    $env{UBSAN_OPTIONS} = "log_path=$self->{dir}/sanitizer:print_stacktrace=1";
    return \%env;
}

# True when the server is up: its parent has said so in the error log, which is after it began to listen.
sub launch {
    my ($self) = @_;
    $self->{pid} = RpTest::Process::spawn(command => [$self->command, '-DFOREGROUND'],
        console => "$self->{dir}/console.log", env => $self->environment);
    $running{ $self->{pid} } = $self;
    my $ended;
    my $up = RpTest::Process::wait_for(
        sub { $self->starts_count || ($ended = RpTest::Process::ended($self->{pid})) }, 20);
    return 1 if $up && !$ended;
    $self->end_process if !$ended;
    delete $running{ $self->{pid} };
    return 0;
}

# How often the server has come up: 1 after the start, one more after each restart.
sub starts_count { return scalar grep { /resuming normal operations/ } $_[0]->error_log }

sub pid         { return $_[0]{pid} }
sub port        { return $_[0]{port} }
sub tls_port    { return $_[0]{tls_port} }
sub status_port { return $_[0]{status_port} }
sub ports       { return @{ $_[0]{more_ports} } }
sub dir         { return $_[0]{dir} }
sub docroot     { return $_[0]{docroot} }
sub mpm         { return $_[0]{arg}{mpm} }
sub conf_file   { return "$_[0]{dir}/httpd.conf" }

sub url {
    my ($self, $path) = @_;
    return "http://127.0.0.1:$self->{port}" . ($path // '/');
}

# Works as a method and as a function.
sub wait_for { shift if ref $_[0] ne 'CODE'; return RpTest::Process::wait_for(@_) }

# Children that serve: they hold the listening socket, unlike the CGI daemon and children that only finish.
sub children {
    my ($self, %arg) = @_;
    my @pids = RpTest::Process::children_of($self->{pid});
    return @pids if $arg{all};
    my $inode = RpTest::Process::listener_inode($self->{port}) // return;
    return grep { RpTest::Process::has_socket($_, $inode) } @pids;
}

# Replaces the test's part of the configuration; it takes effect with the next restart.
sub change_conf {
    my ($self, $conf) = @_;
    $self->{arg}{conf} = $conf;
    RpTest::Conf::write_file($self->conf_file, RpTest::Conf::text($self, $self->{arg}));
}

# Writes a file below the document root, for the server to read.
sub write_file {
    my ($self, $path, $content) = @_;
    RpTest::Conf::write_file("$self->{docroot}/$path", $content);
    RpTest::Conf::give_away($self->{docroot});
}

sub restart_by {
    my ($self, $signal) = @_;
    my $starts = $self->starts_count;
    kill $signal, $self->{pid};
    wait_for(sub { $self->starts_count > $starts }, 20)
        or die "no restart after $signal\n" . join "\n", $self->error_log;
    wait_for(sub { $self->children }, 10) or die "no children after $signal\n";
    return $self;
}

sub graceful { return $_[0]->restart_by('USR1') }
sub restart  { return $_[0]->restart_by('HUP') }

# Waits until these processes are gone (the old children after a graceful restart).
sub wait_gone {
    my ($self, @pids) = @_;
    return wait_for(sub { !grep { RpTest::Process::alive($_) } @pids }, 20);
}

sub end_process {
    my ($self, $signal) = @_;
    local $?;
    return RpTest::Process::stop($self->{pid}, $signal);
}

# event's children close the sockets of their threads at SIGTERM without asking them: one that is just closing its own
# may crash, with and without the profiler. So let connections end that are ending.
sub wait_closed {
    my ($self) = @_;
    my @ports = ($self->{port}, $self->{tls_port}, $self->{status_port}, @{ $self->{more_ports} });
    wait_for(sub { !grep { RpTest::Process::closing_count($_) } @ports }, 1);
}

# Stops the server once; true when it ended by itself after the signal.
sub stop {
    my ($self, %arg) = @_;
    return $self->{stopped_clean} if defined $self->{stopped_clean} || !delete $running{ $self->{pid} };
    $self->wait_closed;
    return $self->{stopped_clean} = $self->end_process($arg{graceful} ? 'WINCH' : 'TERM') ? 1 : 0;
}

# Everything that a server did wrong, as sentences.
sub faults {
    my ($self) = @_;
    return ($self->{stopped_clean} ? () : 'the server had to be killed', $self->log_faults, $self->sanitizer_faults,
        $self->valgrind_faults);
}

# Stops the server and makes one test of it: it stopped when told, logged nothing that was not announced, and no
# sanitizer or valgrind complained.
sub done {
    my ($self, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $self->{done} = 1;
    $self->stop;
    my @faults = $self->faults;
    Test::More::ok(!@faults, $name // "$self->{arg}{mpm}: the server stops, and logged nothing unannounced")
        or Test::More::diag(join "\n", @faults);
    return !@faults;
}

# The output of "httpd -t" for a configuration that is not started: (1 when it is good, output).
sub configtest {
    my ($class, %arg) = @_;
    my $self = $class->prepare(%arg);
    my $pid  = RpTest::Process::spawn(command => [$self->command, '-t'], console => "$self->{dir}/console.log",
        env => $self->environment);
    waitpid $pid, 0;
    my $good = $? == 0 ? 1 : 0;
    $self->{done} = 1;
    return ($good, join "\n", $self->console, $self->error_log);
}

# A test that died, or forgot done(): stop the servers all the same, and let their faults fail it.
sub clean_up {
    my ($self) = @_;
    return if $self->{done}++ || $$ != $self->{owner} || !$self->{pid};
    $self->stop;
    my @faults = $self->faults or return;
    Test::More::diag(join "\n", 'server that was not done():', @faults);
    return 1;
}

sub DESTROY { local ($?, $@); $_[0]->clean_up }

END {
    my $status = $?;
    for my $self (grep { $$ == $_->{owner} } values %running) {
        $status ||= 1 if $self->clean_up;
    }
    $? = $status;
}

1;

__END__

=encoding utf8

=head1 NAME

RpTest - a private httpd for one test

=head1 SYNOPSIS

    use Test::More;
    use RpTest;

    my $srv = RpTest->start(mpm => 'event', modules => [qw(setenvif deflate ruler)], conf => <<'END');
    SetOutputFilter DEFLATE
    <Location "/made">
        SetHandler ruler-handler
    </Location>
    END

    my $res = $srv->get('/page.html', headers => { 'X-Ruler' => 'where=fixups;ms=20' });
    is $res->{status}, 200, 'a page is served';
    cmp_ok $srv->access_entry($res)->{us}, '>=', 20_000, 'the ruler took its time';

    my $delta = $srv->delta(sub { $srv->get('/page.html') for 1 .. 10 });
    is $srv->requests($delta), 10, 'ten requests are counted';
    cmp_ok $srv->phase_ns($delta, 'deflate'), '>', 0, 'compressing takes time';
    $srv->sums_ok($delta->{after});

    $srv->done;
    done_testing;

Run tests with C<prove -It/lib t>, or several at a time with C<-j>. Each server has its own temporary directory, ports
and user; when the tests run as root, httpd runs as C<www-data>.

=head1 STARTING

=head2 RpTest->start(%arg)

Starts a server and returns it when it is up. Dies with the server's own words when it does not start.

=over

=item mpm => 'prefork' | 'worker' | 'event'

Default: C<RP_MPM> of the environment, or event.

=item mpm_conf => { ThreadsPerChild => 4 }

Changes the small defaults (two children that stay; see RpTest::Conf). C<undef> leaves a directive out.

=item modules => [...]

Names as in C<mod_NAME.so>. authz_core, dir, mime and alias are always there; modules that are compiled into httpd may
be named too. C<ruler> and C<ruler2> are built from t/modules when needed.

=item conf => TEXT

Goes to the end of httpd.conf, so it overrides the defaults. C<@PORT@>, C<@PORT1@> ..., C<@TLS_PORT@>, C<@DIR@>,
C<@DOCROOT@>, C<@REPO@>, C<@LIBEXEC@> are filled in.

=item profiler => 1 | 0 | 'first'

Loads mod_reqprof (C<RP_MODULE>, or mod_reqprof.so in the repository's root) as the last module, not at all, or as the
first one, and sets its handler at /reqprof-status.

=item status_vhost => 1

Puts /reqprof-status on a port of its own (C<status_port>) in a virtual host with C<ReqProf Off>, so that reading the
report does not change it. text, json, settle and delta use it.

=item files => { 'a/b.html' => CONTENT }

More files below the document root; those that begin with C<#!> are executable. Always there: index.html,
page.html (42 kB), part.html, small.txt, big.txt (2 MB), ssi.shtml (includes /part.html).

=item override => 'All'

AllowOverride for the document root; default None. With None httpd opens no .htaccess.

=item cgi => 1, ssi => 1, tls => 1, http2 => 1

Load and configure cgi or cgid with /cgi-bin/echo.cgi (C<?sleep=SECONDS>); mod_include for .shtml; TLS on C<tls_port>
with a fresh self-signed certificate; HTTP/2.

=item ports => N

N more ports that httpd listens on: C<< $srv->ports >>, C<@PORT1@>.

=item log_level => 'debug', access_log => 0

The access log is a span of its own in the profiler's report (target: C<< $srv->dir . "/access.log" >>); C<0> leaves it
out.

=item expect_log => qr/.../, allow_log => qr/.../

As the methods; a single one or a list.

=item crash => 1

The test makes a child crash on purpose: the sanitizers leave the signals alone.

=item may_fail => 1

Return even when the server does not start; C<failed> has what it said.

=item args => [...]

More arguments for httpd, such as C<-DNAME>.

=back

=head2 RpTest->configtest(%arg)

Runs C<httpd -t> with the same arguments: C<< my ($good, $output) = RpTest->configtest(conf => 'ReqProf Maybe'); >>

=head1 THE RUNNING SERVER

port, tls_port, status_port, ports, url($path), dir, docroot, mpm, pid, conf_file.

=over

=item children(all => 0)

Process ids of the children that serve. C<all> includes the CGI daemon, piped loggers and children that only finish.

=item graceful, restart

Restart and wait until the server is up again and has a child. Old children may still run after graceful:
C<< $srv->wait_gone(@old) >>.

=item change_conf($text), write_file($path, $content)

Replace the test's part of httpd.conf for the next restart; write below the document root.

=item stop(graceful => 0)

Stops the server; false when it had to be killed.

=item done($name)

Stops the server and makes one test: it stopped when told, its error log has no line of level warn or above (nor a
crash, nor an unformatted line) that was not announced, every C<expect_log> was met, and neither sanitizer nor
valgrind complained. A server that is not done() is stopped at the end of the program all the same, and its faults give
the test a failing exit status.

=item expect_log(qr/.../), allow_log(qr/.../)

Announce lines of the error log. What is expected must appear; what is allowed may.

=item error_log, console, access_log

Lines of the error log and of standard output. access_log gives a hash for each request: id, pid, tid, vhost, status,
us (C<%D>), bytes, sent, conn, request, and what the ruler measured itself: ruler_us, ruler2_us, before_bytes,
after_bytes (C<-> when nothing).

=item access_entry($response)

The access log's hash for one response of get(). Waits until it is logged.

=item wait_for(sub { ... }, $seconds)

Polls until the sub returns something true, and returns that; returns false after the time. Use it instead of sleeping.

=back

=head1 CLIENTS (RpTest::Client)

=over

=item get($path, headers => {}, method =>, content =>, vhost => NAME, port =>, keep_alive => 1)

HTTP::Tiny's response, and C<id>. A new connection each time unless keep_alive.

=item raw($bytes, half => 0, port =>)

Sends the bytes and returns all that comes back until the server closes the connection. C<half> closes the sending side.

=item connect_to(port =>, rcvbuf =>)

A socket, for anything else.

=item slow_read($path, bytes => 1, pause_ms => 1, slow_bytes => 200, rcvbuf => 2048)

Reads slowly at first, so that the server's writes have to wait. slow_bytes may be as long as the answer.

=item slow_send($path, $body, bytes => 1, pause_ms => 1)

Sends a body slowly.

=item tls_get($path, headers => {}, http2 => 0)

{status, content, protocol, id} by curl.

=item background(sub { ... })

Runs the sub in a process beside the test: C<< ->wait >> returns its result, C<< ->kill >> ends it.

=back

=head1 LOAD (RpTest::Load)

=over

=item ab(requests => 100, concurrency => 4, path => '/', keep_alive => 0, headers => {}, args => [])

{complete, failed, non_2xx, write_errors, per_second, percentiles_ms}

=item wrk(seconds => 1, threads => 1, connections => 4, path => '/', headers => {}, script => FILE)

{complete, per_second, non_2xx, socket_errors}

=item h2load(requests => 100, clients => 2, streams => 4, path => '/', tls => 0, args => [])

{total, started, done, succeeded, failed, errored, timeout, by_status}

All have C<output>, and die when the tool fails.

=back

=head1 THE REPORT (RpTest::Report)

=over

=item text($query), json($query)

/reqprof-status in that format. Integers are exact.

=item settle($query)

Reads JSON until nothing else runs and each reading adds only itself: (json, number of readings).

=item delta(sub { ... }, query =>)

Runs the sub between two settled reports: {before, after, result, own}. C<own> counts the readings between them.

=item requests($delta), total_ns($delta)

=item phase_ns($delta, NAME), phase_count($delta, NAME), span_ns($delta, %which), span_count($delta, %which)

By how much a value grew. C<%which> are fields of json.spans, as text or regex: hook, owner, kind, phase, target.

=item phase($json, NAME), spans($json, %which), span($json, %which)

Rows of the report. span dies when several match.

=item sums_ok($json, $name)

Two tests: the self times of all phases add up to the total, and those of each phase's spans to their phase; exactly.
Time outside of any span is the phase other, and has no row among the spans.

=back

=head1 SLOW LOG READER

RpTest::Fifo, see there.

=head1 THE RULER

mod_ruler spends a known time at a known place; see the comment at the top of t/modules/ruler.inc.

=head1 ENVIRONMENT

=over

=item RP_MODULE, RP_MPM, RP_USER, RP_HTTPD, APXS, RP_TEST_BUILD

Another module file, default MPM, user for the server, httpd, apxs, directory for the test modules.

=item RP_LD_PRELOAD

Libraries preloaded into httpd only, such as C<"$(gcc -print-file-name=libasan.so)">.

=item RP_VALGRIND=1, RP_VALGRIND_OPTS

Runs httpd under valgrind.

=item RP_KEEP=1

Keeps the server's temporary directory.

=back

=cut
