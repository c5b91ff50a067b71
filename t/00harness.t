# The harness itself, without the profiler: it starts, serves, logs and stops a server, and notices what goes wrong.

use strict;
use warnings;
use File::Path qw(remove_tree);
use Test::More;
use RpTest;

my $closed = "<Location \"/closed\">\nRequire all denied\n</Location>\n";

sub start { return RpTest->start(profiler => 0, @_) }

# Runs done() of a server where a failure is what we want, and returns (passed, what it said).
sub quiet_done {
    my ($srv) = @_;
    $srv->stop;
    $srv->{done} = 1;
    return $srv->faults;
}

for my $mpm (qw(prefork worker event)) {
    my $srv = start(mpm => $mpm);
    my $res = $srv->get('/index.html');
    is $res->{status}, 200, "$mpm: a file is served";
    like $res->{content}, qr/It serves/, "$mpm: with its content";
    my $entry = $srv->access_entry($res);
    is $entry->{request}, 'GET /index.html HTTP/1.1', "$mpm: the access log names the request";
    cmp_ok $entry->{us}, '>', 0, "$mpm: and how long it took";
    ok scalar(grep { $_ == $entry->{pid} } $srv->children), "$mpm: one of the server's children served it";

    my @before = $srv->wait_for(sub { my @pids = $srv->children; @pids == 2 && "@pids" });
    is scalar(@before), 1, "$mpm: there are two children";
    $srv->graceful;
    is $srv->starts_count, 2, "$mpm: a graceful restart starts anew";
    $srv->wait_gone(split ' ', $before[0]);
    is $srv->get('/')->{status}, 200, "$mpm: and it serves again";
    $srv->restart;
    is $srv->starts_count, 3, "$mpm: so does a restart";

    my $pid = $srv->pid;
    my $user = (stat "/proc/$pid")[4];
    isnt $user, 0, "$mpm: the server does not run as root" if $> == 0;
    is getpgrp($pid), $pid, "$mpm: the server's signals to its process group reach nobody else";
    $srv->done;
    ok !kill(0, $pid), "$mpm: the server is gone";
}

{
    my $srv = start(conf => $closed);
    is $srv->get('/closed')->{status}, 403, 'a request is refused';
    my @faults = quiet_done($srv);
    is scalar(@faults), 1, 'an unannounced error-log line is a fault';
    like $faults[0], qr/unannounced: .*client denied by server configuration/, 'and the fault quotes the line';
}

{
    my $srv = start(expect_log => qr/client denied/, conf => $closed);
    is $srv->get('/closed')->{status}, 403, 'a request is refused again';
    $srv->done('an announced error-log line is none');
}

{
    my $srv = start(expect_log => qr/never said/);
    my @faults = quiet_done($srv);
    like "@faults", qr/never logged/, 'an announced line that does not come is a fault';
}

{
    my $srv = start(modules => ['ruler'], crash => 1, mpm_conf => { StartServers => 1, MinSpareThreads => 1 });
    my $res = $srv->get('/', headers => { 'X-Ruler' => 'where=fixups;how=segv' });
    is $res->{status}, 599, 'a crash gives no answer';
    ok $srv->wait_for(sub { grep { /exit signal/ } $srv->error_log }), 'the parent logs it';
    my @faults = quiet_done($srv);
    like "@faults", qr/unannounced: .*exit signal Segmentation fault/, 'an unannounced crash is a fault';
}

{
    my $pid = open(my $out, '-|') // die "fork: $!";
    if (!$pid) {
        open STDERR, '>', '/dev/null';
        exec $^X, (map { "-I$_" } @INC), '-MRpTest', '-e', <<'END';
            $| = 1;
            my $srv = RpTest->start(profiler => 0);
            print $srv->pid, "\n";
            die "the test died\n" if !@ARGV;
END
    }
    my $server = <$out> + 0;
    my $rest = <$out>;
    close $out;
    isnt $?, 0, 'a test that dies fails';
    cmp_ok $server, '>', 0, 'a test that dies had a server';
    ok !kill(0, $server), 'and its server is stopped';
}

for my $signal (qw(TERM KILL)) {
    pipe my $out, my $in or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDOUT, '>&', $in;
        exec $^X, (map { "-I$_" } @INC), '-MRpTest', '-e',
            '$| = 1; my $srv = RpTest->start(profiler => 0); print $srv->pid, " ", $srv->dir, "\n"; sleep 60';
    }
    close $in;
    my ($server, $dir) = split ' ', <$out>;
    kill $signal, $pid;
    waitpid $pid, 0;
    ok RpTest::wait_for(sub { !RpTest::Process::alive($server) }),
        "a test that is ended by SIG$signal leaves no server";
    remove_tree($dir);
}

{
    my ($good, $output) = RpTest->configtest(profiler => 0, conf => "NoSuchDirective on\n");
    ok !$good, 'a bad configuration is told from a good one';
    like $output, qr/NoSuchDirective/, 'with what httpd says';
    ok((RpTest->configtest(profiler => 0))[0], 'a good configuration is good');
    my $srv = start(may_fail => 1, conf => "NoSuchDirective on\n");
    like $srv->failed, qr/NoSuchDirective/, 'a server that does not start says why';
}

