# A request that hangs is seen while it hangs, in the span where it hangs, and changes no finished request's figures.

use strict;
use warnings;
use Test::More;
use RpTest;

my $conf = <<'END';
<Location "/made">
    SetHandler ruler-handler
</Location>
<Location "/posted">
    SetHandler ruler-handler
</Location>
END

# The flight with this path, when it is there.
sub flight {
    my ($srv, $path) = @_;
    return (grep { index($_->{uri}, $path) == 0 } @{ $srv->json->{flights} })[0];
}

# Waits until a request of this path is in flight in such a span; two seconds are what an administrator waits.
sub seen_in {
    my ($srv, $what, $path, $phase, $span) = @_;
    my $flight;
    $srv->wait_for(sub {
        $flight = flight($srv, $path);
        return $flight && $flight->{span} =~ $span && $flight->{phase} =~ $phase;
    }, 2);
    like $flight->{span},  $span,  "$what: is seen in its span within two seconds";
    like $flight->{phase}, $phase, "$what: and in its phase";
    cmp_ok $flight->{age_ns}, '>=', $flight->{span_age_ns}, "$what: the request is at least as old as its span";
    return $flight;
}

# Something hangs in the background: it is seen, and the finished requests stay as they were.
sub hangs {
    my ($srv, $what, $path, $phase, $span, $client) = @_;
    my ($before) = $srv->settle;
    my $hanging = $srv->background($client);
    my $flight  = seen_in($srv, $what, $path, $phase, $span);
    my $during  = $srv->json;
    is $during->{requests}{count}, $before->{requests}{count}, "$what: it is not counted yet";
    is_deeply $during->{phases}, $before->{phases}, "$what: no phase has changed";
    $hanging->wait;
    my ($after) = $srv->settle;
    is $after->{requests}{count}, $before->{requests}{count} + 1, "$what: it is counted once it has ended";
    $srv->sums_ok($after, $what);
    return $flight;
}

for my $mpm (qw(prefork event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, modules => ['ruler'], cgi => 1, conf => $conf,
        files => { 'large.txt' => 'x' x 8_000_000 });
    hangs($srv, "$mpm, a handler that sleeps", '/made', qr/^handler$/, qr/^handler mod_ruler/,
        sub { $srv->get('/made?secret=1', headers => { 'X-Ruler' => 'where=handler;ms=1500' }) });
    hangs($srv, "$mpm, a fixup that sleeps", '/small.txt', qr/^fixup$/, qr/^fixups mod_ruler/,
        sub { $srv->get('/small.txt', headers => { 'X-Ruler' => 'where=fixups;ms=1500' }) });
    hangs($srv, "$mpm, a CGI that holds its output", '/cgi-bin/', qr/^handler$/, qr/^handler mod_cgi/,
        sub { $srv->get('/cgi-bin/echo.cgi?sleep=2') });
    hangs($srv, "$mpm, a body that comes slowly", '/posted', qr/^network$/, qr/^input /,
        sub { $srv->slow_send('/posted', 'x' x 20, bytes => 1, pause_ms => 100) });
    hangs($srv, "$mpm, a client that reads slowly", '/large.txt', qr/^(?:network|drain)$/, qr/^(?:output|drain) /,
        sub { $srv->slow_read('/large.txt', bytes => 1, pause_ms => 100, slow_bytes => 20) });

    my $hanging = $srv->background(sub {
        $srv->get('/made?secret=1', headers => { 'X-Ruler' => 'where=handler;ms=2500' }) });
    my $old = $srv->wait_for(sub { my $json = $srv->json; return $json->{requests}{in_flight_over_1s} && $json }, 4);
    is $old->{requests}{in_flight_over_1s}, 1, "$mpm: a request that is older than a second is counted as such";
    is $old->{flights}[0]{uri}, '/made', "$mpm: its query string is not shown";
    is $old->{flights}[0]{method}, 'GET', "$mpm: its method is";
    like $srv->text, qr/^InFlightOver1s: 1$/m, "$mpm: and so does the text say";
    like $srv->get('/reqprof-status', port => $srv->status_port)->{content}, qr/>1 longer than 1 s</,
        "$mpm: and the page";
    $hanging->wait;
    $srv->done;
}

# A request of the configuration before a graceful restart is still there, and so it is shown.
{
    my $srv = RpTest->start(mpm => 'event', status_vhost => 1, modules => ['ruler'], conf => $conf);
    my $hanging = $srv->background(sub {
        $srv->get('/made', headers => { 'X-Ruler' => 'where=handler;ms=3000' }) });
    my $before = $srv->wait_for(sub { flight($srv, '/made') }, 2);
    $srv->graceful;
    my $after = flight($srv, '/made');
    is $after->{pid}, $before->{pid}, 'a request that outlives a graceful restart is still shown';
    cmp_ok $after->{epoch}, '<', $srv->json->{server}{epoch}, 'with the epoch that it belongs to';
    $hanging->wait;
    $srv->done;
}

# A log pipe whose reader sleeps: the pipe is full after 64 KiB, and then whoever logs waits.
for my $mpm (qw(prefork event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, access_log => 0, modules => ['ruler'],
        conf => <<'END');
LogFormat "%{X-Line}i" long
<VirtualHost *:@PORT@>
    ServerName localhost
    CustomLog "|/bin/sleep 600" long
</VirtualHost>
END
    my $hanging = $srv->background(sub {
        $srv->get('/small.txt', headers => { 'X-Line' => 'x' x 4000 }) for 1 .. 20 });
    my $flight = seen_in($srv, "$mpm, a log pipe that nobody reads", '/small.txt', qr/^log$/, qr/sleep 600/);
    ok $flight->{span} =~ /^log_transaction mod_log_config/, "$mpm: the span names the log's module";
    $srv->sums_ok($srv->json, "$mpm, log pipe");
    $hanging->kill;
    # Only killing the reader lets the children go on.
    kill 'KILL', grep { my $name = -r "/proc/$_/comm" ? do { open my $c, '<', "/proc/$_/comm"; <$c> } : '';
        $name =~ /sleep/ } map { RpTest::Process::children_of($_) } $srv->pid, RpTest::Process::children_of($srv->pid);
    $srv->allow_log(qr{AH0010[56]: piped log program '/bin/sleep 600' failed unexpectedly|AH00646: Error writing to},
        qr/AH0004[56]: child process \d+ still did not exit/,
        qr/RP010: child \d+ died with a request in log_transaction/);
    $srv->done;
}

done_testing;