{
    my $srv = start(cgi => 1, ssi => 1, tls => 1, http2 => 1, ports => 1, modules => ['ruler'],
        conf => "<Location \"/made\">\nSetHandler ruler-handler\n</Location>\n");
    like $srv->get('/cgi-bin/echo.cgi?a=b')->{content}, qr/method=GET query=a=b/, 'a CGI answers';
    like $srv->get('/ssi.shtml')->{content}, qr/before <p>part/, 'an SSI page includes another';
    my $tls = $srv->tls_get('/index.html');
    is $tls->{status}, 200, 'TLS works';
    is $srv->tls_get('/index.html', http2 => 1)->{protocol}, '2', 'HTTP/2 over TLS works';
    is $srv->get('/', port => ($srv->ports)[0])->{status}, 200, 'the second port serves';
    is $srv->get('/', vhost => 'localhost')->{status}, 200, 'a virtual host can be named';
    is scalar($srv->children), 2, 'the CGI daemon is not counted as a child that serves';
    like $srv->raw("GET / HTTP/1.0\r\n\r\n"), qr{^HTTP/1.1 200 OK}, 'a hand-made request is answered';
    is length((split /\r\n\r\n/, $srv->slow_read('/small.txt', bytes => 40), 2)[1]), 6, 'a slow reader gets it all';
    like $srv->slow_send('/made', 'x' x 10), qr{^HTTP/1.1 200}, 'a slow sender is answered';
    is $srv->background(sub { $srv->get('/')->{status} })->wait, 200, 'a client can run beside the test';

    my $ab = $srv->ab(requests => 50, concurrency => 5);
    is_deeply [@{$ab}{qw(complete failed non_2xx)}], [50, 0, 0], 'ab counts its requests';
    ok exists $ab->{percentiles_ms}{99}, 'and gives percentiles';
    my $h2 = $srv->h2load(requests => 40, clients => 2);
    is_deeply [$h2->{total}, $h2->{succeeded}, $h2->{by_status}{'2xx'}], [40, 40, 40], 'h2load counts its requests';
    my $wrk = $srv->wrk(seconds => 1, path => '/nothing');
    cmp_ok $wrk->{complete}, '>', 0, 'wrk counts its requests';
    is $wrk->{non_2xx}, $wrk->{complete}, 'and those that failed';
    $srv->done;
}

{
    my $fifo = RpTest::Fifo->new(pause_ms => 1);
    my $srv = start(conf => "CustomLog \"@{[$fifo->path]}\" \"fifo %r\"\n");
    $srv->get('/index.html');
    ok $srv->wait_for(sub { grep { $_ eq 'fifo GET /index.html HTTP/1.1' } $fifo->lines }),
        'a FIFO reader gets the log';
    $fifo->stop_reading;
    my $load = $srv->background(sub {
        my @ok = grep { $srv->get('/?' . 'x' x 2000)->{status} == 200 } 1 .. 10;
        return scalar @ok;
    });
    ok $srv->wait_for(sub { $srv->access_log > 2 }), 'requests go on while the FIFO has room';
    ok !RpTest::wait_for(sub { grep { /x{2000}/ } $fifo->lines }, 0.2), 'a reader that stopped reads nothing';
    $fifo->resume;
    is $load->wait, 10, 'and all is served when it reads again';
    $srv->done;
}

# A stand-in for the profiler: a CGI whose count is the number of requests in the access log. There is one child, which
# has logged a request before it reads the next.
{
    my $report = <<'END';
#!/bin/sh
count=$(wc -l < "$DOCUMENT_ROOT/../access.log")
printf 'Content-Type: application/json\r\n\r\n'
printf '{"requests":{"count":%d,"in_flight":1},"total":{"sum_ns":9007199254740993},' $count
printf '"phases":[{"phase":"handler","self":{"count":%d,"sum_ns":%d}}],' $count $((count * 1000))
printf '"spans":[{"phase":"handler","kind":"hook","hook":"handler","owner":"core.c","self":{"sum_ns":%d}},' $count
printf '{"phase":"handler","kind":"hook","hook":"handler","owner":"mod_dir.c","self":{"sum_ns":1}}]}\n'
END
    my $srv = start(cgi => 1, files => { 'reqprof-status' => $report }, mpm => 'prefork',
        mpm_conf => { StartServers => 1, ServerLimit => 1, MaxRequestWorkers => 1 }, allow_log => qr/AH00161/,
        conf => "<Location \"/reqprof-status\">\nSetHandler cgi-script\n</Location>\n");
    is $srv->json->{total}{sum_ns} - 1, 9007199254740992, 'an integer that no double holds is read exactly';
    my $delta = $srv->delta(sub { $srv->get('/index.html') for 1 .. 5; 'done' });
    is $delta->{result}, 'done', 'delta gives what its sub returned';
    is $srv->requests($delta), 5, 'delta tells the requests from its own readings';
    my $count = $delta->{after}{requests}{count} - $delta->{before}{requests}{count};
    is $srv->phase_ns($delta, 'handler'), 1000 * $count, 'a phase grew';
    is $srv->span_ns($delta, hook => 'handler', owner => qr/^core/), $count, 'a span grew';
    is $srv->span($delta->{after}, owner => 'mod_dir.c')->{self}{sum_ns}, 1, 'a span is found';
    is $srv->span($delta->{after}, owner => 'mod_none.c'), undef, 'a span that is not there is not found';
    ok !eval { $srv->span($delta->{after}, hook => 'handler') }, 'two spans are not one';
    $srv->done;
}

{
    my %part  = (phase => 'handler', self => { sum_ns => '4611686018427387904' });
    my %other = (%part, phase => 'other');
    my %json  = (total => { sum_ns => '9223372036854775808' }, phases => [\%part, \%other], spans => [\%part]);
    RpTest->sums_ok(\%json, 'sums beyond 63 bits');
    my ($phases, $total) = (RpTest::Report::add_up('sum_ns', \%part, \%part), '9223372036854775809');
    isnt $phases->bstr, $total, 'one nanosecond too little is not the total';
}

done_testing;
